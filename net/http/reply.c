/* Replies: built by whoever answers, in fields that are his alone, then published. */
#include "net/http/request.h"

#include <assert.h>
#include <strings.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "io/reader.h"
#include "net/http/server_state.h"

void reply_init(struct reply *r)
{
    r->fd = -1;
    r->headers_end = &r->headers;
}

void reply_done(struct reply *r)
{
    free(r->data);
    if (r->fd >= 0)
        close(r->fd);
    reader_unref(r->reader);
}

/* A value that came from a disk or a peer must not end the line it stands on. */
static void header_value_clean(char *value)
{
    for (; *value != '\0'; value++) {
        if ((unsigned char)*value < ' ' && *value != '\t')
            *value = ' ';
    }
}

/* What the connection says of itself, and of the body's length. */
static bool header_is_ours(const char *name)
{
    static const char *const ours[] = {"Connection", "Content-Length", "Date", "Transfer-Encoding"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        if (strcasecmp(name, ours[i]) == 0)
            return true;
    }
    return false;
}

void http_reply_constant(struct http_request *req, const char *name, const char *value)
{
    struct request_header *h = arena_alloc(req->arena, sizeof *h);
    *h = (struct request_header){.name = name, .value = value};
    *req->reply.headers_end = h;
    req->reply.headers_end = &h->next;
}

void http_reply_header(struct http_request *req, const char *name, const char *value)
{
    if (header_is_ours(name))
        return;
    char *copy = arena_strdup(req->arena, value);
    header_value_clean(copy);
    http_reply_constant(req, arena_strdup(req->arena, name), copy);
}

void reply_error_instead(struct http_request *req, const struct error *err)
{
    struct request_header **first = req->recast != NULL ? req->recast_headers : &req->reply.headers;
    *first = NULL;
    req->reply.headers_end = first;
    http_reply_error(req, err);
}

void http_reply_empty(struct http_request *req, int status)
{
    req->reply.status = status;
    request_publish(req);
}

void http_reply_taken(struct http_request *req, int status, char *data, size_t len)
{
    req->reply.status = status;
    req->reply.kind = REPLY_DATA;
    req->reply.data = data;
    req->reply.length = (int64_t)len;
    request_publish(req);
}

static void reply_own_data(struct http_request *req, int status, const char *content_type,
                           char *data, size_t len)
{
    http_reply_header(req, "Content-Type", content_type);
    http_reply_taken(req, status, data, len);
}

void http_reply_data(struct http_request *req, int status, const char *content_type,
                     const void *data, size_t len)
{
    char *copy = xmalloc(len + 1);
    if (len > 0)
        memcpy(copy, data, len);
    reply_own_data(req, status, content_type, copy, len);
}

void http_reply_json(struct http_request *req, int status, const json_t *value)
{
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (text == NULL) {
        struct error err;
        error_set(&err, E_INTERNAL, "the reply cannot be written as JSON");
        reply_error_instead(req, &err);
        return;
    }
    reply_own_data(req, status, "application/json", text, strlen(text));
}

void reply_error_json(const char *node, const char *request_id, const char *subject,
                      const struct error *err, struct buf *out)
{
    buf_printf(out, "{\"status\":%d,\"code\":\"%s\",\"message\":\"", error_status(err->code),
               error_name(err->code));
    buf_put_json_escaped(out, subject, strlen(subject));
    buf_put_json_escaped(out, err->message, strlen(err->message));
    buf_puts(out, "\",\"node\":\"");
    buf_put_json_escaped(out, node, strlen(node));
    buf_puts(out, "\",\"request_id\":\"");
    buf_put_json_escaped(out, request_id, strlen(request_id));
    buf_puts(out, "\"}");
}

static bool has_header(const struct http_request *req, const char *name)
{
    for (const struct request_header *h = req->reply.headers; h != NULL; h = h->next) {
        if (strcasecmp(h->name, name) == 0)
            return true;
    }
    return false;
}

void http_set_error_form(struct http_request *req, const struct http_error_form *form)
{
    req->error_form = form;
}

void http_put_error_json(const struct http_request *req, const char *subject,
                         const struct error *err, struct buf *out)
{
    reply_error_json(req->server->node, req->id, subject, err, out);
}

static int put_error(const struct http_request *req, const struct error *err, struct buf *out)
{
    if (req->error_form != NULL)
        return req->error_form->put(req, err, out);
    http_put_error_json(req, "", err, out);
    return error_status(err->code);
}

void http_reply_error(struct http_request *req, const struct error *err)
{
    const struct http_error_form *form = req->error_form;
    if (req->recast != NULL) {
        recast_replied(req, err);
        return;
    }
    if (error_status(err->code) == 304) {
        http_reply_empty(req, 304);
        return;
    }
    struct buf text = BUF_INIT;
    int status = put_error(req, err, &text);
    if ((status == 429 || status == 503) && !has_header(req, "Retry-After"))
        http_reply_header(req, "Retry-After", "1");
    if (form != NULL && !has_header(req, form->id_header))
        http_reply_constant(req, form->id_header, req->id);
    if (err->code == E_OVERLOAD)
        metric_add(req->server->overload, 1);
    req->reply.code = error_name(err->code);
    size_t len = text.len;
    reply_own_data(req, status, form != NULL ? form->content_type : "application/json",
                   buf_steal(&text), len);
}

void http_reply_redirect(struct http_request *req, const char *location)
{
    http_reply_header(req, "Location", location);
    http_reply_empty(req, 307);
}

void http_reply_stream(struct http_request *req, int status, int64_t length,
                       const struct http_stream_ops *ops, void *ctx)
{
    struct reply *r = &req->reply;
    r->status = status;
    r->kind = REPLY_STREAM;
    r->length = length;
    r->ops = ops;
    r->ctx = ctx;
    request_publish(req);
}

void http_wake(struct http_request *req)
{
    request_wake(req);
}

/* --- sending ---------------------------------------------------------------------------------- */

ssize_t request_stream_splice(struct http_request *req, int to, size_t max)
{
    for (;;) {
        if (request_aborted(req))
            return HTTP_STREAM_CUT;
        ssize_t n = req->reply.ops->splice(req->reply.ctx, to, max);
        if (n > 0)
            req->sent_bytes += (uint64_t)n;
        if (n != 0 || request_sleep(req))
            return n;
    }
}

ssize_t request_stream_read(struct http_request *req, char *out, size_t max)
{
    for (;;) {
        if (request_aborted(req))
            return HTTP_STREAM_CUT;
        ssize_t n = req->reply.ops->read(req->reply.ctx, out, max);
        assert(n >= HTTP_STREAM_CUT && (n < 0 || (size_t)n <= max));
        if (n > 0)
            req->sent_bytes += (uint64_t)n;
        if (n != 0 || request_sleep(req))
            return n;
    }
}

bool reply_has_body(const struct http_request *req)
{
    int status = req->reply.status;
    return req->method != HTTP_HEAD && status >= 200 && status != 204 && status != 304;
}

static void head_line(struct buf *out, const char *name, const char *value)
{
    buf_puts(out, name);
    buf_puts(out, ": ");
    buf_puts(out, value);
    buf_puts(out, "\r\n");
}

/* The same text for a whole second, in each thread. */
static const char *head_date(void)
{
    static _Thread_local int64_t second = -1;
    static _Thread_local char text[32];
    int64_t now = clock_wall_ms() / 1000;
    if (now != second)
        clock_format_http(now, text);
    second = now;
    return text;
}

/* Decimal, without the detour through printf: this is in the way of every request. */
static void head_number(struct buf *out, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    buf_append(out, digits + at, sizeof digits - at);
}

static void head_status(struct buf *out, int status)
{
    buf_puts(out, "HTTP/1.1 ");
    head_number(out, (uint64_t)status);
    buf_putc(out, ' ');
    buf_puts(out, http_status_text(status));
    buf_puts(out, "\r\n");
}

static void head_length(struct buf *out, const struct reply *r, bool http_1_0)
{
    if (r->length >= 0 && r->status != 204 && r->status != 304) {
        buf_puts(out, "Content-Length: ");
        head_number(out, (uint64_t)r->length);
        buf_puts(out, "\r\n");
    } else if (r->length < 0 && !http_1_0) {
        buf_puts(out, "Transfer-Encoding: chunked\r\n");
    }
}

void reply_head(const struct http_request *req, bool keep_alive, bool http_1_0, struct buf *out)
{
    const struct reply *r = &req->reply;
    head_status(out, r->status);
    head_line(out, "Date", head_date());
    for (const struct request_header *h = r->headers; h != NULL; h = h->next)
        head_line(out, h->name, h->value);
    head_line(out, "X-Request-Id", req->id);
    head_line(out, "Dfc-Node", req->server->node);
    head_length(out, r, http_1_0);
    if (!keep_alive)
        buf_puts(out, "Connection: close\r\n");
    else if (http_1_0)
        buf_puts(out, "Connection: keep-alive\r\n");
    buf_puts(out, "\r\n");
}
