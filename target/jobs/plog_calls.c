#include "target/jobs/plog_calls.h"

#include <string.h>

#include "cluster/members/location.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/rng.h"
#include "io/pool.h"
#include "net/client/client.h"
#include "plog/ends.h"
#include "plog/head.h"
#include "plog/type.h"
#include "target/archive/batch_fetch.h"
#include "target/jobs/burn_ask.h"
#include "target/node/header_lines.h"

enum {
    PARALLEL = 8, /* ends of segments that are read at once */
    ENDS_MAX = 64 /* that are in memory at once, beside the map */
};

static const char hint[] = "raise plog_index_max of the targets, or flatten with 'dfcctl plog "
                           "flatten' without --job";

/* --- a call ----------------------------------------------------------------------------------- */

struct asking {
    enum http_method method;
    const char *name;
    const char *line; /* of the headers, or NULL */
    const char *if_match;
    const void *body;
    size_t body_len, reply_max;
};

static int url_of(const struct plog_calls *p, const struct asking *a, char **node, struct buf *url,
                  struct error *err)
{
    struct target *t = p->job->target;
    char separator = '?';
    if (a->method == HTTP_GET)
        return batch_fetch_url(t, p->bucket, a->name, node, url, &separator, err);
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, p->bucket_id);
    const struct node *owner;
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed meanwhile");
    const int code = object_copy_owner(s, b, a->name, &owner, err);
    if (code != 0)
        return code;
    _cleanup_free_ char *text = location_of_copy(owner, s, b, a->name);
    buf_puts(url, text);
    *node = xstrdup(owner->id);
    return 0;
}

static bool is_inner(const char *name) /* of a container; else a head, or a flat object */
{
    return strncmp(name, PLOG_ROOT, strlen(PLOG_ROOT)) == 0;
}

static void put_headers(const struct asking *a, struct header_lines *h)
{
    if (a->line != NULL)
        header_lines_add(h, a->line);
    if (a->method == HTTP_PUT)
        header_lines_add(h, OBJECT_COPY_HEADER ": " OBJECT_COPY_MADE_DURABLE);
    if (a->if_match != NULL && strcmp(a->if_match, PLOG_ABSENT) == 0)
        header_lines_add(h, "If-None-Match: *");
    else if (a->if_match != NULL)
        header_lines_printf(h, "If-Match: %s", a->if_match);
}

static int ask_once(const struct plog_calls *p, const struct asking *a, struct copier_reply *reply,
                    struct error *err)
{
    _cleanup_buf_ struct buf url = BUF_INIT;
    _cleanup_free_ char *node = NULL;
    struct header_lines h;
    int code = url_of(p, a, &node, &url, err);
    if (code != 0)
        return code;
    header_lines_begin(&h);
    put_headers(a, &h);
    const struct http_call call = {.method = a->method,
                                   .url = buf_str(&url),
                                   .node = node,
                                   .headers = h.lines,
                                   .body = a->body,
                                   .body_len = a->body_len,
                                   .body_stays = true,
                                   .reply_max = a->reply_max};
    code = object_copier_call(p->job->copier, &call, reply, err);
    header_lines_end(&h);
    return code;
}

bool plog_calls_again(const struct plog_calls *p, int code, const struct error *why,
                      unsigned failures)
{
    return job_base_again(p->job, code == E_IN_DOUBT ? E_NOT_READY : code, why, failures);
}

/* Not what a read says of an object that is no plog. */
static int refused(const struct asking *a, int code, struct error *err)
{
    if (a->method != HTTP_PUT || code != E_INVALID)
        return code;
    return error_recode(
        err, E_UNSUPPORTED,
        "the target may be of an earlier release, which has no durable PUT of a job");
}

/* The caller clears the reply in any case. */
static int ask(const struct plog_calls *p, const struct asking *a, struct copier_reply *reply,
               struct error *err)
{
    struct error why;
    int code;
    for (unsigned failures = 1;; failures++) {
        why = ERROR_INIT;
        buf_clear(&reply->body);
        code = ask_once(p, a, reply, &why);
        if (!plog_calls_again(p, code, &why, failures))
            break;
    }
    if (code != 0 && p->job->stop.wanted)
        return job_base_check(p->job, err);
    if (code == E_OBJECT_NOT_FOUND)
        code = E_NOT_FOUND;
    return code != 0 ? refused(a, error_set(err, code, "%s", why.message), err) : 0;
}

static int keep_etag(const struct copier_reply *reply, char etag[static PLOG_ETAG_MAX],
                     struct error *err)
{
    if (reply->etag[0] == '\0' || strlen(reply->etag) + 1 == sizeof reply->etag)
        return error_set(err, E_INTERNAL, "the reply has no ETag, or too long a one");
    snprintf(etag, PLOG_ETAG_MAX, "%s", reply->etag);
    return 0;
}

/* --- objects ---------------------------------------------------------------------------------- */

/* An object that is too large for a head is not read. */
static int calls_get(void *ctx, const char *name, struct buf *body, char etag[static PLOG_ETAG_MAX],
                     struct error *err)
{
    const struct plog_calls *p = ctx;
    struct copier_reply reply = {.body = BUF_INIT};
    const struct asking a = {.method = HTTP_GET,
                             .name = name,
                             .reply_max = is_inner(name) ? p->index_max : PLOG_HEAD_BYTES_MAX};
    int code = ask(p, &a, &reply, err);
    if (code == E_TOO_LARGE && is_inner(name))
        code = error_set(err, E_TOO_LARGE, "it has more than %llu bytes: %s",
                         (unsigned long long)p->index_max, hint);
    else if (code == E_TOO_LARGE)
        code = error_set(err, E_INVALID, "the object is no plog: it is larger than a head");
    if (code == 0)
        code = keep_etag(&reply, etag, err);
    if (code == 0)
        buf_append(body, reply.body.data, reply.body.len);
    buf_done(&reply.body);
    return code;
}

static int get_range(const struct plog_calls *p, const char *name, const char *range,
                     uint64_t reply_max, struct buf *out, struct error *err)
{
    struct copier_reply reply = {.body = *out};
    const struct asking a = {
        .method = HTTP_GET, .name = name, .line = range, .reply_max = reply_max};
    int code = ask(p, &a, &reply, err);
    *out = reply.body;
    if (code == E_RANGE)
        code = error_set(err, E_CORRUPT, "'%s' is too short", name);
    return code;
}

static int calls_read(void *ctx, const char *name, void *to, size_t len, uint64_t offset,
                      struct error *err)
{
    _cleanup_buf_ struct buf bytes = BUF_INIT;
    char range[80];
    snprintf(range, sizeof range, "Range: bytes=%llu-%llu", (unsigned long long)offset,
             (unsigned long long)(offset + len - 1));
    const int code = get_range(ctx, name, range, len, &bytes, err);
    if (code == 0 && bytes.len != len)
        return error_set(err, E_CORRUPT, "'%s' is too short", name);
    if (code == 0)
        memcpy(to, bytes.data, len);
    return code;
}

static int calls_put(void *ctx, const char *name, const void *body, size_t len,
                     const char *if_match, char etag[static PLOG_ETAG_MAX], struct error *err)
{
    const struct plog_calls *p = ctx;
    const bool has_type = !is_inner(name) && !p->untyped_heads;
    struct copier_reply reply = {.body = BUF_INIT};
    const struct asking a = {.method = HTTP_PUT,
                             .name = name,
                             .line = has_type ? "Content-Type: " PLOG_TYPE : "Content-Type:",
                             .if_match = if_match,
                             .body = body,
                             .body_len = len};
    int code = ask(p, &a, &reply, err);
    if (code == 0)
        code = keep_etag(&reply, etag, err);
    buf_done(&reply.body);
    return code;
}

static int calls_remove(void *ctx, const char *name, const char *if_match, struct error *err)
{
    struct copier_reply reply = {.body = BUF_INIT};
    const struct asking a = {.method = HTTP_DELETE, .name = name, .if_match = if_match};
    const int code = ask(ctx, &a, &reply, err);
    buf_done(&reply.body);
    return code;
}

int plog_calls_stream(const struct plog_calls *p, const char *name, uint64_t size,
                      const char *if_match, copier_feed_fn *feed, void *ctx, struct error *err)
{
    const struct asking a = {
        .method = HTTP_PUT, .name = name, .line = "Content-Type:", .if_match = if_match};
    _cleanup_buf_ struct buf url = BUF_INIT;
    _cleanup_free_ char *node = NULL;
    struct header_lines h;
    int code = url_of(p, &a, &node, &url, err);
    if (code != 0)
        return code;
    header_lines_begin(&h);
    put_headers(&a, &h);
    struct http_call call = {.method = HTTP_PUT,
                             .url = buf_str(&url),
                             .node = node,
                             .headers = h.lines,
                             .stall_timeout_ms = HTTP_NO_STALL_TIMEOUT,
                             .upload_length = (int64_t)size,
                             .once = true};
    code = object_copier_stream(p->job->copier, &call, feed, ctx, NULL, err);
    header_lines_end(&h);
    return refused(&a, code, err);
}

/* --- lists ------------------------------------------------------------------------------------ */

struct listing {
    const char *after;
    struct plog_names *out;
};

static int take_name(void *ctx, const char *name, const struct burn_found *found, struct error *err)
{
    const struct listing *l = ctx;
    (void)found;
    (void)err;
    if (l->after == NULL || strcmp(name, l->after) > 0)
        plog_names_add(l->out, name);
    return 0;
}

static int calls_list(void *ctx, const char *prefix, const char *after, struct plog_names *out,
                      struct error *err)
{
    const struct plog_calls *p = ctx;
    struct listing l = {.after = after, .out = out};
    struct error why = ERROR_INIT;
    const int code = burn_ask_list(p->job, p->bucket, prefix, take_name, &l, &why);
    return code != 0 ? error_set(err, code, "%s", why.message) : 0;
}

/* --- ends of segments ------------------------------------------------------------------------- */

struct reading {
    struct plog_calls *calls;
    const struct plog_names *names;
    size_t first;
    struct plog_end ends[ENDS_MAX];
};

/* Before a long index is read, as several are at once. */
static int admit(void *ctx, const struct plog_footer *f, struct error *err)
{
    struct plog_calls *p = ctx;
    const uint64_t bytes = plog_footer_memory(f);
    if (atomic_fetch_add(&p->index_bytes, bytes) + bytes <= p->index_max)
        return 0;
    return error_set(err, E_TOO_LARGE,
                     "the indexes of the plog need more than %llu bytes of memory: %s",
                     (unsigned long long)p->index_max, hint);
}

static int read_tail(void *ctx, const char *name, uint64_t len, struct buf *out, struct error *err)
{
    const struct plog_calls *p = ctx;
    char range[64];
    snprintf(range, sizeof range, "Range: bytes=-%llu", (unsigned long long)len);
    return get_range(p, name, range, len, out, err);
}

static int read_end(void *ctx, size_t i, struct error *err)
{
    struct reading *r = ctx;
    struct plog_calls *p = r->calls;
    struct plog_end *end = &r->ends[i];
    return plog_end_read(read_tail, admit, p, r->names->items[r->first + i], end, err);
}

static int add_part(struct reading *r, size_t n, struct plog_map *map, struct error *err)
{
    struct error why = ERROR_INIT;
    int code = parallel_for("plog", PARALLEL, n, read_end, r, &why);
    if (code != 0)
        error_set(err, code, "%s", why.message);
    for (size_t i = 0; i < n; i++) {
        if (code == 0)
            code = plog_end_add(&r->ends[i], r->names->items[r->first + i], map, err);
        plog_end_done(&r->ends[i]);
    }
    return code;
}

static int calls_ends(void *ctx, const struct plog_names *segments, struct plog_map *map,
                      struct error *err)
{
    struct reading r = {.calls = ctx, .names = segments};
    int code = 0;
    atomic_store(&r.calls->index_bytes, plog_map_memory(map));
    for (; r.first < segments->count && code == 0; r.first += ENDS_MAX) {
        const size_t left = segments->count - r.first;
        code = add_part(&r, left < ENDS_MAX ? left : ENDS_MAX, map, err);
    }
    return code;
}

/* --- the rest --------------------------------------------------------------------------------- */

static uint64_t calls_now(void *ctx)
{
    (void)ctx;
    return (uint64_t)clock_wall_ms();
}

static uint64_t calls_random(void *ctx)
{
    uint64_t value;
    (void)ctx;
    random_bytes(&value, sizeof value);
    return value;
}

uint64_t plog_calls_clock(void *ctx)
{
    (void)ctx;
    return clock_boot_ms();
}

int plog_calls_check(void *ctx, struct error *err)
{
    const struct plog_calls *p = ctx;
    return job_base_check(p->job, err);
}

struct plog_store plog_calls_store(struct plog_calls *p)
{
    return (struct plog_store){.ctx = p,
                               .whole_max = p->index_max,
                               .map_max = p->index_max,
                               .map_hint = hint,
                               .list = calls_list,
                               .get = calls_get,
                               .read = calls_read,
                               .put = calls_put,
                               .remove = calls_remove,
                               .ends = calls_ends,
                               .now_ms = calls_now,
                               .random = calls_random};
}
