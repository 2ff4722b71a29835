#include "target/copies/fanout.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "cluster/members/location.h"
#include "common/checksum.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/rng.h"
#include "io/bpipe.h"
#include "s3/sum_text.h"
#include "target/format/ec_manifest.h"
#include "target/copies/object_copy.h"
#include "target/copies/staged.h"
#include "target/node/header_lines.h"
#include "target/node/reply.h"
#include "target/node/target.h"

enum { PIPE_BYTES = 256 << 10 };

/* One other owner. */
struct branch {
    struct fanout *fanout;
    const struct node *node;
    char *url;
    struct bpipe *pipe; /* NULL for an empty body */
    size_t ahead;       /* bytes that it has taken beyond what all have */
    bool failed;        /* it takes no more; the call says why */
    struct error err;   /* of the call */
    char checksum[2 * CHECKSUM_MAX + 1];
    uint64_t size;
};

struct fanout {
    struct target *target;
    const struct cluster_state *state;
    uint64_t bucket_id;
    char *name;
    char stage[16];
    size_t count;
    struct branch branches[OWNERS_MAX];
    bool keep;
    atomic_uint refs;     /* the owner's, and one for each call */
    pthread_mutex_t lock; /* of what follows */
    size_t pending;       /* calls */
    void (*fn)(void *arg);
    void *arg;
};

const char *fanout_stage(const struct fanout *f)
{
    return f->stage;
}

bool fanout_has(const struct fanout *f, const char *node_id)
{
    for (size_t i = 0; i < f->count; i++) {
        if (strcmp(f->branches[i].node->id, node_id) == 0)
            return true;
    }
    return false;
}

void fanout_keep(struct fanout *f)
{
    f->keep = true;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void fanout_free(struct fanout *f)
{
    for (size_t i = 0; i < f->count; i++) {
        bpipe_unref(f->branches[i].pipe);
        free(f->branches[i].url);
    }
    state_unref(f->state);
    pthread_mutex_destroy(&f->lock);
    free(f->name);
    free(f);
}

static void drop_ref(struct fanout *f)
{
    if (atomic_fetch_sub(&f->refs, 1) == 1)
        fanout_free(f);
}

static void dropped(void *arg, struct http_result *r)
{
    (void)r; /* one that was not heard goes when it is too old */
    drop_ref(arg);
}

static void drop_stage(struct fanout *f, const struct branch *b)
{
    _cleanup_free_ char *url = staged_url(b->node, f->bucket_id, f->name, f->state, f->stage);
    const struct http_call call = {.method = HTTP_DELETE,
                                   .url = url,
                                   .node = b->node->id,
                                   .total_timeout_ms = f->target->params.call_timeout};
    atomic_fetch_add(&f->refs, 1);
    http_call_start(f->target->data_client, &call, dropped, f);
}

void fanout_unref(struct fanout *f)
{
    struct error gone;
    if (f == NULL)
        return;
    error_set(&gone, E_CANCELLED, "the upload was given up");
    fanout_finish(f, &gone);
    for (size_t i = 0; i < f->count && !f->keep; i++)
        drop_stage(f, &f->branches[i]);
    drop_ref(f);
}

/* --- the beginning ---------------------------------------------------------------------------- */

static int staged_of(struct branch *b, struct buf *body, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    json_t *checksum = NULL;
    const char *value = NULL;
    int code = json_parse(buf_str(body), body->len, &doc, err);
    if (code == 0)
        code = json_get_u64(doc, "", "size", &b->size, err);
    if (code == 0)
        code = json_get_object(doc, "", "checksum", &checksum, err);
    if (code == 0 && checksum != NULL)
        code = json_need_str(checksum, "checksum", "value", &value, err);
    snprintf(b->checksum, sizeof b->checksum, "%s", value != NULL ? value : "");
    return code;
}

/* In the data loop's thread. */
static void staged_there(void *arg, struct http_result *r)
{
    struct branch *b = arg;
    struct fanout *f = b->fanout;
    void (*fn)(void *) = NULL;
    if (http_result_error(r, b->url, &b->err) == 0 && staged_of(b, &r->body, &b->err) == 0)
        b->err = ERROR_INIT;
    pthread_mutex_lock(&f->lock);
    if (--f->pending == 0)
        fn = f->fn;
    void *fn_arg = f->arg;
    pthread_mutex_unlock(&f->lock);
    if (fn != NULL)
        fn(fn_arg);
    drop_ref(f);
}

static void put_lines(struct header_lines *h, const struct fanout_spec *spec, const char *stage)
{
    const struct attr a = {.meta = spec->meta, .meta_len = spec->meta_len};
    size_t pos = 0;
    const char *name, *value;
    char sum[S3_SUM_TEXT_MAX];
    header_lines_add(h, OBJECT_COPY_HEADER ": " OBJECT_COPY_STAGE);
    header_lines_printf(h, OBJECT_STAGE_HEADER ": %s", stage);
    header_lines_add(h, object_type_line(h->arena, spec->content_type));
    if (spec->durability != spec->bucket->props.durability)
        header_lines_add(h, OBJECT_STAGE_DURABLE_HEADER ": 1");
    if (spec->md5)
        header_lines_add(h, OBJECT_STAGE_MD5_HEADER ": 1");
    if (spec->sum != NULL)
        header_lines_printf(h, OBJECT_STAGE_SUM_HEADER ": %s", s3_sum_text_print(spec->sum, sum));
    if (spec->slices != NULL)
        header_lines_printf(h, EC_MANIFEST_HEADER ": %s", spec->slices);
    while (attr_meta_next(&a, &pos, &name, &value))
        header_lines_meta(h, name, value);
}

static void start(struct fanout *f, struct branch *b, const struct fanout_spec *spec,
                  const char *const *lines)
{
    struct http_call call = {.method = HTTP_PUT, .node = b->node->id, .headers = lines};
    b->url = location_of_copy(b->node, spec->state, spec->bucket, spec->name);
    call.url = b->url;
    if (spec->length != 0) {
        b->pipe = bpipe_new(PIPE_BYTES);
        bpipe_on_space(b->pipe, spec->resume, spec->arg);
        call.upload = b->pipe;
        call.upload_length = spec->length;
    }
    http_call_start(f->target->data_client, &call, staged_there, b);
}

struct fanout *fanout_new(const struct fanout_spec *spec)
{
    struct fanout *f = xcalloc(1, sizeof *f);
    f->target = spec->target;
    f->state = state_ref(spec->state);
    f->bucket_id = spec->bucket->id;
    f->name = xstrdup(spec->name);
    f->count = spec->count;
    f->pending = spec->count;
    atomic_init(&f->refs, (unsigned)spec->count + 1);
    pthread_mutex_init(&f->lock, NULL);
    random_id("s-", f->stage);
    struct header_lines h;
    header_lines_begin(&h);
    put_lines(&h, spec, f->stage);
    for (size_t i = 0; i < f->count; i++) {
        f->branches[i].fanout = f;
        f->branches[i].node = spec->others[i];
        start(f, &f->branches[i], spec, h.lines);
    }
    header_lines_end(&h);
    return f;
}

/* --- the bytes -------------------------------------------------------------------------------- */

static void branch_take(struct branch *b, const char *data, size_t len)
{
    if (b->failed || b->pipe == NULL || b->ahead == len)
        return;
    ssize_t taken = bpipe_try_write(b->pipe, data + b->ahead, len - b->ahead, NULL);
    if (taken >= 0)
        b->ahead += (size_t)taken;
    else
        b->failed = taken != BPIPE_AGAIN;
}

size_t fanout_take(struct fanout *f, const char *data, size_t len)
{
    size_t all = len;
    for (size_t i = 0; i < f->count; i++) {
        struct branch *b = &f->branches[i];
        branch_take(b, data, len);
        if (!b->failed && b->ahead < all)
            all = b->ahead;
    }
    for (size_t i = 0; i < f->count; i++) {
        if (!f->branches[i].failed)
            f->branches[i].ahead -= all;
    }
    return all;
}

void fanout_finish(struct fanout *f, const struct error *why)
{
    for (size_t i = 0; i < f->count; i++) {
        struct bpipe *pipe = f->branches[i].pipe;
        if (pipe == NULL)
            continue;
        bpipe_on_space(pipe, NULL, NULL);
        bpipe_finish(pipe, why);
        bpipe_unref(pipe);
        f->branches[i].pipe = NULL;
    }
}

void fanout_await(struct fanout *f, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&f->lock);
    bool over = f->pending == 0;
    f->fn = fn;
    f->arg = arg;
    pthread_mutex_unlock(&f->lock);
    if (over)
        fn(arg);
}

/* What a client can act on stays what it is. */
static int failure_of(int code)
{
    bool stays = code == E_NO_SPACE || code == E_STALE_MAP || code == E_OVERLOAD ||
                 code == E_HEADERS_TOO_LARGE;
    return stays ? code : E_NODE_UNREACHABLE;
}

static int branch_check(const struct branch *b, const struct attr *a, struct error *err)
{
    char hex[2 * CHECKSUM_MAX + 1];
    checksum_hex(&a->checksum, hex);
    if (b->err.code != 0)
        return error_set(err, failure_of(b->err.code), "target '%s' could not take its copy: %s",
                         b->node->id, b->err.message);
    if (b->size != a->size || strcmp(b->checksum, hex) != 0)
        return error_set(err, E_NODE_UNREACHABLE, "target '%s' has got other bytes than were sent",
                         b->node->id);
    return 0;
}

int fanout_check(const struct fanout *f, const struct attr *a, struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < f->count && code == 0; i++)
        code = branch_check(&f->branches[i], a, err);
    return code;
}

int fanout_check_node(const struct fanout *f, const char *node_id, const struct attr *a,
                      struct error *err)
{
    for (size_t i = 0; i < f->count; i++) {
        if (strcmp(f->branches[i].node->id, node_id) == 0)
            return branch_check(&f->branches[i], a, err);
    }
    return error_set(err, E_STALE_MAP, "target '%s' was not sent it", node_id);
}
