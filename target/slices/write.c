/* The row of buckets that cut large objects into slices.  The leader of a name cuts the bytes of a
 * PUT as they come.
 *
 *                        ┌─ pipe ─▶ PUT slice 0 ─▶ a target
 *   take ─▶ encoder ─────┼─ pipe ─▶ PUT slice 1 ─▶ another
 *                        └─ pipe ─▶ PUT slice 2 ─▶ a third
 *
 *   open ─▶ take … ─▶ commit:  all slices are stored ─▶ the manifest is written as any object of
 * the bucket is, by the protocol of copies (copies_put())
 *
 * So the object is there when its manifest is, and a failure before leaves slices that nobody knows
 * (sweep.h): one that has not got its turn in half the time that these are left alone is refused.
 * Each target of the plan has stored its slice before the manifest is written; a target that could
 * not makes the PUT fail, with nothing changed.  Where it fails for certain (another owner leads
 * the name by now, or a target did not take its slice) the bytes are read from the slices that were
 * stored, and sent on (copies/hand_on.h).
 *
 * A pipe is small, and so is what did not go into it of a stripe: the slowest target slows the
 * client down.  Memory of an upload: two stripes, and a pipe for each slice.
 *
 * Objects of min_size bytes or less, or of unknown length, are kept as whole copies.  A row after
 * this one serves DELETE and rename. */
#include "target/node/write_path.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "cluster/placement/owners.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "ec/encode.h"
#include "io/bpipe.h"
#include "io/pool.h"
#include "target/node/call.h"
#include "target/copies/copies.h"
#include "target/slices/ec.h"
#include "target/format/ec_manifest.h"
#include "target/slices/plan.h"
#include "target/slices/find.h"
#include "target/slices/source.h"
#include "target/copies/fanout.h"
#include "target/copies/hand_on.h"
#include "target/node/target.h"

enum { PIPE_BYTES = 256 << 10 };

/* One slice on its way. */
struct branch {
    struct ec_upload *upload;
    const struct node *node; /* NULL: no target was left for it */
    char *url;
    struct bpipe *pipe;
    unsigned char *rest; /* of a block, what the pipe had no room for */
    size_t rest_at, rest_len;
    bool failed; /* it takes no more; the call says why */
    struct error err;
};

struct ec_upload {
    struct target *target;
    const struct cluster_state *state;
    uint64_t bucket_id;
    char *name;
    enum durability durability;
    char *content_type;
    struct buf meta;
    struct ec_manifest manifest;
    struct checksum *checksum;
    struct checksum *checksum_expected; /* when its type is another one */
    struct checksum_value expect;       /* type NONE: nothing was promised */
    struct ec_encoder *encoder;
    uint64_t taken;
    unsigned count;
    struct branch branches[EC_SLICES_MAX];
    struct ec_homes homes; /* the nodes are the state's */
    uint64_t until_ms;     /* later the slices may be garbage */
    bool blocks;           /* the sink may wait */
    bool sent_on;          /* where it fails */
    /* of the commit */
    struct object_call *call;
    struct error why; /* it is sent on */
    atomic_uint refs; /* the owner's, and one for each call */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned pending; /* calls */
};

/* --- the end ---------------------------------------------------------------------------------- */

static void upload_free(struct ec_upload *u)
{
    for (unsigned i = 0; i < u->count; i++) {
        bpipe_unref(u->branches[i].pipe);
        free(u->branches[i].url);
        free(u->branches[i].rest);
    }
    ec_encoder_free(u->encoder);
    checksum_free(u->checksum);
    checksum_free(u->checksum_expected);
    state_unref(u->state);
    pthread_cond_destroy(&u->changed);
    pthread_mutex_destroy(&u->lock);
    buf_done(&u->meta);
    free(u->content_type);
    free(u->name);
    free(u);
}

static void upload_unref(struct ec_upload *u)
{
    if (atomic_fetch_sub(&u->refs, 1) == 1)
        upload_free(u);
}

/* After it the request is resumed no more. */
static void hush(struct ec_upload *u)
{
    for (unsigned i = 0; i < u->count; i++) {
        if (u->branches[i].pipe != NULL)
            bpipe_on_space(u->branches[i].pipe, NULL, NULL);
    }
}

static void finish_pipes(struct ec_upload *u, const struct error *why)
{
    for (unsigned i = 0; i < u->count; i++) {
        if (u->branches[i].pipe != NULL)
            bpipe_finish(u->branches[i].pipe, why);
    }
}

static void abort_slices(void *own)
{
    struct ec_upload *u = own;
    struct error gone;
    error_set(&gone, E_CANCELLED, "the upload was given up");
    hush(u);
    finish_pipes(u, &gone);
    upload_unref(u);
}

/* --- the bytes -------------------------------------------------------------------------------- */

/* What is left of the last block; true: all of it is in the pipe, or nobody wants it. */
static bool push(struct branch *b)
{
    while (b->rest_len > 0 && !b->failed) {
        const unsigned char *at = b->rest + b->rest_at;
        ssize_t n = b->upload->blocks ? bpipe_write(b->pipe, at, b->rest_len, NULL)
                                      : bpipe_try_write(b->pipe, at, b->rest_len, NULL);
        if (n == BPIPE_AGAIN && !b->upload->blocks)
            return false;
        if (b->upload->blocks && n == 0)
            n = (ssize_t)b->rest_len;
        b->failed = n < 0;
        b->rest_at += n > 0 ? (size_t)n : 0;
        b->rest_len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Every pipe is tried: each wakes the request when it has room. */
static bool push_all(struct ec_upload *u)
{
    bool all = true;
    for (unsigned i = 0; i < u->count; i++)
        all = push(&u->branches[i]) && all;
    return all;
}

static int take_stripe(void *ctx, unsigned char *const *blocks, size_t len, struct error *err)
{
    struct ec_upload *u = ctx;
    (void)err;
    for (unsigned i = 0; i < u->count; i++) {
        struct branch *b = &u->branches[i];
        if (b->node == NULL)
            continue;
        memcpy(b->rest, blocks[i], len);
        b->rest_at = 0;
        b->rest_len = len;
        push(b);
    }
    return 0;
}

static void sum_up(struct ec_upload *u, const char *data, size_t len)
{
    checksum_update(u->checksum, data, len);
    if (u->checksum_expected != NULL)
        checksum_update(u->checksum_expected, data, len);
}

/* No further than a stripe reaches: then there must be room for the next one. */
static size_t take_piece(struct write_parts *parts, const char *data, size_t len, struct error *err)
{
    struct ec_upload *u = parts->own;
    const size_t stripe = (size_t)u->manifest.layout.k * u->manifest.layout.unit;
    size_t done = 0;
    while (done < len && push_all(u)) {
        size_t left = stripe - (size_t)(u->taken % stripe);
        size_t n = len - done < left ? len - done : left;
        if (ec_encoder_write(u->encoder, data + done, n, err) != 0)
            break;
        sum_up(u, data + done, n);
        u->taken += n;
        done += n;
    }
    return done;
}

/* --- the beginning ---------------------------------------------------------------------------- */

/* In the data loop's thread. */
static void slice_stored(void *arg, struct http_result *r)
{
    struct branch *b = arg;
    struct ec_upload *u = b->upload;
    http_result_error(r, b->url, &b->err);
    pthread_mutex_lock(&u->lock);
    u->pending--;
    pthread_cond_broadcast(&u->changed);
    pthread_mutex_unlock(&u->lock);
    upload_unref(u);
}

static void resume(void *arg)
{
    http_resume_body(arg);
}

static void start(struct ec_upload *u, unsigned i, const struct object_call *call)
{
    struct branch *b = &u->branches[i];
    b->url = ec_slice_put_url(b->node, u->bucket_id, u->manifest.tag, i, call->name,
                              u->durability == DURABILITY_SYNC);
    b->rest = xmalloc(u->manifest.layout.unit + EC_CHECK_BYTES);
    b->pipe = bpipe_new(PIPE_BYTES);
    bpipe_on_space(b->pipe, resume, call->req);
    const struct http_call put = {
        .method = HTTP_PUT,
        .url = b->url,
        .node = b->node->id,
        .upload = b->pipe,
        .upload_length = (int64_t)ec_layout_slice_bytes(&u->manifest.layout),
    };
    atomic_fetch_add(&u->refs, 1);
    u->pending++;
    http_call_start(u->target->data_client, &put, slice_stored, b);
}

static void start_all(struct ec_upload *u, const struct ec_homes *homes,
                      const struct object_call *call)
{
    pthread_mutex_lock(&u->lock); /* calls may end before the last has begun */
    for (unsigned i = 0; i < u->count; i++) {
        u->branches[i].upload = u;
        u->branches[i].node = homes->all[i];
        if (homes->all[i] != NULL)
            start(u, i, call);
    }
    pthread_mutex_unlock(&u->lock);
}

static void copy_spec(struct ec_upload *u, const struct object_put_spec *spec)
{
    u->durability = spec->durability;
    u->content_type = spec->content_type != NULL ? xstrdup(spec->content_type) : NULL;
    buf_append(&u->meta, spec->meta, spec->meta_len);
    u->checksum = checksum_new(spec->checksum);
    if (spec->expect == NULL)
        return;
    u->expect = *spec->expect;
    if (u->expect.type != spec->checksum)
        u->checksum_expected = checksum_new(u->expect.type);
}

static struct ec_upload *upload_new(const struct object_call *call,
                                    const struct object_put_spec *spec)
{
    struct ec_upload *u = xcalloc(1, sizeof *u);
    const struct bucket_props *p = &call->bucket->props;
    u->target = call->target;
    u->state = state_ref(call->state);
    u->bucket_id = call->bucket->id;
    u->name = xstrdup(call->name);
    u->meta = (struct buf)BUF_INIT;
    u->manifest.layout = (struct ec_layout){
        .k = p->ec_data, .m = p->ec_parity, .unit = EC_UNIT_DEFAULT, .length = spec->size};
    u->manifest.tag = ec_new_tag(call->target->ec);
    u->count = p->ec_data + p->ec_parity;
    atomic_init(&u->refs, 1);
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->changed, NULL);
    copy_spec(u, spec);
    return u;
}

static int open_slices(struct object_call *call, struct object_put_spec *spec,
                       struct write_parts *out, struct error *err)
{
    const struct bucket_props *p = &call->bucket->props;
    const struct smap *map = &call->state->smap;
    _cleanup_free_ const struct node **ranked = xcalloc(map->count + 1, sizeof *ranked);
    size_t count = smap_owners(map, call->bucket->id, call->name, map->count, ranked);
    struct ec_homes homes;
    int code = ec_plan_write(ranked, count, p->ec_data, p->ec_parity, &homes, err);
    if (code != 0)
        return code;
    struct ec_upload *u = upload_new(call, spec);
    const struct ec_sink sink = {.ctx = u, .stripe = take_stripe};
    code = ec_encoder_new(&u->manifest.layout, u->manifest.tag, &sink, &u->encoder, err);
    if (code != 0) {
        upload_unref(u);
        return code;
    }
    start_all(u, &homes, call);
    u->homes = homes;
    out->own = u;
    return 0;
}

/* --- the commit ------------------------------------------------------------------------------- */

static int check_sum(struct ec_upload *u, struct error *err)
{
    struct checksum_value got;
    checksum_final(u->checksum, &u->manifest.checksum);
    got = u->manifest.checksum;
    if (u->checksum_expected != NULL)
        checksum_final(u->checksum_expected, &got);
    if (u->taken < u->manifest.layout.length)
        return error_set(err, E_LENGTH, "%llu of the announced %llu bytes have come",
                         (unsigned long long)u->taken,
                         (unsigned long long)u->manifest.layout.length);
    if (u->expect.type == CHECKSUM_NONE || checksum_equal(&got, &u->expect))
        return 0;
    char want_hex[2 * CHECKSUM_MAX + 1], got_hex[2 * CHECKSUM_MAX + 1];
    checksum_hex(&u->expect, want_hex);
    checksum_hex(&got, got_hex);
    return error_set(err, E_CHECKSUM, "%s of the %llu bytes is %s, not %s", checksum_name(got.type),
                     (unsigned long long)u->taken, got_hex, want_hex);
}

static void await_calls(struct ec_upload *u)
{
    pthread_mutex_lock(&u->lock);
    while (u->pending > 0)
        pthread_cond_wait(&u->changed, &u->lock);
    pthread_mutex_unlock(&u->lock);
}

static int check_branches(struct ec_upload *u, struct error *err)
{
    for (unsigned i = 0; i < u->count; i++) {
        const struct branch *b = &u->branches[i];
        if (b->node != NULL && b->err.code != 0)
            return error_set(err, ec_plan_failure(b->err.code, &u->sent_on),
                             "target '%s' could not take slice %u: %s", b->node->id, i,
                             b->err.message);
    }
    return 0;
}

static int store_slices(struct ec_upload *u, struct error *err)
{
    int code = check_sum(u, err);
    u->blocks = true;
    u->until_ms = clock_ms() + u->target->params.slices_grace / 2;
    if (code == 0)
        (void)push_all(u); /* a branch that fails is found below */
    finish_pipes(u, code != 0 ? err : NULL);
    await_calls(u);
    if (code == 0)
        code = check_branches(u, err);
    int errnum = code == 0 ? fault_errno("ec.stored") : 0;
    return errnum != 0 ? error_errno(err, errnum, "store '%s'", u->name) : code;
}

/* Who has been told to leave meanwhile may have been looked through already (slices/repair.h). */
static int check_homes(const struct ec_upload *u, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(u->target->state);
    for (unsigned i = 0; i < u->homes.count; i++) {
        const struct node *then = u->homes.all[i];
        const struct node *now = then != NULL ? smap_node(&s->smap, then->id) : NULL;
        if (then != NULL && (now == NULL || !node_owns(now)))
            return error_set(err, E_STALE_MAP,
                             "target '%s', which has a slice of '%s', leaves; send it again",
                             then->id, u->name);
    }
    return 0;
}

/* Asked in its turn, before anybody is told to commit. */
static int check_manifest(void *ctx, const struct attr *current, struct error *err)
{
    const struct ec_upload *u = ctx;
    if (clock_ms() >= u->until_ms)
        return error_set(err, E_OVERLOAD, "the slices of '%s' were stored too long ago", u->name);
    int code = check_homes(u, err);
    if (code != 0)
        return code;
    const struct object_condition *then = &u->call->condition;
    return then->check != NULL ? then->check(then->ctx, current, err) : 0;
}

/* The manifest, staged on its way to the other owners. */
static int stage_manifest(const struct ec_upload *u, struct object_put **put,
                          struct fanout **fanout, struct error *err)
{
    struct target *t = u->target;
    char text[EC_MANIFEST_TEXT_MAX];
    const struct node *others[OWNERS_MAX];
    struct owners owners;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, u->bucket_id);
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
    const struct object_put_spec spec = {.bucket_id = b->id,
                                         .name = u->name,
                                         .durability = u->durability,
                                         .checksum = b->props.checksum,
                                         .content_type = u->content_type,
                                         .meta = u->meta.data,
                                         .meta_len = u->meta.len,
                                         .slices = ec_manifest_text(&u->manifest, text)};
    int code = object_put_begin(t->store, &spec, put, err);
    if (code != 0)
        return code;
    owners_of(s, b, u->name, &owners);
    const struct fanout_spec to = {.target = t,
                                   .state = s,
                                   .bucket = b,
                                   .name = u->name,
                                   .others = others,
                                   .count = owners_others(&owners, t->id, others),
                                   .durability = u->durability,
                                   .content_type = u->content_type,
                                   .meta = u->meta.data,
                                   .meta_len = u->meta.len,
                                   .slices = text};
    *fanout = fanout_new(&to);
    return 0;
}

/* --- where another owner acts by now, or a slice is missing ----------------------------------- */

static int take_into_put(void *ctx, const void *data, size_t len, struct error *err)
{
    return object_put_write(ctx, data, len, err);
}

/* The object's bytes, out of the slices that were stored, in a file that never gets the name. */
static int gather(const struct ec_upload *u, struct handed *out, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(u->target->state);
    const struct ec_reading r = {.target = u->target,
                                 .state = s,
                                 .bucket_id = u->bucket_id,
                                 .name = u->name,
                                 .manifest = u->manifest};
    const struct object_put_spec spec = {.bucket_id = u->bucket_id,
                                         .name = u->name,
                                         .size = u->manifest.layout.length,
                                         .unnamed = true,
                                         .checksum = u->manifest.checksum.type,
                                         .expect = &u->manifest.checksum};
    struct object_put *put = NULL;
    struct ec_bad bad;
    int code = object_put_begin(u->target->store, &spec, &put, err);
    if (code != 0)
        return code;
    code = ec_source_range(&r, 0, u->manifest.layout.length, take_into_put, put, &bad, err);
    if (code == 0)
        code = handed_take(out, put, err);
    object_put_abort(put);
    return code;
}

/* In a hander's thread: it may read the whole object. */
static void hand_on_run(void *arg)
{
    struct ec_upload *u = arg;
    struct handed h = {.fd = -1};
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(u->call->req));
    if (!hand_on_is_of_use(u->call, &u->why)) {
        object_call_fail(u->call, "put", &u->why);
    } else if (gather(u, &h, &err) == 0) {
        hand_on(u->call, &h, &u->why);
    } else {
        log_warn("upload not sent on", lstr("name", u->name), lerr(&err));
        handed_drop(&h);
        object_call_fail(u->call, "put", &u->why);
    }
    log_set_request(NULL);
    upload_unref(u);
}

/* The write has failed for certain, as u->why says. */
static void send_on(struct ec_upload *u)
{
    struct error err = ERROR_INIT;
    if (pool_submit(u->target->handers, hand_on_run, u, &err) == 0)
        return;
    object_call_fail(u->call, "put", &u->why);
    upload_unref(u);
}

/* The same, of the manifest's write. */
static void displaced(void *arg, struct handed *manifest, const struct error *why)
{
    struct ec_upload *u = arg;
    handed_drop(manifest);
    u->why = *why;
    send_on(u);
}

static void written(void *arg, const struct attr *attr, const struct error *err)
{
    struct ec_upload *u = arg;
    u->call->done(u->call, attr, err);
    upload_unref(u);
}

/* In a thread that commits. */
static void commit_run(void *arg)
{
    struct ec_upload *u = arg;
    struct object_call *call = u->call;
    struct object_put *put = NULL;
    struct fanout *fanout = NULL;
    struct error err = ERROR_INIT;
    const struct object_condition condition = {.check = check_manifest, .ctx = u};
    log_set_request(http_request_id(call->req));
    int code = store_slices(u, &err);
    if (code == 0)
        code = stage_manifest(u, &put, &fanout, &err);
    u->why = err;
    if (code == 0) {
        copies_put(u->target, u->bucket_id, call->name, put, fanout, &condition, written, displaced,
                   u);
    } else if (code == E_STALE_MAP || u->sent_on) {
        send_on(u);
    } else {
        object_call_fail(call, "put", &err);
        upload_unref(u);
    }
    log_set_request(NULL);
}

static void commit_slices(struct object_call *call, struct write_parts *parts)
{
    struct error err = ERROR_INIT;
    struct ec_upload *u = parts->own;
    hush(u);
    u->call = call;
    if (pool_submit(u->target->copies->pool, commit_run, u, &err) == 0)
        return;
    abort_slices(u);
    object_call_fail(call, "put", &err);
}

static bool takes_large(const struct object_call *call)
{
    const struct bucket *b = call->bucket;
    if (b->props.ec_data == 0 || !bucket_has_copies(b) || http_method(call->req) != HTTP_PUT)
        return false;
    int64_t length = http_content_length(call->req);
    return length > 0 && (uint64_t)length > b->props.ec_min_size;
}

const struct write_path slices_path = {.name = "slices",
                                       .sees_to_owners = true,
                                       .takes = takes_large,
                                       .open = open_slices,
                                       .take = take_piece,
                                       .commit = commit_slices,
                                       .abort = abort_slices};
