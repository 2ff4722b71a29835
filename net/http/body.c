/* How the body of a request reaches its handler.
 *
 * The connection offers pieces (request_take) and is told how much was taken; less than all means
 * that it has to sleep until http_resume_body() or a reply.  When the last piece is taken, the
 * request goes back from BODY to OWED and the handler hears so.  A handler may reply at any time,
 * in any thread, and hears nothing of the body after that. */
#include "net/http/request.h"

#include <assert.h>
#include <malloc.h>

#include "common/jsonx.h"
#include "common/log.h"
#include "io/pool.h"
#include "net/http/gate.h"
#include "net/http/server_state.h"

/* From one state to the other, unless a reply has come in between. */
static bool request_move(struct http_request *req, enum request_state from, enum request_state to)
{
    pthread_mutex_lock(&req->lock);
    bool moved = req->state == from;
    if (moved)
        req->state = to;
    pthread_mutex_unlock(&req->lock);
    return moved;
}

/* Runs in begin().  Without a body its end comes right away, in the same way as with one. */
static void request_open_body(struct http_request *req, enum body_mode mode)
{
    assert(req->body.mode == BODY_UNTAKEN);
    req->body.mode = mode;
    bool moved = request_move(req, REQUEST_OWED, REQUEST_BODY);
    assert(moved);
    (void)moved;
}

void http_collect_body(struct http_request *req, size_t max,
                       void (*fn)(struct http_request *req, const char *data, size_t len))
{
    if (req->content_length > 0 && (uint64_t)req->content_length > max) {
        struct error err;
        error_set(&err, E_TOO_LARGE, "the body has %lld bytes, the limit is %zu",
                  (long long)req->content_length, max);
        http_reply_error(req, &err);
        return;
    }
    req->body.max = max;
    req->body.collected = fn;
    if (req->content_length > 0)
        buf_reserve(&req->body.data, (size_t)req->content_length);
    request_open_body(req, BODY_COLLECTED);
}

void http_take_body(struct http_request *req, const struct http_body_ops *ops, void *ctx)
{
    const struct http_recast *as = req->recast;
    bool between = as != NULL && as->body != NULL;
    if (between)
        as->takes(as->ctx, ops, ctx);
    req->body.ops = between ? as->body : ops;
    req->body.ctx = between ? as->ctx : ctx;
    request_open_body(req, BODY_TAKEN);
}

bool http_refuse_body(struct http_request *req)
{
    request_move(req, REQUEST_BODY, REQUEST_OWED);
    if (request_state(req) != REQUEST_OWED)
        return false;
    req->body.ops->cut(req, req->body.ctx);
    return request_state(req) == REQUEST_OWED; /* the other's thread may have replied just then */
}

void http_resume_body(struct http_request *req)
{
    request_wake(req);
}

static void body_forget(struct http_request *req)
{
    server_give_collected(req->server, req->body.data.len);
    buf_done(&req->body.data);
}

static size_t body_collect(struct http_request *req, const char *data, size_t len)
{
    struct request_body *body = &req->body;
    if (len > body->max - body->data.len) {
        struct error err;
        error_set(&err, E_TOO_LARGE, "the body has more than %zu bytes, the limit", body->max);
        http_reply_error(req, &err);
        return 0;
    }
    if (!server_take_collected(req->server, body->data.len, len)) {
        struct error err;
        error_set(&err, E_OVERLOAD, "the bodies of other requests have all the memory for them");
        body_forget(req); /* the client may repeat it as soon as it reads the reply */
        http_reply_error(req, &err);
        return 0;
    }
    buf_append(&body->data, data, len);
    return len;
}

size_t request_take(struct http_request *req, const char *data, size_t len)
{
    struct request_body *body = &req->body;
    log_set_request(req->id);
    size_t taken = body->mode == BODY_COLLECTED ? body_collect(req, data, len)
                                                : body->ops->data(req, body->ctx, data, len);
    log_set_request(NULL);
    assert(taken <= len);
    gate_body(req, data, taken);
    body->received += taken;
    return taken;
}

void request_fail_body(struct http_request *req, const struct error *why)
{
    if (!request_move(req, REQUEST_BODY, REQUEST_OWED))
        return;
    log_set_request(req->id);
    if (req->body.mode == BODY_TAKEN)
        req->body.ops->cut(req, req->body.ctx);
    log_set_request(NULL);
    /* Another thread of the handler may have been replying just then; after cut() it is not. */
    if (request_state(req) == REQUEST_OWED)
        http_reply_error(req, why);
}

/* What the values of a JSON text will take counts as kept, too, until the request ends. */
static int body_charge(struct http_request *req, struct error *err)
{
    struct request_body *body = &req->body;
    const char *text = buf_str(&body->data);
    char first = text[strspn(text, " \t\r\n")];
    if (first != '{' && first != '[')
        return 0;
    size_t memory;
    int code = json_memory(body->data.data, body->data.len, &memory, err);
    if (code != 0)
        return code;
    size_t values = memory - body->data.len;
    atomic_fetch_add_explicit(&req->server->parsed, memory, memory_order_relaxed);
    if (!server_take_collected(req->server, body->data.len, values))
        return error_set(err, E_OVERLOAD,
                         "the bodies of other requests have all the memory for them: try again");
    body->charged = values;
    return 0;
}

static void body_handle(struct http_request *req)
{
    struct error err = ERROR_INIT;
    log_set_request(req->id);
    if (body_charge(req, &err) == 0)
        req->body.collected(req, buf_str(&req->body.data), req->body.data.len);
    else
        http_reply_error(req, &err);
    log_set_request(NULL);
}

/* The allocator keeps what large bodies leave.  Giving it back walks the whole heap, and so is done
 * once for many bodies. */
static void trim_memory(struct http_server *s)
{
    if (atomic_load_explicit(&s->parsed, memory_order_relaxed) < SERVER_TRIM_BYTES)
        return;
    atomic_store_explicit(&s->parsed, 0, memory_order_relaxed);
    malloc_trim(0);
}

/* The request may be gone when its handler has replied. */
static void body_handle_large(void *arg)
{
    struct http_request *req = arg;
    struct http_server *s = req->server;
    body_handle(req);
    trim_memory(s);
}

/* The parse of a large body must not keep an HTTP thread from its other connections. */
static void body_collected(struct http_request *req)
{
    struct error err = ERROR_INIT;
    if (req->body.data.len <= SERVER_BODY_AT_ONCE)
        body_handle(req);
    else if (pool_submit(req->server->bodies, body_handle_large, req, &err) != 0)
        http_reply_error(req, &err);
}

void request_body_ended(struct http_request *req)
{
    struct request_body *body = &req->body;
    struct error err = ERROR_INIT;
    if (gate_body_ended(req, &err) != 0) {
        request_fail_body(req, &err);
        return;
    }
    if (!request_move(req, REQUEST_BODY, REQUEST_OWED))
        return;
    if (body->mode == BODY_COLLECTED) {
        body_collected(req);
        return;
    }
    log_set_request(req->id);
    body->ops->end(req, body->ctx);
    log_set_request(NULL);
}
