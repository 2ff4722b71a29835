#include "net/http/request.h"

#include <assert.h>
#include <strings.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "net/http/gate.h"
#include "net/http/query.h"
#include "net/http/server_state.h"

enum { REQUEST_MAGIC = 0x52455121, REQUEST_ARENA_BYTES = 4096, REQUEST_ID_MAX = 64 };

/* --- making one ------------------------------------------------------------------------------- */

/* "/a/b?x=y", or the absolute form "http://host/a/b?x=y" of RFC 9112 section 3.2.2, in which the
 * path may be missing. */
static const char *uri_without_authority(const char *uri)
{
    size_t scheme = strncasecmp(uri, "http://", 7) == 0 ? 7 : 0;
    if (strncasecmp(uri, "https://", 8) == 0)
        scheme = 8;
    return scheme == 0 ? uri : uri + scheme + strcspn(uri + scheme, "/?");
}

void request_set_target(struct http_request *req, enum http_method method, const char *uri)
{
    req->method = method;
    uri = uri_without_authority(uri);
    size_t path_len = strcspn(uri, "?");
    req->path = path_len > 0 ? arena_strndup(req->arena, uri, path_len) : "/";
    req->query = uri[path_len] == '?' ? arena_strdup(req->arena, uri + path_len + 1) : "";
}

struct http_request *request_new(struct http_server *server, const struct request_link *link,
                                 void *connection)
{
    struct arena *arena = arena_new(REQUEST_ARENA_BYTES);
    struct http_request *req = arena_alloc(arena, sizeof *req);
    req->magic = REQUEST_MAGIC;
    req->server = server;
    req->arena = arena;
    req->link = link;
    req->connection = connection;
    req->method = HTTP_OTHER;
    req->path = "/";
    req->query = "";
    req->actor.name = HTTP_ACTOR_ANYBODY;
    req->error_form = server->error_form;
    req->headers_end = &req->headers;
    req->began_us = clock_us();
    reply_init(&req->reply);
    pthread_mutex_init(&req->lock, NULL);
    return req;
}

void request_add_header(struct http_request *req, const char *name, const char *value)
{
    struct request_header *h = arena_alloc(req->arena, sizeof *h);
    h->name = name;
    h->value = value;
    *req->headers_end = h;
    req->headers_end = &h->next;
}

/* --- checking --------------------------------------------------------------------------------- */

static bool id_is_usable(const char *id)
{
    size_t len = 0;
    for (; id[len] != '\0'; len++) {
        if (id[len] <= ' ' || id[len] >= 0x7f || len == REQUEST_ID_MAX)
            return false;
    }
    return len > 0;
}

static void request_set_id(struct http_request *req)
{
    const char *sent = http_header(req, "X-Request-Id");
    if (sent != NULL && id_is_usable(sent)) {
        req->id = sent;
        return;
    }
    uint64_t number = atomic_fetch_add_explicit(&req->server->next_id, 1, memory_order_relaxed);
    req->id = arena_printf(req->arena, "%s-%llx", req->server->run, (unsigned long long)number);
}

/* Two lengths that differ, or a length beside chunks, are how requests are smuggled past a proxy
 * (RFC 9112 section 6.3). */
static int request_check_length(struct http_request *req, struct error *err)
{
    const char *length = NULL;
    const char *coding = NULL;
    for (const struct request_header *h = req->headers; h != NULL; h = h->next) {
        if (strcasecmp(h->name, "Content-Length") == 0) {
            if (length != NULL && strcmp(length, h->value) != 0)
                return error_set(err, E_INVALID, "two Content-Length headers");
            length = h->value;
        } else if (strcasecmp(h->name, "Transfer-Encoding") == 0) {
            if (coding != NULL)
                return error_set(err, E_INVALID, "two Transfer-Encoding headers");
            coding = h->value;
        }
    }
    if (coding != NULL) {
        if (length != NULL)
            return error_set(err, E_INVALID, "both Content-Length and Transfer-Encoding");
        if (strcasecmp(coding, "chunked") != 0)
            return error_set(err, E_UNSUPPORTED, "Transfer-Encoding '%s'", coding);
        req->content_length = -1;
    } else if (length != NULL) {
        uint64_t value;
        if (parse_u64(length, &value, NULL) != 0 || value > INT64_MAX)
            return error_set(err, E_INVALID, "Content-Length '%s' is not a length", length);
        req->content_length = (int64_t)value;
    }
    return 0;
}

/* A fragment is the client's own and never sent (RFC 9112 section 3.2).  Passed on, it would be cut
 * off: the next node would see another request. */
static int request_check_target(const struct http_request *req, struct error *err)
{
    size_t len = strlen(req->path) + strlen(req->query);
    if (len > SERVER_URI_MAX)
        return error_set(err, E_URI_TOO_LONG, "the request's target has %zu bytes, the limit is %d",
                         len, SERVER_URI_MAX);
    if (strchr(req->path, '#') != NULL || strchr(req->query, '#') != NULL)
        return error_set(err, E_INVALID, "the request's target has a '#' (in a name it is %%23)");
    return 0;
}

/* Of two, a server before this one may have looked at the other (RFC 9110 section 5.3). */
static int request_check_authorization(const struct http_request *req, struct error *err)
{
    size_t count = 0;
    for (const struct request_header *h = req->headers; h != NULL; h = h->next)
        count += strcasecmp(h->name, "Authorization") == 0;
    return count <= 1 ? 0 : error_set(err, E_INVALID, "more than one Authorization header");
}

static size_t request_headers_size(const struct http_request *req)
{
    size_t size = 0;
    for (const struct request_header *h = req->headers; h != NULL; h = h->next)
        size += strlen(h->name) + strlen(h->value) + 4; /* ": " and the line's end */
    return size;
}

int request_check_headers(struct http_request *req, struct error *err)
{
    request_set_id(req);
    const char *expect = http_header(req, "Expect");
    req->expects_continue = expect != NULL && strcasecmp(expect, "100-continue") == 0;
    int rc = request_check_length(req, err);
    if (rc == 0)
        rc = request_check_target(req, err);
    if (rc == 0)
        rc = request_check_authorization(req, err);
    if (rc != 0)
        return rc;
    size_t size = request_headers_size(req);
    if (size > req->server->headers_max)
        return error_set(err, E_HEADERS_TOO_LARGE, "the headers have %zu bytes, the limit is %zu",
                         size, req->server->headers_max);
    return 0;
}

/* --- beginning -------------------------------------------------------------------------------- */

static int request_unescape(struct http_request *req, const char *text, size_t len,
                            const char **out, struct error *err)
{
    char *copy = arena_bytes(req->arena, len + 1);
    int64_t n = parse_url_unescape(text, len, copy, err);
    *out = copy;
    return n < 0 ? (int)n : 0;
}

static int request_unescape_params(struct http_request *req, struct error *err)
{
    for (size_t i = 0; i < req->match.param_count; i++) {
        const struct router_param *p = &req->match.params[i];
        int rc = request_unescape(req, p->text, p->len, &req->params[i], err);
        if (rc != 0)
            return error_wrap(err, "path parameter '%.*s'", (int)p->name_len, p->name);
    }
    return 0;
}

/* Administration is not here, also where the path has other calls. */
static bool request_is_admin(const struct http_request *req)
{
    struct router_match match;
    const struct router *elsewhere = req->server->elsewhere;
    return elsewhere != NULL &&
           router_find(elsewhere, req->method, req->path, strlen(req->path), &match) == 0 &&
           match.route->admin;
}

/* Nothing was found: why. */
static int request_unrouted(struct http_request *req, int rc, struct error *err)
{
    if (request_is_admin(req) && req->server->admin_is_elsewhere)
        return error_set(err, E_ROUTE,
                         "%s '%s' is administration: the admin listener of this node has it "
                         "(--admin-port)",
                         http_method_name(req->method), req->path);
    if (request_is_admin(req))
        return error_set(err, E_ROUTE,
                         "%s '%s' is administration: the control listener has it, and takes it "
                         "signed with the cluster key (dfcctl does that)",
                         http_method_name(req->method), req->path);
    if (rc == E_METHOD) {
        _cleanup_(buf_done)
        struct buf allow = BUF_INIT;
        router_allow(req->match.allowed, &allow);
        http_reply_header(req, "Allow", buf_str(&allow));
        return error_set(err, rc, "'%s' takes %s", req->path, buf_str(&allow));
    }
    return error_set(err, rc, "unknown path '%s'", req->path);
}

static int request_check_gates(struct http_request *req, struct error *err)
{
    int rc = gate_check(req, req->match.route, err);
    return rc != 0 ? rc : gate_check_visitor(req, req->match.route, err);
}

/* What the guard needs to know.  An error waits until it has been asked. */
static int request_read_parameters(struct http_request *req, struct error *err)
{
    int rc = request_unescape_params(req, err);
    return rc != 0 ? rc
                   : query_parse(req->arena, req->query, req->match.route,
                                 (req->server->net & (NET_PUBLIC | NET_ADMIN)) != 0, &req->queries,
                                 err);
}

static int request_ask_guard(struct http_request *req, struct error *err)
{
    const struct http_guard *guard = req->server->guard;
    return guard != NULL ? guard->open(guard->ctx, req, err) : 0;
}

/* The query as query_parse() reads it. */
static const char *request_without_plus(struct http_request *req)
{
    _cleanup_buf_ struct buf query = BUF_INIT;
    for (const char *at = req->query; *at != '\0'; at++) {
        if (*at == '+')
            buf_puts(&query, "%20");
        else
            buf_putc(&query, *at);
    }
    return arena_strdup(req->arena, buf_str(&query));
}

/* Where its route is looked for: a request of the dialect is one of the dialect's routes. */
static const char *request_route_path(struct http_request *req)
{
    const struct http_dialect *d = req->server->dialect;
    if (d == NULL)
        return req->path;
    size_t len = strlen(d->prefix);
    bool has_prefix = strncmp(req->path, d->prefix, len) == 0 && req->path[len] == '/';
    if (!has_prefix && !d->speaks(req))
        return req->path;
    if (d->error_form != NULL)
        req->error_form = d->error_form;
    if (d->plus_is_blank && strchr(req->query, '+') != NULL)
        req->query = request_without_plus(req);
    const char *section = d->section != NULL ? d->section(req) : "";
    return has_prefix ? req->path
                      : arena_printf(req->arena, "%s%s%s", d->prefix, section, req->path);
}

static int request_prepare(struct http_request *req, struct error *err)
{
    if (server_is_over(req->server))
        return error_set(err, E_NOT_READY, "the node is stopping");
    struct error why = ERROR_INIT;
    const char *path = request_route_path(req);
    int found = router_find(req->server->router, req->method, path, strlen(path), &req->match);
    int rc = request_check_gates(req, err);
    if (rc != 0)
        return rc;
    if (found == 0)
        rc = request_read_parameters(req, &why);
    int refused = request_ask_guard(req, err);
    if (refused != 0)
        return refused;
    req->let_in = true;
    if (found != 0)
        return request_unrouted(req, found, err);
    *err = why;
    return rc;
}

/* From here on the server's end waits for the request.  It says that it ends before it looks at the
 * list, and we look whether it does after we are in it: one of the two sees the other. */
static void request_enter(struct http_request *req)
{
    req->state = REQUEST_OWED; /* nobody else knows the request before the next line */
    server_add_request(req->server, req);
}

void request_refuse(struct http_request *req, const struct error *err)
{
    if (req->id == NULL)
        request_set_id(req); /* refused before its headers were looked at */
    request_enter(req);
    http_reply_error(req, err);
}

void request_begin(struct http_request *req)
{
    struct error err = ERROR_INIT;
    request_enter(req);
    if (request_prepare(req, &err) != 0) {
        http_reply_error(req, &err);
        return;
    }
    log_set_request(req->id);
    req->match.route->begin(req);
    log_set_request(NULL);
}

/* --- states, sleeping and waking -------------------------------------------------------------- */

enum request_state request_state(struct http_request *req)
{
    assert(req->magic == REQUEST_MAGIC);
    pthread_mutex_lock(&req->lock);
    enum request_state state = req->state;
    pthread_mutex_unlock(&req->lock);
    return state;
}

void http_be_patient(struct http_request *req, bool (*still)(void *ctx), void *ctx)
{
    req->patient = still;
    req->patient_ctx = ctx;
}

bool request_is_patient(const struct http_request *req)
{
    return req->patient != NULL && req->patient(req->patient_ctx);
}

bool request_aborted(struct http_request *req)
{
    pthread_mutex_lock(&req->lock);
    bool aborted = req->aborted;
    pthread_mutex_unlock(&req->lock);
    return aborted;
}

bool request_sleep(struct http_request *req)
{
    pthread_mutex_lock(&req->lock);
    bool sleep = !req->woken;
    req->woken = false;
    if (sleep) {
        req->asleep = true;
        req->link->sleep(req);
    }
    pthread_mutex_unlock(&req->lock);
    return sleep;
}

bool request_doze(struct http_request *req)
{
    pthread_mutex_lock(&req->lock);
    req->dozing = !req->woken;
    req->woken = false;
    bool dozing = req->dozing;
    pthread_mutex_unlock(&req->lock);
    return dozing;
}

bool request_rouse(struct http_request *req)
{
    pthread_mutex_lock(&req->lock);
    bool first = req->dozing;
    req->dozing = false;
    pthread_mutex_unlock(&req->lock);
    return first;
}

void request_wake_locked(struct http_request *req)
{
    bool waits = req->asleep || req->dozing;
    req->asleep = req->dozing = false;
    if (waits)
        req->link->wake(req);
    else
        req->woken = true;
}

void request_wake(struct http_request *req)
{
    assert(req->magic == REQUEST_MAGIC);
    pthread_mutex_lock(&req->lock);
    request_wake_locked(req);
    pthread_mutex_unlock(&req->lock);
}

void request_abort(struct http_request *req)
{
    pthread_mutex_lock(&req->lock);
    req->aborted = true;
    if (req->state != REQUEST_OWED)
        request_wake_locked(req);
    pthread_mutex_unlock(&req->lock);
}

bool request_is_owed(struct http_request *req)
{
    pthread_mutex_lock(&req->lock);
    bool owed = req->state == REQUEST_OWED || req->fetches;
    pthread_mutex_unlock(&req->lock);
    return owed;
}

static void request_publish_locked(struct http_request *req)
{
    pthread_mutex_lock(&req->lock);
    assert(req->magic == REQUEST_MAGIC);
    assert(req->state == REQUEST_OWED || req->state == REQUEST_BODY); /* one reply for each */
    req->state = REQUEST_REPLIED;
    request_wake_locked(req);
    pthread_mutex_unlock(&req->lock);
}

void request_publish(struct http_request *req)
{
    struct http_server *server = req->server;
    if (req->recast != NULL) {
        recast_replied(req, NULL);
        return;
    }
    if (!server_is_draining(server)) {
        request_publish_locked(req); /* the server may be gone, too, when this returns */
        return;
    }
    server_lock(server);
    request_publish_locked(req);
    server_changed_and_unlock(server);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void request_run_hooks(struct http_request *req)
{
    for (struct request_hook *hook; (hook = req->hooks) != NULL;) {
        req->hooks = hook->next;
        hook->fn(hook->arg);
    }
}

static void request_cut(struct http_request *req)
{
    if (req->body.mode == BODY_TAKEN)
        req->body.ops->cut(req, req->body.ctx);
}

/* Who changed what, or tried to.  Of those who were not let in the gate tells, now and then. */
static void request_trace(struct http_request *req)
{
    const struct http_route *route = req->match.route;
    if (route == NULL || !route->changes || !req->let_in)
        return;
    log_at(route->admin ? LOG_AUDIT : LOG_INFO, route->admin ? "administration" : "change",
           lstr("peer", http_peer(req)), lstr("user", http_actor(req)->name),
           lstr("call", route->name), lstr("method", http_method_name(req->method)),
           lstr("path", req->path), li64("status", server_status(req)));
}

void request_end(struct http_request *req)
{
    assert(req->magic == REQUEST_MAGIC);
    struct http_server *server = req->server;
    enum request_state state = request_state(req);
    assert(state != REQUEST_OWED && !req->reply.fetching); /* it sleeps until there is a reply */
    log_set_request(req->id);
    if (state == REQUEST_BODY)
        request_cut(req);
    if (req->reply.kind == REPLY_STREAM && req->reply.ops->free != NULL)
        req->reply.ops->free(req->reply.ctx);
    if (state != REQUEST_NEW && server->witness != NULL)
        server->witness->ended(server->witness->ctx, req);
    request_run_hooks(req);
    if (state != REQUEST_NEW)
        request_trace(req);
    log_set_request(NULL);
    if (req->body.data.len > 0)
        server_give_collected(server, req->body.data.len + req->body.charged);
    if (state != REQUEST_NEW) {
        server_count_request(server, req);
        server_remove_request(server, req);
    }
    reply_done(&req->reply);
    gate_done(req);
    buf_done(&req->body.data);
    req->magic = 0;
    pthread_mutex_destroy(&req->lock);
    arena_free(req->arena);
}

/* --- for handlers --------------------------------------------------------------------------- */

void http_on_end(struct http_request *req, void (*fn)(void *arg), void *arg)
{
    struct request_hook *hook = arena_alloc(req->arena, sizeof *hook);
    *hook = (struct request_hook){.fn = fn, .arg = arg, .next = req->hooks};
    req->hooks = hook;
}
