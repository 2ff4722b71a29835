/* Requests on libmicrohttpd.
 *
 * Per request, libmicrohttpd calls us in the thread of its connection: with the request line
 * (mhd_on_uri), with the headers, then with pieces of the body, at the end once more, and when the
 * request has ended (mhd_on_completed).  req->step says which of these is next:
 *
 *   STEP_HEADERS ──▶ STEP_REFUSE | STEP_BEGIN ──▶ STEP_BODY ──▶ STEP_FINAL
 *         └────────────────────── no body ───────────────────────▲
 *
 * Its traps, which shape this file:
 *
 * - A response queued in the call with the headers closes the connection.  So a request without a
 *   body begins in the final call; with one, it begins before the body, and a reply that comes
 *   already then is kept until the body has been read away (when it is short), or closes the
 *   connection (when it is long: reading gigabytes to say 404 helps nobody).
 * - In the middle of a body no response can be queued at all.  A reply that cannot wait for the end
 *   of a long body is written to the socket by ourselves, and the connection is closed.
 * - Such a close must not become a reset, which may overtake the reply: see closer.h.  The socket
 *   is duplicated, because libmicrohttpd closes its own.
 * - Suspended connections are not watched: a client that goes away is noticed when the request has
 *   been resumed.  That is what keeps a parked request alive until its reply.
 * - While suspended, libmicrohttpd does not touch a connection, and after resuming it calls us
 *   again with what it called before; so sleeping is possible at every step. */
#include "net/http/mhd.h"

#include <assert.h>
#include <microhttpd.h>
#include <signal.h>
#include <unistd.h>

#include "common/mem.h"
#include "net/http/closer.h"
#include "net/http/request.h"
#include "net/http/peers.h"
#include "net/http/server_state.h"

enum { MHD_STREAM_BLOCK_BYTES = 64 * 1024 };

enum mhd_step {
    STEP_HEADERS, /* the headers have not been looked at */
    STEP_BEGIN,   /* before the body; begun, or asleep in that */
    STEP_BODY,    /* pieces of the body come */
    STEP_FINAL,   /* the body is complete, or there is none */
};

struct mhd {
    struct http_server *server;
    struct MHD_Daemon *daemon;
};

/* --- sleeping --------------------------------------------------------------------------------- */

static void mhd_sleep(struct http_request *req)
{
    MHD_suspend_connection(req->connection);
}

static void mhd_wake(struct http_request *req)
{
    MHD_resume_connection(req->connection);
}

static const struct request_link mhd_link = {.sleep = mhd_sleep, .wake = mhd_wake};

/* --- replying --------------------------------------------------------------------------------- */

static ssize_t mhd_stream_read(void *cls, uint64_t position, char *out, size_t max)
{
    (void)position;
    ssize_t n = request_stream_read(cls, out, max);
    if (n == HTTP_STREAM_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    return n == HTTP_STREAM_CUT ? MHD_CONTENT_READER_END_WITH_ERROR : n;
}

static struct MHD_Response *mhd_response_of(struct http_request *req)
{
    struct reply *r = &req->reply;
    switch (r->kind) {
    case REPLY_EMPTY:
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    case REPLY_DATA: /* lives as long as the request, and so longer than the response is sent */
        return MHD_create_response_from_buffer((size_t)r->length, r->data, MHD_RESPMEM_PERSISTENT);
    case REPLY_FILE:
        return MHD_create_response_from_fd_at_offset64((uint64_t)r->length, steal_fd(&r->fd),
                                                       r->offset);
    case REPLY_STREAM:
        return MHD_create_response_from_callback(
            r->length < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)r->length, MHD_STREAM_BLOCK_BYTES,
            mhd_stream_read, req, NULL);
    }
    return NULL;
}

static enum MHD_Result mhd_queue(struct http_request *req)
{
    struct reply *r = &req->reply;
    if (r->kind != REPLY_STREAM && reply_has_body(req))
        req->sent_bytes = (uint64_t)r->length;
    struct MHD_Response *response = mhd_response_of(req);
    if (response == NULL)
        return MHD_NO;
    for (const struct request_header *h = r->headers; h != NULL; h = h->next)
        MHD_add_response_header(response, h->name, h->value);
    MHD_add_response_header(response, "X-Request-Id", req->id);
    MHD_add_response_header(response, "Dfc-Node", req->server->node);
    /* To a HEAD it sends the end of a chunked body, which would be taken for the next reply. */
    bool confused = req->method == HTTP_HEAD && r->length < 0;
    if (confused || server_keeps_no_connection(req->server))
        MHD_add_response_header(response, "Connection", "close");
    enum MHD_Result result = MHD_queue_response(req->connection, (unsigned)r->status, response);
    MHD_destroy_response(response);
    return result;
}

static int mhd_socket(struct http_request *req)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(req->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info->connect_fd;
}

/* The reply, written past libmicrohttpd in the middle of a body.  Nothing else of this request has
 * been sent but perhaps "100 Continue", and the socket has room for so little. */
static enum MHD_Result mhd_reply_and_close(struct http_request *req)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    reply_head(req, false, false, &text);
    if (req->reply.kind == REPLY_DATA && reply_has_body(req))
        buf_append(&text, req->reply.data, (size_t)req->reply.length);
    ssize_t n = send(mhd_socket(req), text.data, text.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    req->linger = n == (ssize_t)text.len;
    return MHD_NO;
}

/* --- the body --------------------------------------------------------------------------------- */

/* Whether the rest of an unwanted body is read away for the sake of the connection. */
static bool mhd_drains(const struct http_request *req)
{
    if (req->content_length < 0)
        return false;
    return (uint64_t)req->content_length - req->body.received <= SERVER_DRAIN_MAX;
}

static bool reply_is_small(const struct reply *r)
{
    return r->kind == REPLY_EMPTY || r->kind == REPLY_DATA;
}

/* A reply before the first byte of the body. */
static enum MHD_Result mhd_replied_early(struct http_request *req)
{
    if (mhd_drains(req) && !req->expects_continue) {
        req->step = STEP_BODY;
        return MHD_YES;
    }
    req->linger = true;
    return mhd_queue(req);
}

static enum MHD_Result mhd_before_body(struct http_request *req)
{
    for (;;) {
        switch (request_state(req)) {
        case REQUEST_NEW:
            request_begin(req);
            break;
        case REQUEST_OWED:
            if (request_sleep(req))
                return MHD_YES;
            break;
        case REQUEST_BODY:
            req->step = STEP_BODY;
            return MHD_YES;
        case REQUEST_REPLIED:
            return mhd_replied_early(req);
        }
    }
}

static enum MHD_Result mhd_body(struct http_request *req, const char *data, size_t *len)
{
    while (*len > 0) {
        if (request_state(req) == REQUEST_REPLIED) {
            if (!mhd_drains(req) && reply_is_small(&req->reply))
                return mhd_reply_and_close(req);
            req->body.received += *len;
            *len = 0;
            return MHD_YES;
        }
        if (request_aborted(req))
            return MHD_NO;
        size_t taken = request_take(req, data, *len);
        data += taken;
        *len -= taken;
        if (*len > 0 && request_sleep(req))
            return MHD_YES;
    }
    return MHD_YES;
}

static enum MHD_Result mhd_final(struct http_request *req)
{
    for (;;) {
        switch (request_state(req)) {
        case REQUEST_NEW:
            request_begin(req);
            break;
        case REQUEST_BODY:
            if (request_aborted(req))
                return MHD_NO;
            request_body_ended(req);
            break;
        case REQUEST_OWED:
            if (request_sleep(req))
                return MHD_YES;
            break;
        case REQUEST_REPLIED:
            return mhd_queue(req);
        }
    }
}

/* --- what libmicrohttpd calls ----------------------------------------------------------------- */

static void *mhd_on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
    struct mhd *m = cls;
    struct http_request *req = request_new(m->server, &mhd_link, connection);
    request_set_target(req, HTTP_OTHER, uri);
    return req;
}

static enum MHD_Result mhd_on_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    (void)kind;
    struct http_request *req = cls;
    request_add_header(req, arena_strdup(req->arena, name),
                       arena_strdup(req->arena, value != NULL ? value : ""));
    return MHD_YES;
}

static const struct sockaddr *mhd_peer(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
}

static enum MHD_Result mhd_headers(struct http_request *req, const char *method)
{
    req->method = http_method_parse(method);
    req->peer = mhd_peer(req->connection);
    MHD_get_connection_values(req->connection, MHD_HEADER_KIND, mhd_on_header, req);
    struct error err = ERROR_INIT;
    if (request_check_headers(req, &err) != 0) {
        request_refuse(req, &err);
        req->linger = true;
        return mhd_queue(req); /* and close: where the next request begins is not certain */
    }
    if (!request_has_body(req)) {
        req->step = STEP_FINAL;
        return MHD_YES;
    }
    req->step = STEP_BEGIN;
    return mhd_before_body(req);
}

static enum MHD_Result mhd_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                      const char *method, const char *version, const char *data,
                                      size_t *len, void **ctx)
{
    (void)cls;
    (void)connection;
    (void)url;
    (void)version;
    struct http_request *req = *ctx;
    switch ((enum mhd_step)req->step) {
    case STEP_HEADERS:
        return mhd_headers(req, method);
    case STEP_BEGIN:
        return mhd_before_body(req);
    case STEP_BODY:
        if (*len > 0)
            return mhd_body(req, data, len);
        req->step = STEP_FINAL;
        return mhd_final(req);
    case STEP_FINAL:
        return mhd_final(req);
    }
    return MHD_NO;
}

static void mhd_on_completed(void *cls, struct MHD_Connection *connection, void **ctx,
                             enum MHD_RequestTerminationCode how)
{
    (void)cls;
    (void)connection;
    (void)how;
    struct http_request *req = *ctx;
    if (req == NULL)
        return;
    *ctx = NULL;
    if (req->linger) {
        int fd = dup(mhd_socket(req));
        if (fd >= 0)
            closer_add(req->server->closer, fd);
    }
    request_end(req);
}

static void mhd_on_connection(void *cls, struct MHD_Connection *connection, void **ctx,
                              enum MHD_ConnectionNotificationCode what)
{
    (void)ctx;
    struct mhd *m = cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        server_connection_opened(m->server);
    else
        server_connection_closed(m->server, mhd_peer(connection));
}

/* Paths stay as they are; we unescape them ourselves, once, after routing. */
static size_t mhd_unescape_nothing(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls;
    (void)connection;
    return strlen(text);
}

/* --- the daemon ------------------------------------------------------------------------------- */

/* poll, not epoll: with epoll's edges libmicrohttpd takes a short read for an empty socket, and so
 * misses the end of a connection that came together with its last bytes, until the idle timeout. */
static struct MHD_Daemon *mhd_start(struct mhd *m, const struct mhd_config *config)
{
    const unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC |
                           MHD_ALLOW_SUSPEND_RESUME;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, mhd_on_request, m, MHD_OPTION_THREAD_POOL_SIZE,
        config->threads > 1 ? config->threads : 0, MHD_OPTION_CONNECTION_LIMIT,
        config->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT, config->connection_memory,
        MHD_OPTION_CONNECTION_TIMEOUT, config->idle_timeout_s, MHD_OPTION_URI_LOG_CALLBACK,
        mhd_on_uri, m, MHD_OPTION_NOTIFY_COMPLETED, mhd_on_completed, m,
        MHD_OPTION_NOTIFY_CONNECTION, mhd_on_connection, m, MHD_OPTION_UNESCAPE_CALLBACK,
        mhd_unescape_nothing, m, MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_END);
}

int mhd_new(struct http_server *server, const struct mhd_config *config, struct mhd **out,
            struct error *err)
{
    struct mhd *m = xcalloc(1, sizeof *m);
    m->server = server;
    /* Its threads inherit the mask: signals are the main thread's. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    m->daemon = mhd_start(m, config);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (m->daemon == NULL) {
        free(m);
        return error_set(err, E_IO, "libmicrohttpd cannot start with %u threads", config->threads);
    }
    *out = m;
    return 0;
}

void mhd_add(struct mhd *m, int fd, const struct sockaddr *peer, socklen_t peer_len)
{
    if (MHD_add_connection(m->daemon, fd, peer, peer_len) == MHD_NO) /* which has closed it */
        peers_leave(m->server->peers, peer);
}

void mhd_free(struct mhd *m)
{
    if (m == NULL)
        return;
    MHD_stop_daemon(m->daemon);
    free(m);
}
