/* What one client gets from the backend for itself: the head of an object, a range, and, where
 * there is no room to store it, the whole.
 *
 * An asker's thread waits for the head of the backend's answer; the body then goes from the
 * connection to the client by a pipe, and nobody waits for the client. */
#include "target/cold/internal.h"

#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "target/node/miss.h"
#include "target/node/reply.h"

/* --- which range ------------------------------------------------------------------------------ */

static int number_of(const char *name, const char *text, uint64_t *out, struct error *err)
{
    int code = text != NULL ? parse_u64(text, out, err) : 0;
    return code == 0 ? 0 : error_recode(err, code, "parameter '%s'", name);
}

/* An object's size is not known yet: what lies outside is for the backend to say. */
static int pick_by_query(const char *offset_text, const char *length_text, bool *ranged,
                         char text[static COLD_RANGE_MAX], struct error *err)
{
    uint64_t offset = 0, length = UINT64_MAX;
    int code = number_of("offset", offset_text, &offset, err);
    if (code == 0)
        code = number_of("length", length_text, &length, err);
    if (code != 0)
        return code;
    if (length == 0)
        return error_set(err, E_RANGE, "the range is empty");
    *ranged = true;
    if (length - 1 > UINT64_MAX - offset || length == UINT64_MAX)
        snprintf(text, COLD_RANGE_MAX, "bytes=%llu-", (unsigned long long)offset);
    else
        snprintf(text, COLD_RANGE_MAX, "bytes=%llu-%llu", (unsigned long long)offset,
                 (unsigned long long)(offset + length - 1));
    return 0;
}

static int pick_by_header(const char *header, bool *ranged, char text[static COLD_RANGE_MAX],
                          struct error *err)
{
    struct http_range range;
    enum http_range_result result =
        header != NULL ? http_range_parse(header, INT64_MAX, &range) : HTTP_RANGE_NONE;
    if (result == HTTP_RANGE_UNSATISFIABLE)
        return error_set(err, E_RANGE, "the range is outside the object");
    if (result == HTTP_RANGE_NONE)
        return 0;
    /* Sizes are not known: a range that counts from the end moves with the size. */
    struct http_range other = range;
    http_range_parse(header, INT64_MAX - 1, &other);
    uint64_t end = range.offset + range.length;
    *ranged = true;
    if (other.offset != range.offset)
        snprintf(text, COLD_RANGE_MAX, "bytes=-%llu", (unsigned long long)range.length);
    else if (end == INT64_MAX)
        snprintf(text, COLD_RANGE_MAX, "bytes=%llu-", (unsigned long long)range.offset);
    else
        snprintf(text, COLD_RANGE_MAX, "bytes=%llu-%llu", (unsigned long long)range.offset,
                 (unsigned long long)(end - 1));
    return 0;
}

int cold_pick_range(const struct object_call *call, bool *ranged, char text[static COLD_RANGE_MAX],
                    struct error *err)
{
    const char *offset = http_query(call->req, "offset"), *length = http_query(call->req, "length");
    *ranged = false;
    if (offset != NULL || length != NULL)
        return pick_by_query(offset, length, ranged, text, err);
    return pick_by_header(http_header(call->req, "Range"), ranged, text, err);
}

/* --- the reply's head ------------------------------------------------------------------------- */

void cold_put_headers(struct http_request *req, const struct backend_facts *facts)
{
    char date[32];
    const struct attr meta = {.meta = facts->meta, .meta_len = facts->meta_len};
    if (backend_etag_is_strong(facts->etag))
        http_reply_header(req, "ETag", facts->etag);
    if (facts->modified_s >= 0)
        http_reply_header(req, "Last-Modified", clock_format_http(facts->modified_s, date));
    http_reply_header(req, "Accept-Ranges", "bytes");
    http_reply_header(req, "Content-Type",
                      *facts->content_type != '\0' ? facts->content_type
                                                   : "application/octet-stream");
    if (*facts->encoding != '\0')
        http_reply_header(req, "Content-Encoding", facts->encoding);
    object_reply_meta(req, &meta, false);
}

static void put_content_range(struct http_request *req, const struct backend_facts *facts)
{
    char text[96], size[24] = "*";
    if (facts->size >= 0)
        snprintf(size, sizeof size, "%lld", (long long)facts->size);
    snprintf(text, sizeof text, "bytes %llu-%llu/%s", (unsigned long long)facts->offset,
             (unsigned long long)(facts->offset + (uint64_t)facts->length - 1), size);
    http_reply_header(req, "Content-Range", text);
}

/* --- the body --------------------------------------------------------------------------------- */

/* The last bytes are held until the end of the pipe has said that it was all, and the checksum,
 * where there is one, is right. */
struct pass {
    struct http_request *req;
    struct bpipe *pipe;
    struct checksum *sum; /* or NULL */
    struct checksum_value want;
    uint64_t left; /* to come out of the pipe; UINT64_MAX: unknown */
    char *held;
    size_t held_len, held_at;
    bool released;
};

static void pass_wake(void *arg)
{
    struct pass *p = arg;
    http_wake(p->req);
}

static void pass_free(void *ctx)
{
    struct pass *p = ctx;
    struct error why;
    error_set(&why, E_CANCELLED, "the reader went away");
    bpipe_on_data(p->pipe, NULL, NULL);
    bpipe_cancel(p->pipe, &why);
    bpipe_unref(p->pipe);
    checksum_free(p->sum);
    free(p->held);
    free(p);
}

static bool pass_is_right(struct pass *p)
{
    struct checksum_value got;
    if (p->left != 0 && p->left != UINT64_MAX)
        return false;
    if (p->sum == NULL)
        return true;
    checksum_final(p->sum, &got);
    return checksum_equal(&got, &p->want);
}

/* Bytes that may go out at once: > 0, or what the pipe says. */
static ssize_t pull_open(struct pass *p, char *out, size_t max)
{
    uint64_t open = p->left == UINT64_MAX ? UINT64_MAX : p->left - COLD_HELD_BYTES;
    return bpipe_try_read(p->pipe, out, open < max ? (size_t)open : max, NULL);
}

/* One more than there may be, so that the end is seen. */
static ssize_t pull_held(struct pass *p)
{
    if (p->held == NULL)
        p->held = xmalloc(COLD_HELD_BYTES + 1);
    ssize_t got = bpipe_try_read(p->pipe, p->held + p->held_len, (size_t)p->left + 1, NULL);
    if (got > 0 && (uint64_t)got > p->left)
        return HTTP_STREAM_CUT;
    p->held_len += got > 0 ? (size_t)got : 0;
    return got;
}

static ssize_t pass_release(struct pass *p, char *out, size_t max)
{
    size_t left = p->held_len - p->held_at, len = left < max ? left : max;
    if (len == 0)
        return HTTP_STREAM_END;
    memcpy(out, p->held + p->held_at, len);
    p->held_at += len;
    return (ssize_t)len;
}

static void pass_count(struct pass *p, const char *data, size_t len)
{
    if (p->sum != NULL)
        checksum_update(p->sum, data, len);
    if (p->left != UINT64_MAX)
        p->left -= len;
}

static ssize_t pass_read(void *ctx, char *out, size_t max)
{
    struct pass *p = ctx;
    while (!p->released) {
        bool hold = p->left <= COLD_HELD_BYTES;
        size_t held_before = p->held_len;
        ssize_t got = hold ? pull_held(p) : pull_open(p, out, max);
        if (got == BPIPE_AGAIN)
            return 0;
        if (got < 0 || (got == BPIPE_END && !pass_is_right(p)))
            return HTTP_STREAM_CUT;
        p->released = got == BPIPE_END;
        pass_count(p, hold ? p->held + held_before : out, (size_t)got);
        if (got > 0 && !hold)
            return got;
    }
    return pass_release(p, out, max);
}

static void pass_reply(struct object_call *call, int status, const struct backend_facts *facts,
                       struct bpipe *pipe)
{
    static const struct http_stream_ops ops = {.read = pass_read, .free = pass_free};
    struct pass *p = xcalloc(1, sizeof *p);
    *p = (struct pass){.req = call->req,
                       .pipe = pipe,
                       .left = facts->length >= 0 ? (uint64_t)facts->length : UINT64_MAX};
    if (status == 200 && facts->sum.type != CHECKSUM_NONE) {
        p->sum = checksum_new(facts->sum.type);
        p->want = facts->sum;
    }
    metric_add(call->target->reads, 1);
    metric_add(call->target->cold->passed, 1);
    if (facts->length > 0)
        metric_add(call->target->read_bytes, (uint64_t)facts->length);
    cold_put_headers(call->req, facts);
    if (status == 206)
        put_content_range(call->req, facts);
    bpipe_on_data(pipe, pass_wake, p);
    http_reply_stream(call->req, status, facts->length, &ops, p);
}

/* --- the head alone --------------------------------------------------------------------------- */

static ssize_t no_body(void *ctx, char *out, size_t max)
{
    (void)ctx;
    (void)out;
    (void)max;
    return HTTP_STREAM_CUT;
}

static void no_free(void *ctx)
{
    (void)ctx;
}

static void reply_head(struct object_call *call, const struct backend_facts *facts)
{
    static const struct http_stream_ops ops = {.read = no_body, .free = no_free};
    cold_put_headers(call->req, facts);
    http_reply_stream(call->req, 200, facts->length, &ops, NULL);
}

/* --- the question ----------------------------------------------------------------------------- */

int cold_check_conditions(const struct object_call *call, const struct backend_facts *facts,
                          struct error *err)
{
    const struct http_conditions c = {
        .if_match = http_header_list(call->req, "If-Match"),
        .if_none_match = http_header_list(call->req, "If-None-Match"),
        .if_modified_since = http_header(call->req, "If-Modified-Since"),
        .if_unmodified_since = http_header(call->req, "If-Unmodified-Since"),
    };
    bool strong = facts != NULL && backend_etag_is_strong(facts->etag);
    const char *etag = strong ? facts->etag : facts != NULL ? "\"?\"" : NULL;
    int code =
        http_conditions_check(&c, http_method(call->req), etag,
                              facts != NULL && facts->modified_s > 0 ? facts->modified_s : 0);
    if (code == E_NOT_MODIFIED && strong)
        http_reply_header(call->req, "ETag", facts->etag);
    return code == 0 ? 0
                     : error_set(err, code,
                                 "a condition of the request wants object '%s' "
                                 "otherwise than the backend has it",
                                 call->name);
}

/* Is this the range that was asked for? */
static int check_range(const char *range, const struct backend_facts *facts, struct error *err)
{
    unsigned long long first;
    bool from_end = range[strlen("bytes=")] == '-';
    if (facts->length > 0 &&
        (from_end || (sscanf(range, "bytes=%llu-", &first) == 1 && facts->offset == first)))
        return 0;
    return error_set(err, E_BACKEND, "the backend answered with another range than '%s'", range);
}

static void drop_pipe(struct bpipe **pipe)
{
    struct error why;
    error_set(&why, E_CANCELLED, "the whole is read instead");
    if (*pipe != NULL)
        bpipe_cancel(*pipe, &why);
    bpipe_unref(steal(*pipe));
}

/* A server without ranges, and an object without bytes, which has none. */
static bool wants_whole(const char *range, int code, const struct backend_facts *facts)
{
    return (code == 0 && facts->status == 200) ||
           (code == E_RANGE && strncmp(range, "bytes=0-", 8) == 0);
}

/* Its next reading is a local one. */
static void keep_whole(struct cold *c, struct object_call *call, const struct backend_facts *facts)
{
    enum range_fetch how = call->bucket->props.range_fetch;
    bool small = facts->size >= 0 && (uint64_t)facts->size <= call->target->params.cold_range_fetch;
    if (how == RANGE_FETCH_ALWAYS || (how == RANGE_FETCH_SIZE && small))
        fetch_join(c, call, NULL, false);
}

static void pass_fail(struct object_call *call, struct error *err)
{
    if (err->code == E_OBJECT_NOT_FOUND)
        miss_next(call);
    else
        object_call_fail(call, "get", err);
}

static void ask_range(struct cold *c, struct object_call *call, const char *range)
{
    struct backend_facts facts = {.status = 0};
    struct bpipe *pipe;
    struct error err = ERROR_INIT;
    const struct backend_ask ask = {.method = HTTP_GET,
                                    .name = call->name,
                                    .range = range,
                                    .if_match = http_header(call->req, "If-Match")};
    int code = exchange_begin(&c->env, call->bucket->props.backend, &ask, COLD_PIPE_BYTES, &facts,
                              &pipe, &err);
    if (wants_whole(range, code, &facts)) {
        drop_pipe(&pipe);
        fetch_join(c, call, call, true);
        return;
    }
    if (code == 0)
        code = check_range(range, &facts, &err);
    if (code == 0) {
        keep_whole(c, call, &facts);
        pass_reply(call, 206, &facts, pipe);
    } else {
        drop_pipe(&pipe);
        pass_fail(call, &err);
    }
}

static void ask_whole(struct cold *c, struct object_call *call)
{
    struct backend_facts facts;
    struct bpipe *pipe;
    struct error err = ERROR_INIT;
    const struct backend_ask ask = {.method = http_method(call->req), .name = call->name};
    int code = exchange_begin(&c->env, call->bucket->props.backend, &ask, COLD_PIPE_BYTES, &facts,
                              &pipe, &err);
    if (code == 0)
        code = cold_check_conditions(call, &facts, &err);
    if (code != 0) {
        drop_pipe(&pipe);
        pass_fail(call, &err);
    } else if (ask.method == HTTP_HEAD) {
        reply_head(call, &facts);
    } else {
        pass_reply(call, 200, &facts, pipe);
    }
}

static void pass_run(void *arg)
{
    struct object_call *call = arg;
    struct cold *c = call->target->cold;
    bool ranged = false;
    char range[COLD_RANGE_MAX];
    struct error err = ERROR_INIT;
    log_set_request(http_request_id(call->req));
    if (http_method(call->req) == HTTP_GET && cold_pick_range(call, &ranged, range, &err) != 0)
        object_call_fail(call, "get", &err);
    else if (ranged)
        ask_range(c, call, range);
    else
        ask_whole(c, call);
    log_set_request(NULL);
}

void cold_pass(struct cold *c, struct object_call *call)
{
    struct error err = ERROR_INIT;
    if (cold_submit(&c->askers, call->bucket->props.backend, pass_run, call, &err) != 0)
        object_call_fail(call, "get", &err);
}
