/* GET and HEAD.  The way of a hot object: open, fgetxattr, fstat, and then the file goes out.
 *
 * With verify_on_read whole objects pass through their checksum first: a small one is read, checked
 * and sent; of a large one the last piece is held back until the checksum is right, so that a
 * damaged object cannot look complete. */
#include "target/object_routes.h"

#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/call.h"
#include "target/read_range.h"
#include "target/target.h"

/* --- headers ---------------------------------------------------------------------------------- */

static void put_meta_headers(struct http_request *req, const struct attr *a)
{
    size_t pos = 0;
    const char *name, *value;
    while (attr_meta_next(a, &pos, &name, &value)) {
        char header[sizeof OBJECT_META_PREFIX + ATTR_META_MAX];
        snprintf(header, sizeof header, OBJECT_META_PREFIX "%s", name);
        http_reply_header(req, header, value);
    }
}

static void put_validators(struct http_request *req, const struct attr *a, const char *etag)
{
    char date[32];
    http_reply_header(req, "ETag", etag);
    http_reply_header(req, "Last-Modified", clock_format_http(a->modified_ms / 1000, date));
}

static const char *content_type(const struct attr *a)
{
    return a->content_type != NULL ? a->content_type : "application/octet-stream";
}

static void put_headers(struct http_request *req, const struct attr *a)
{
    char version[VERSION_TEXT_MAX], hex[2 * CHECKSUM_MAX + 1];
    checksum_hex(&a->checksum, hex);
    http_reply_header(req, "Accept-Ranges", "bytes");
    http_reply_header(req, "Dfc-Version", version_format(&a->version, version));
    http_reply_header(req, "Dfc-Checksum-Type", checksum_name(a->checksum.type));
    http_reply_header(req, "Dfc-Checksum-Value", hex);
    put_meta_headers(req, a);
}

/* --- verify_on_read --------------------------------------------------------------------------- */

struct verified {
    struct target *target;
    char *name;
    int fd;
    uint64_t at, size;
    struct checksum *running;
    struct checksum_value want;
};

static void verified_free(void *ctx)
{
    struct verified *v = ctx;
    close(v->fd);
    checksum_free(v->running);
    free(v->name);
    free(v);
}

static struct verified *verified_new(const struct object_call *call, const struct object *o)
{
    struct verified *v = xcalloc(1, sizeof *v);
    *v = (struct verified){.target = call->target,
                           .name = xstrdup(call->name),
                           .fd = o->fd,
                           .size = o->attr.size,
                           .running = checksum_new(o->attr.checksum.type),
                           .want = o->attr.checksum};
    return v;
}

/* The next piece, checked when it is the last. */
static int verified_next(struct verified *v, char *out, size_t len, struct error *err)
{
    int code = file_pread_full(v->fd, out, len, v->at, err);
    if (code != 0)
        return code;
    checksum_update(v->running, out, len);
    v->at += len;
    if (v->at < v->size)
        return 0;
    struct checksum_value got;
    checksum_final(v->running, &got);
    if (checksum_equal(&got, &v->want))
        return 0;
    metric_add(metric_get(M_checksum_errors_total, NULL), 1);
    return error_set(err, E_CORRUPT, "object '%s' does not have its checksum any more", v->name);
}

static ssize_t verified_read(void *ctx, char *out, size_t max)
{
    struct verified *v = ctx;
    struct error err = ERROR_INIT;
    if (v->at == v->size)
        return HTTP_STREAM_END;
    size_t len = v->size - v->at < max ? (size_t)(v->size - v->at) : max;
    if (verified_next(v, out, len, &err) == 0)
        return (ssize_t)len;
    log_error("object cut off", lerr(&err));
    return HTTP_STREAM_CUT;
}

static void reply_verified(const struct object_call *call, const struct object *o)
{
    static const struct http_stream_ops ops = {.read = verified_read, .free = verified_free};
    struct verified *v = verified_new(call, o);
    struct error err = ERROR_INIT;
    if (v->size > call->target->params.put_buffer) {
        put_headers(call->req, &o->attr);
        http_reply_header(call->req, "Content-Type", content_type(&o->attr));
        http_reply_stream(call->req, 200, (int64_t)v->size, &ops, v);
        return;
    }
    _cleanup_free_ char *data = xmalloc(v->size + 1);
    if (verified_next(v, data, v->size, &err) == 0) {
        put_headers(call->req, &o->attr);
        http_reply_data(call->req, 200, content_type(&o->attr), data, v->size);
    } else {
        object_call_fail(call, "get", &err);
    }
    verified_free(v);
}

/* --- GET -------------------------------------------------------------------------------------- */

/* Range is GET's alone: to HEAD it means nothing. */
static int pick_range(const struct object_call *call, const struct attr *a, const char *etag,
                      struct read_range *range, struct error *err)
{
    bool get = http_method(call->req) == HTTP_GET;
    const struct read_question q = {.range = get ? http_header(call->req, "Range") : NULL,
                                    .if_range = http_header(call->req, "If-Range"),
                                    .offset = http_query(call->req, "offset"),
                                    .length = http_query(call->req, "length"),
                                    .size = a->size,
                                    .etag = etag,
                                    .modified_s = a->modified_ms / 1000};
    return read_range_pick(&q, range, err);
}

static void put_content_range(struct http_request *req, const struct read_range *range,
                              uint64_t size)
{
    char text[80];
    if (range != NULL)
        snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)range->offset,
                 (unsigned long long)(range->offset + range->length - 1), (unsigned long long)size);
    else
        snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)size);
    http_reply_header(req, "Content-Range", text);
}

/* The descriptor in `o` is given away, or closed. */
static void reply_object(const struct object_call *call, const struct object *o)
{
    const struct attr *a = &o->attr;
    char etag[VERSION_TEXT_MAX + 2], version[VERSION_TEXT_MAX];
    snprintf(etag, sizeof etag, "\"%s\"", version_format(&a->version, version));
    struct error err = ERROR_INIT;
    struct read_range range;
    int code = object_call_check_conditions(call, http_method(call->req), a, &err);
    if (code == 0)
        code = pick_range(call, a, etag, &range, &err);
    if (code == 0 || code == E_NOT_MODIFIED)
        put_validators(call->req, a, etag);
    if (code == E_RANGE)
        put_content_range(call->req, NULL, a->size);
    if (code != 0) {
        close(o->fd);
        object_call_fail(call, "get", &err);
        return;
    }
    bool get = http_method(call->req) == HTTP_GET;
    metric_add(call->target->reads, get);
    metric_add(call->target->read_bytes, get ? range.length : 0);
    if (get && range.status == 200 && call->bucket->props.verify_on_read &&
        a->checksum.type != CHECKSUM_NONE) {
        reply_verified(call, o);
        return;
    }
    put_headers(call->req, a);
    http_reply_header(call->req, "Content-Type", content_type(a));
    if (range.status == 206)
        put_content_range(call->req, &range, a->size);
    http_reply_file(call->req, range.status, o->fd, range.offset, range.length);
}

static void serve_read(struct object_call *call)
{
    struct object o;
    struct error err = ERROR_INIT;
    if (object_open(call->target->store, call->bucket->id, call->name, &o, &err) == 0)
        reply_object(call, &o);
    else
        object_call_fail(call, "get", &err);
}

void object_read_begin(struct http_request *req)
{
    object_call_run(req, serve_read);
}
