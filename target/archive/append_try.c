#include "target/archive/append_try.h"

#include <string.h>
#include <unistd.h>

#include "cluster/members/location.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/mem.h"
#include "common/semaphores.h"
#include "io/file.h"
#include "net/client/client.h"
#include "target/archive/append_plan.h"
#include "target/archive/archive_source.h"
#include "target/archive/batch_fetch.h"
#include "target/archive/batch_spec.h"
#include "target/copies/object_copy.h"
#include "target/copies/rename_copy.h"
#include "target/copies/repair_wanted.h"
#include "target/format/ec_manifest.h"
#include "target/node/call.h"
#include "target/node/header_lines.h"
#include "target/node/target.h"
#include "target/node/write_path.h"
#include "target/store/job_stop.h"
#include "target/store/own_meta.h"

enum { PIECE = 1 << 20 };

struct trying {
    struct append *a;
    const struct bucket *bucket; /* the call's state has it */
    struct object old;
    bool exists;                /* there is an old version */
    char etag[OBJECT_ETAG_MAX]; /* of it */
    struct archive_source source;
    enum append_format format;
    struct append_plan plan;
    char *piece;
    bool raced;
};

static int go_on(void *ctx, struct error *err)
{
    const struct trying *t = ctx;
    return atomic_load(&t->a->stop->wanted) ? error_set(err, E_NOT_READY, "the target stops") : 0;
}

/* --- the newest version, here ----------------------------------------------------------------- */

/* Is what this target has what the owner's GET has told of? */
static int open_if_newest(struct trying *t, const char *etag, bool *is_newest, struct error *err)
{
    const struct object_call *call = t->a->call;
    int code = object_open(call->target->store, t->bucket->id, call->name, &t->old, err);
    *is_newest = false;
    if (code == E_OBJECT_NOT_FOUND)
        return error_forgive(err, code, E_OBJECT_NOT_FOUND);
    if (code != 0)
        return code;
    object_call_etag(call, &t->old.attr, t->etag);
    *is_newest = strcmp(t->etag, etag) == 0;
    if (!*is_newest)
        close(steal_fd(&t->old.fd));
    return 0;
}

static int read_to_end(struct trying *t, struct batch_fetch *f, uint64_t size, struct error *err)
{
    for (uint64_t left = size; left > 0;) {
        const size_t len = left < PIECE ? (size_t)left : PIECE;
        ssize_t n = batch_fetch_read(f, t->a->stop, t->piece, len, err);
        if (n < 0)
            return (int)n;
        left -= (uint64_t)n;
    }
    return 0;
}

/* Reading the whole of it brings what a backend has to this target. */
static int open_fetched(struct trying *t, struct batch_fetch *f, struct error *err)
{
    uint64_t size;
    int64_t modified_s;
    bool is_newest = false;
    int code = batch_fetch_head(f, t->a->stop, &size, &modified_s, err);
    if (code == E_OBJECT_NOT_FOUND)
        return error_forgive(err, code, E_OBJECT_NOT_FOUND);
    if (code == 0)
        code = open_if_newest(t, batch_fetch_etag(f), &is_newest, err);
    if (code == 0 && !is_newest && (code = read_to_end(t, f, size, err)) == 0)
        code = open_if_newest(t, batch_fetch_etag(f), &is_newest, err);
    t->exists = is_newest;
    if (code != 0 || is_newest)
        return code;
    return error_set(err, E_NOT_READY,
                     "archive '%s' is not on this target yet and cannot be appended to; try again",
                     t->a->call->name);
}

static int open_anywhere(struct trying *t, struct error *err)
{
    const struct batch_entry entry = {.bucket = t->bucket->name, .object = t->a->call->name};
    struct batch_fetch *f = batch_fetch_begin(t->a->target, &entry, BATCH_READ, t->a->request_id);
    int code = open_fetched(t, f, err);
    batch_fetch_end(f);
    return code;
}

static int open_here(struct trying *t, struct error *err)
{
    int code = rename_open_here(t->a->call, &t->old, err);
    t->exists = code == 0;
    if (t->exists)
        object_call_etag(t->a->call, &t->old.attr, t->etag);
    return error_forgive(err, code, E_OBJECT_NOT_FOUND);
}

static bool is_here(const struct trying *t)
{
    return t->a->call->path == &one_path;
}

static int open_newest(struct trying *t, struct error *err)
{
    int code = is_here(t) ? open_here(t, err) : open_anywhere(t, err);
    if (code == 0 && t->exists)
        code = ec_manifest_show(&t->old.attr, err);
    if (code == 0)
        code = object_call_check_conditions(t->a->call, HTTP_PUT, t->exists ? &t->old.attr : NULL,
                                            err);
    return code != 0 || t->exists || t->a->creates
               ? code
               : error_set(err, E_OBJECT_NOT_FOUND, "archive '%s' does not exist",
                           t->a->call->name);
}

/* --- what it becomes -------------------------------------------------------------------------- */

static int read_old(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    struct trying *t = ctx;
    int code = go_on(t, err);
    return code != 0 ? code : archive_source_read(&t->source, out, len, offset, err);
}

static int find_format(struct trying *t, struct error *err)
{
    unsigned char head[512];
    const uint64_t size = t->exists ? t->old.attr.size : 0;
    const size_t len = size < sizeof head ? (size_t)size : sizeof head;
    if (size == 0 && append_format_of_name(t->a->call->name, &t->format, err) == 0)
        return 0;
    if (!t->exists)
        return err->code;
    *err = ERROR_INIT;
    int code = len > 0 ? read_old(t, head, len, 0, err) : 0;
    if (code == 0 && !append_format_of(head, len, &t->format))
        code = error_set(err, E_NOT_ARCHIVE,
                         "object '%s' is neither a plain tar nor a zip: only these can be appended "
                         "to",
                         t->a->call->name);
    return code;
}

static int make_plan(struct trying *t, struct error *err)
{
    const struct append_input in = {
        .format = t->format,
        .old = {.read = read_old,
                .ctx = t,
                .size = t->exists ? t->old.attr.size : 0,
                .shard = t->a->call->name},
        .body = {.fd = t->a->fd,
                 .size = t->a->size,
                 .member = t->a->member,
                 .now_s = clock_wall_ms() / 1000,
                 .memory_max = param_live(t->a->target->params.archive_append_memory),
                 .go_on = go_on,
                 .ctx = t},
        .overwrite = t->a->overwrite,
    };
    int code = append_plan_make(&in, &t->plan, err);
    return t->exists ? archive_source_explain(&t->source, code, err) : code;
}

/* --- its bytes -------------------------------------------------------------------------------- */

/* Where the bytes go.  fd: the file that has them at `offset`, or -1. */
typedef int take_fn(void *ctx, const void *data, size_t len, int fd, uint64_t offset,
                    struct error *err);

struct feeding {
    struct trying *trying;
    take_fn *take;
    void *ctx;
    struct checksum *sum; /* of the old version's bytes */
};

static int feed_old(struct feeding *f, uint64_t offset, uint64_t length, bool is_taken,
                    struct error *err)
{
    struct trying *t = f->trying;
    const int fd = t->old.attr.slices == NULL ? t->old.fd : -1;
    int code = 0;
    for (uint64_t done = 0; done < length && code == 0;) {
        const size_t len = length - done < PIECE ? (size_t)(length - done) : PIECE;
        code = read_old(t, t->piece, len, offset + done, err);
        if (code == 0)
            checksum_update(f->sum, t->piece, len);
        if (code == 0 && is_taken)
            code = f->take(f->ctx, t->piece, len, fd, offset + done, err);
        done += len;
    }
    return code;
}

/* Slices have checksums of their own, which were compared; they have none of the whole. */
static int compare_old(const struct feeding *f, struct error *err)
{
    const struct trying *t = f->trying;
    const struct checksum_value *want = &t->old.attr.checksum;
    struct checksum_value got;
    checksum_final(f->sum, &got);
    if (want->type == CHECKSUM_NONE || checksum_equal(&got, want))
        return 0;
    metric_add(metric_get(M_checksum_errors_total, NULL), 1);
    repair_wanted(t->a->target, t->bucket->id, t->a->call->name);
    return error_set(err, E_CORRUPT,
                     "archive '%s' does not have its checksum any more: nothing was appended",
                     t->a->call->name);
}

static int feed_file(const struct feeding *f, const struct splice *s, struct error *err)
{
    struct trying *t = f->trying;
    int code = 0;
    for (uint64_t done = 0; done < s->length && code == 0;) {
        const size_t len = s->length - done < PIECE ? (size_t)(s->length - done) : PIECE;
        code = go_on(t, err);
        if (code == 0)
            code = file_pread_full(t->a->fd, t->piece, len, s->offset + done, err);
        if (code == 0)
            code = f->take(f->ctx, t->piece, len, t->a->fd, s->offset + done, err);
        done += len;
    }
    return code;
}

static int feed_splice(struct feeding *f, const struct splice *s, struct error *err)
{
    const struct append_plan *plan = &f->trying->plan;
    switch (s->from) {
    case SPLICE_OLD:
        return feed_old(f, s->offset, s->length, true, err);
    case SPLICE_BODY:
        return feed_file(f, s, err);
    case SPLICE_BYTES:
        break;
    }
    return f->take(f->ctx, plan->bytes.data + s->offset, (size_t)s->length, -1, 0, err);
}

/* The old version is compared before the last piece goes out: in bytes that are left aside a damage
 * makes no archive, either. */
static int feed_all(struct feeding *f, struct error *err)
{
    const struct trying *t = f->trying;
    const uint64_t size = t->exists ? t->old.attr.size : 0;
    const struct splice *first = append_plan_at(&t->plan, 0);
    const uint64_t kept = first->from == SPLICE_OLD ? first->length : 0;
    size_t i = 0;
    int code = kept > 0 ? feed_splice(f, append_plan_at(&t->plan, i++), err) : 0;
    if (code == 0)
        code = feed_old(f, kept, size - kept, false, err);
    if (code == 0 && t->exists)
        code = compare_old(f, err);
    for (; i < append_plan_count(&t->plan) && code == 0; i++)
        code = feed_splice(f, append_plan_at(&t->plan, i), err);
    return code;
}

static int feed_to(struct trying *t, take_fn *take, void *ctx, struct error *err)
{
    const enum checksum_type type = t->exists ? t->old.attr.checksum.type : CHECKSUM_NONE;
    _cleanup_(checksum_freep)
    struct checksum *sum = checksum_new(type);
    struct feeding f = {.trying = t, .take = take, .ctx = ctx, .sum = sum};
    return feed_all(&f, err);
}

/* --- what stays of the old version ------------------------------------------------------------ */

static const char *content_type(const struct trying *t)
{
    return t->exists ? t->old.attr.content_type : append_content_type(t->format);
}

/* Not what is told of the bytes, or by a backend. */
static bool stays(const char *name)
{
    static const char *const gone[] = {
        ATTR_MD5,      ATTR_PARTS,          ATTR_PART_SUMS,          OBJECT_SUM,
        OBJECT_SOURCE, OBJECT_BACKEND_ETAG, OBJECT_BACKEND_MODIFIED, OBJECT_BACKEND_SENT};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        if (strcmp(name, gone[i]) == 0)
            return false;
    }
    return true;
}

static bool next_pair(const struct trying *t, size_t *pos, const char **name, const char **value)
{
    while (t->exists && attr_meta_next(&t->old.attr, pos, name, value)) {
        if (stays(*name))
            return true;
    }
    return false;
}

/* --- into this target's store ----------------------------------------------------------------- */

static int check_same(void *ctx, const struct attr *current, struct error *err)
{
    struct trying *t = ctx;
    int code = object_call_check_owners(t->a->call, err);
    if (code != 0)
        return code;
    t->raced = (current != NULL) != t->exists ||
               (current != NULL && version_compare(&current->version, &t->old.attr.version) != 0);
    return t->raced ? error_set(err, E_PRECONDITION, "archive '%s' was written meanwhile",
                                t->a->call->name)
                    : 0;
}

static int take_into_put(void *ctx, const void *data, size_t len, int fd, uint64_t offset,
                         struct error *err)
{
    struct object_put *put = ctx;
    return fd >= 0 ? object_put_copy(put, fd, offset, data, len, err)
                   : object_put_write(put, data, len, err);
}

struct committing {
    struct object_call *call;
    struct quota_claim claim;
    struct object_put *put;
    struct error err;
    sem_t ended;
};

/* The request, and the bucket with it, may be gone once it is answered. */
static void committed(void *arg, const struct attr *attr, const struct error *err)
{
    struct committing *c = arg;
    c->err = *err;
    quota_claim_end(&c->claim);
    if (err->code == 0)
        c->call->done(c->call, attr, err);
    sem_post(&c->ended);
}

static void commit(void *arg)
{
    struct committing *c = arg;
    object_put_commit(c->put, committed, c);
}

static int commit_put(struct committing *c, struct object_put *put, struct error *err)
{
    c->put = put;
    sem_init(&c->ended, 0, 0);
    object_put_await_md5(put, commit, c);
    semaphore_wait(&c->ended);
    sem_destroy(&c->ended);
    return c->err.code == 0 ? 0 : error_set(err, c->err.code, "%s", c->err.message);
}

static int begin_put(struct trying *t, struct object_put **put, struct error *err)
{
    const struct bucket_props *props = &t->bucket->props;
    _cleanup_buf_ struct buf meta = BUF_INIT;
    size_t pos = 0;
    const char *name, *value;
    while (next_pair(t, &pos, &name, &value))
        attr_meta_add(&meta, name, value);
    const struct object_put_spec spec = {
        .bucket_id = t->bucket->id,
        .name = t->a->call->name,
        .size = t->plan.size,
        .durability = props->durability,
        .checksum = props->checksum,
        .content_type = content_type(t),
        .meta = meta.data,
        .meta_len = meta.len,
        .condition = {.check = check_same, .ctx = t},
        .md5 = props->etag == ETAG_MD5 ? t->a->target->hashers : NULL,
    };
    return object_put_begin(t->a->target->store, &spec, put, err);
}

static int store_here(struct trying *t, struct error *err)
{
    struct object_put *put = NULL;
    struct committing c = {.call = t->a->call};
    int code = quota_claim_begin(t->a->target->quotas, t->bucket, t->a->call->name, t->plan.size,
                                 NULL, &c.claim, err);
    if (code != 0)
        return code;
    code = begin_put(t, &put, err);
    if (code == 0)
        code = feed_to(t, take_into_put, put, err);
    if (code == 0)
        return commit_put(&c, put, err);
    object_put_abort(put);
    quota_claim_end(&c.claim);
    return code;
}

/* --- at the leader ---------------------------------------------------------------------------- */

struct passing {
    struct trying *trying;
    ec_take_fn *take;
    void *ctx;
};

static int take_into_call(void *ctx, const void *data, size_t len, int fd, uint64_t offset,
                          struct error *err)
{
    const struct passing *p = ctx;
    (void)fd, (void)offset;
    return p->take(p->ctx, data, len, err);
}

static int feed_call(void *ctx, ec_take_fn *take, void *take_ctx, struct error *err)
{
    struct passing p = {.trying = ctx, .take = take, .ctx = take_ctx};
    return feed_to(p.trying, take_into_call, &p, err);
}

static void put_headers(const struct trying *t, struct header_lines *h)
{
    size_t pos = 0;
    const char *name, *value;
    header_lines_add(h, OBJECT_COPY_HEADER ": " OBJECT_COPY_MADE);
    header_lines_add(h, object_type_line(h->arena, content_type(t)));
    if (t->exists)
        header_lines_printf(h, "If-Match: %s", t->etag);
    else
        header_lines_add(h, "If-None-Match: *");
    while (next_pair(t, &pos, &name, &value)) {
        const struct own_meta *own = own_meta_find(name);
        if (own == NULL)
            header_lines_meta(h, name, value);
        else if (own->sent != NULL)
            header_lines_printf(h, "%s: %s", own->sent, value);
    }
}

static void reply_stored(struct object_call *call, const struct buf *body)
{
    _cleanup_json_ json_t *doc = NULL;
    const char *etag = NULL;
    if (json_parse(body->data, body->len, &doc, NULL) == 0)
        (void)json_get_str(doc, NULL, "etag", &etag, NULL);
    if (etag != NULL && *etag != '\0')
        http_reply_header(call->req, "ETag", etag);
    http_reply_data(call->req, 200, "application/json", body->data, body->len);
}

static int send_put(struct trying *t, const struct node *leader, const struct cluster_state *s,
                    const struct bucket *b, struct copier_reply *reply, struct error *err)
{
    _cleanup_free_ char *url = location_of_copy(leader, s, b, t->a->call->name);
    struct header_lines h;
    header_lines_begin(&h);
    put_headers(t, &h);
    struct http_call call = {.method = HTTP_PUT,
                             .url = url,
                             .node = leader->id,
                             .headers = h.lines,
                             .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT,
                             .upload_length = (int64_t)t->plan.size,
                             .once = true,
                             .request_id = t->a->request_id};
    int code = object_copier_stream(t->a->target->copier, &call, feed_call, t, reply, err);
    header_lines_end(&h);
    return code;
}

static int store_at_leader(struct trying *t, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->a->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, t->bucket->id);
    const struct node *leader;
    struct copier_reply reply = {.status = 0};
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
    int code = object_copy_owner(s, b, t->a->call->name, &leader, err);
    if (code == 0)
        code = send_put(t, leader, s, b, &reply, err);
    t->raced = code == E_PRECONDITION && reply.status == 412;
    if (code == 0)
        reply_stored(t->a->call, &reply.body);
    buf_done(&reply.body);
    return code;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int append_to(struct trying *t, struct error *err)
{
    int code = find_format(t, err);
    if (code == 0)
        code = make_plan(t, err);
    if (code != 0)
        return code;
    code = is_here(t) ? store_here(t, err) : store_at_leader(t, err);
    append_plan_done(&t->plan);
    return code;
}

int append_try(struct append *a, bool *raced, struct error *err)
{
    struct trying t = {
        .a = a, .bucket = a->call->bucket, .old = {.fd = -1}, .piece = xmalloc(PIECE)};
    int code = open_newest(&t, err);
    if (code == 0) {
        t.source = (struct archive_source){
            .target = a->target, .bucket_id = t.bucket->id, .object = &t.old};
        code = t.exists ? archive_source_open(&t.source, err) : 0;
        if (code == 0)
            code = append_to(&t, err);
        archive_source_close(&t.source);
    }
    if (t.old.fd >= 0)
        close(t.old.fd);
    free(t.piece);
    *raced = t.raced;
    return code;
}
