#include "gateway/objects.h"

#include <string.h>
#include <strings.h>

#include "common/arena.h"
#include "common/mem.h"
#include "gateway/body.h"
#include "gateway/etag.h"
#include "gateway/forward.h"
#include "gateway/reply.h"
#include "net/http/pipe.h"

#define S3_META "x-amz-meta-"
#define NATIVE_META "Dfc-Meta-"

enum { META_BYTES_MAX = 2048 };

/* --- from an S3 head to native headers -------------------------------------------------------- */

struct lines {
    struct arena *arena;
    const char **lines; /* NULL-terminated */
    size_t count;
};

/* As many as the request has headers are enough. */
static void lines_begin(struct lines *l, struct http_request *req, const struct gateway_call *call)
{
    l->arena = http_arena(req);
    l->count = 0;
    l->lines = arena_alloc(l->arena, (call->head.header_count + 1) * sizeof l->lines[0]);
}

static void add_line(struct lines *l, const char *name, const char *value)
{
    l->lines[l->count++] = http_header_line(l->arena, name, value);
}

static void put_as_it_is(const char *value, struct buf *out)
{
    buf_puts(out, value);
}

/* The body's coding in chunks ends here. */
static void put_encoding(const char *value, struct buf *out)
{
    static const char chunked[] = "aws-chunked";
    const char *separator = "";
    for (const char *at = value; *at != '\0';) {
        size_t len = strcspn(at, ", \t");
        if (len > 0 && (len != strlen(chunked) || strncasecmp(at, chunked, len) != 0)) {
            buf_printf(out, "%s%.*s", separator, (int)len, at);
            separator = ", ";
        }
        at += len;
        at += strspn(at, ", \t");
    }
}

struct translation {
    const char *name;
    void (*put)(const char *value, struct buf *out);
};

/* If-Range is left out with its Range: it is asked of a tag that only the target knows. */
static const struct translation of_a_read[] = {
    {"If-Match", etag_put_native},
    {"If-None-Match", etag_put_native},
    {"If-Modified-Since", put_as_it_is},
    {"If-Unmodified-Since", put_as_it_is},
    {NULL, NULL},
};
static const struct translation of_a_write[] = {
    {"If-Match", etag_put_native},      {"If-None-Match", etag_put_native},
    {"Content-Type", put_as_it_is},     {"Content-MD5", put_as_it_is},
    {"Content-Encoding", put_encoding}, {NULL, NULL},
};
static const struct translation of_a_delete[] = {
    {"If-Match", etag_put_native},
    {NULL, NULL},
};

static void translate(struct lines *l, const struct gateway_call *call,
                      const struct translation *rows)
{
    for (; rows->name != NULL; rows++) {
        _cleanup_buf_ struct buf value = BUF_INIT;
        const char *text = s3_header(&call->head, rows->name);
        if (text != NULL)
            rows->put(text, &value);
        if (text != NULL && (value.len > 0 || rows->put != put_encoding))
            add_line(l, rows->name, buf_str(&value));
    }
}

static enum s3_error add_meta(struct lines *l, const struct gateway_call *call,
                              struct s3_failure *why)
{
    size_t prefix = strlen(S3_META), bytes = 0;
    for (size_t i = 0; i < call->head.header_count; i++) {
        const struct s3_field *h = &call->head.headers[i];
        if (strncasecmp(h->name, S3_META, prefix) != 0)
            continue;
        bytes += strlen(h->name) - prefix + strlen(h->value);
        if (bytes > META_BYTES_MAX)
            return s3_fail(why, S3_METADATA_TOO_LARGE, NULL);
        add_line(l, arena_printf(l->arena, NATIVE_META "%s", h->name + prefix), h->value);
    }
    return S3_OK;
}

/* --- from a native reply to S3's -------------------------------------------------------------- */

static void reply_etag(struct http_request *req, const struct forward_reply *r)
{
    _cleanup_buf_ struct buf tag = BUF_INIT;
    const char *native = forward_header(r, "ETag"), *md5 = forward_header(r, "Dfc-Md5");
    if (native == NULL)
        return;
    if (md5 != NULL)
        buf_printf(&tag, "\"%s\"", md5);
    else
        etag_put_s3(native, &tag);
    http_reply_header(req, "ETag", buf_str(&tag));
}

static void reply_failure(struct http_request *req, const struct forward_reply *r)
{
    const char *range = forward_header(r, "Content-Range");
    if (r->err.code == E_RANGE && range != NULL)
        http_reply_header(req, "Content-Range", range);
    http_reply_error(req, &r->err);
}

/* The query may replace these headers of the reply. */
static const struct {
    const char *parameter, *header;
} overrides[] = {
    {"response-content-type", "Content-Type"},
    {"response-content-encoding", "Content-Encoding"},
    {"response-content-language", "Content-Language"},
    {"response-content-disposition", "Content-Disposition"},
    {"response-cache-control", "Cache-Control"},
    {"response-expires", "Expires"},
};

static bool is_overridden(const struct gateway_call *call, const char *header)
{
    for (size_t i = 0; i < sizeof overrides / sizeof overrides[0]; i++) {
        if (strcasecmp(overrides[i].header, header) == 0)
            return s3_query_get(&call->s3.query, overrides[i].parameter) != NULL;
    }
    return false;
}

static void reply_overrides(struct http_request *req, const struct gateway_call *call)
{
    for (size_t i = 0; i < sizeof overrides / sizeof overrides[0]; i++) {
        const char *value = s3_query_get(&call->s3.query, overrides[i].parameter);
        if (value != NULL)
            http_reply_header(req, overrides[i].header, value);
    }
}

static bool passes(const char *name)
{
    static const char *const names[] = {
        "Accept-Ranges", "Content-Encoding",        "Content-Range",          "Content-Type",
        "Last-Modified", "Content-Security-Policy", "X-Content-Type-Options",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static void reply_headers(struct http_request *req, const struct gateway_call *call,
                          const struct forward_reply *r)
{
    size_t prefix = strlen(NATIVE_META);
    for (const struct forward_header *h = r->headers; h != NULL; h = h->next) {
        if (strncasecmp(h->name, NATIVE_META, prefix) == 0)
            http_reply_header(req, arena_printf(http_arena(req), S3_META "%s", h->name + prefix),
                              h->value);
        else if (passes(h->name) && !is_overridden(call, h->name))
            http_reply_header(req, h->name, h->value);
    }
    reply_overrides(req, call);
    reply_etag(req, r);
}

/* --- GetObject, HeadObject -------------------------------------------------------------------- */

static void reply_read(struct http_request *req, const struct gateway_call *call,
                       const struct forward_reply *r)
{
    if (r->err.code != 0 && r->err.code != E_NOT_MODIFIED) {
        reply_failure(req, r);
        return;
    }
    reply_headers(req, call, r);
    if (r->err.code == E_NOT_MODIFIED)
        http_reply_empty(req, 304);
    else
        http_reply_pipe(req, r->status, r->length, r->download);
}

/* Parameters that ask for less than the object, and that no operation is told by. */
static enum s3_error check_whole(const struct gateway_call *call, struct s3_failure *why)
{
    const struct s3_query *q = &call->s3.query;
    const char *version = s3_query_get(q, "versionId");
    if (version != NULL && strcmp(version, "null") != 0)
        return s3_fail(why, S3_INVALID_ARGUMENT, "The only version of an object is 'null'");
    if (s3_query_get(q, "partNumber") != NULL)
        return s3_fail(why, S3_NOT_IMPLEMENTED, "This server has no single parts");
    return S3_OK;
}

static enum s3_error check_read(const struct gateway_call *call, struct s3_failure *why)
{
    const struct s3_query *q = &call->s3.query;
    enum s3_error e = check_whole(call, why);
    if (e != S3_OK)
        return e;
    for (size_t i = 0; i < sizeof overrides / sizeof overrides[0]; i++) {
        if (call->credential.signing == S3_SIGNED_NOT &&
            s3_query_get(q, overrides[i].parameter) != NULL)
            return s3_fail(why, S3_INVALID_REQUEST, "%s needs a signed request",
                           overrides[i].parameter);
    }
    return S3_OK;
}

void s3_get_object(struct http_request *req, const struct gateway_call *call)
{
    struct lines lines;
    struct s3_failure why;
    if (check_read(call, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    const char *range = s3_header(&call->head, "Range");
    if (s3_header(&call->head, "If-Range") != NULL || http_method(req) == HTTP_HEAD)
        range = NULL;
    lines_begin(&lines, req, call);
    translate(&lines, call, of_a_read);
    if (range != NULL)
        add_line(&lines, "Range", range);
    const struct forward_plan plan = {
        .method = http_method(req), .headers = lines.lines, .range = range, .reply = reply_read};
    forward_start(req, call, &plan);
}

/* --- PutObject -------------------------------------------------------------------------------- */

static void reply_stored(struct http_request *req, const struct gateway_call *call,
                         const struct forward_reply *r)
{
    (void)call;
    if (r->err.code != 0) {
        reply_failure(req, r);
        return;
    }
    reply_etag(req, r);
    http_reply_empty(req, 200);
}

/* What an object cannot keep yet is refused, not dropped. */
static enum s3_error check_kept(const struct gateway_call *call, struct s3_failure *why)
{
    static const char *const names[] = {"Cache-Control", "Content-Disposition", "Content-Language",
                                        "Expires", "x-amz-tagging"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (s3_header(&call->head, names[i]) != NULL)
            return s3_fail(why, S3_NOT_IMPLEMENTED, "This server keeps no %s of objects", names[i]);
    }
    return S3_OK;
}

void s3_put_object(struct http_request *req, const struct gateway_call *call)
{
    struct lines lines;
    struct s3_failure why;
    struct body *body = NULL;
    lines_begin(&lines, req, call);
    translate(&lines, call, of_a_write);
    if (check_whole(call, &why) != S3_OK || check_kept(call, &why) != S3_OK ||
        add_meta(&lines, call, &why) != S3_OK ||
        body_new(call, http_content_length(req), &body, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    const struct forward_plan plan = {
        .method = HTTP_PUT, .headers = lines.lines, .body = body, .reply = reply_stored};
    forward_start(req, call, &plan);
}

/* --- DeleteObject ----------------------------------------------------------------------------- */

/* What is not there is deleted already. */
static void reply_deleted(struct http_request *req, const struct gateway_call *call,
                          const struct forward_reply *r)
{
    bool conditional = s3_header(&call->head, "If-Match") != NULL;
    if (r->err.code != 0 && (r->err.code != E_OBJECT_NOT_FOUND || conditional))
        reply_failure(req, r);
    else
        http_reply_empty(req, 204);
}

void s3_delete_object(struct http_request *req, const struct gateway_call *call)
{
    struct lines lines;
    struct s3_failure why;
    if (check_whole(call, &why) != S3_OK) {
        gateway_fail(req, &why);
        return;
    }
    lines_begin(&lines, req, call);
    translate(&lines, call, of_a_delete);
    const struct forward_plan plan = {
        .method = HTTP_DELETE, .headers = lines.lines, .reply = reply_deleted};
    forward_start(req, call, &plan);
}
