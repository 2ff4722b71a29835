/* A server: a listener, connections that drive requests, and the list of the requests that live.
 *
 * Ending.  The listener goes first.  Connections that are still there may ask once more: what has
 * come in is carried out, every reply is the last one of its connection, those that have asked
 * nothing yet are waited for a moment (not with libmicrohttpd), and all have END_GRACE_MS to finish
 * by themselves.  After that new requests get 503, and bodies and streams are aborted,
 * whose pace the client sets.  What the handlers owe is waited for, however long it takes: their
 * threads hold the requests. */
#include "net/http/server.h"

#include <assert.h>
#include <errno.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/mem.h"
#include "common/rng.h"
#include "io/loop.h"
#include "io/pool.h"
#include "net/auth/auth.h"
#include "net/http/closer.h"
#include "net/http/listener.h"
#include "net/http/mhd.h"
#include "net/http/peers.h"
#include "net/http/reactor.h"
#include "net/http/refuse.h"
#include "net/http/request.h"
#include "net/http/room.h"
#include "net/http/server_state.h"

enum {
    END_GRACE_MS = 2000,
    SILENT_GRACE_MS = 500, /* a first request that is on its way */
    /* All metadata that an object may have, each pair as a header, must get from node to node. */
    HEADERS_OF_NODES_MIN = 16 * 1024,
    HEADERS_MAX = 64 * 1024,      /* whatever connection_memory says: they are read in one piece */
    MHD_CONNECTIONS_SPARE = 1024, /* above our own limit, which is checked before */
};

/* --- accepting -------------------------------------------------------------------------------- */

static struct reactor *server_idlest_reactor(struct http_server *s)
{
    struct reactor *best = s->reactors[0];
    for (size_t i = 1; i < s->reactor_count; i++) {
        if (reactor_load(s->reactors[i]) < reactor_load(best))
            best = s->reactors[i];
    }
    return best;
}

static void server_adopt(struct http_server *s, bool is_full, int fd, const struct sockaddr *peer,
                         socklen_t peer_len)
{
    server_connection_opened(s);
    if (is_full)
        room_make(s, fd, peer, peer_len);
    else
        reactor_adopt(server_idlest_reactor(s), fd, peer, peer_len);
}

static void server_accepted(void *arg, int fd, const struct sockaddr *peer, socklen_t peer_len)
{
    struct http_server *s = arg;
    bool is_full =
        atomic_load_explicit(&s->connections, memory_order_relaxed) >= s->connections_max;
    if (is_full && !room_may_be_made(s))
        refuse_full(s, fd);
    else if (!peers_enter(s->peers, peer))
        refuse_peer(s, fd);
    else if (s->reactor_count > 0)
        server_adopt(s, is_full, fd, peer, peer_len);
    else
        mhd_add(s->mhd, fd, peer, peer_len);
}

/* --- beginning and ending --------------------------------------------------------------------- */

static const char *net_name(enum http_net net)
{
    switch (net) {
    case NET_PUBLIC:
        return "public";
    case NET_CONTROL:
        return "control";
    case NET_DATA:
        return "data";
    case NET_S3:
        return "s3";
    case NET_ADMIN:
        return "admin";
    default:
        return "all";
    }
}

static int server_start_mhd(struct http_server *s, const struct http_server_config *config,
                            struct error *err)
{
    const struct mhd_config mhd = {
        .threads = config->threads,
        .connections_max = config->connections_max + MHD_CONNECTIONS_SPARE,
        .connection_memory = config->connection_memory,
        .idle_timeout_s = config->idle_timeout_s,
    };
    return mhd_new(s, &mhd, &s->mhd, err);
}

static int server_start_reactors(struct http_server *s, const struct http_server_config *config,
                                 struct error *err)
{
    const struct reactor_limits limits = {
        .timeout_ms = 1000ull * config->idle_timeout_s,
        .head_timeout_ms = config->head_timeout_ms,
        .handshake_timeout_ms = config->tls_handshake_timeout_ms,
        .handshakes_max = (config->tls_handshakes_max + config->threads - 1) / config->threads,
    };
    s->reactors = xcalloc(config->threads, sizeof s->reactors[0]);
    for (; s->reactor_count < config->threads; s->reactor_count++) {
        char name[40]; /* the kernel keeps 15 of it */
        snprintf(name, sizeof name, "http-%s-%zu", net_name(config->net), s->reactor_count);
        int rc = reactor_new(s, name, &limits, &s->reactors[s->reactor_count], err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Whose routes the server has. */
static unsigned nets_of(const struct http_server_config *config)
{
    const struct http_guard *guard = config->guard;
    if (config->net == NET_ADMIN)
        return NET_PUBLIC | NET_ADMIN;
    if (config->net == NET_PUBLIC && guard != NULL && guard->asks_rights &&
        !config->admin_is_elsewhere)
        return NET_PUBLIC | NET_ADMIN;
    return config->net;
}

static int server_start(struct http_server *s, const struct http_server_config *config,
                        struct error *err)
{
    int rc = router_new(config->routes, nets_of(config), &s->router, err);
    if (rc != 0)
        return rc;
    if (config->net == NET_PUBLIC &&
        (rc = router_new(config->routes, NET_CONTROL, &s->elsewhere, err)) != 0)
        return rc;
    s->metrics = xcalloc(router_count(s->router) + 1, sizeof s->metrics[0]);
    if ((rc = loop_new("http-accept", &s->loop, err)) != 0 ||
        (rc = pool_new("http-bodies", 1, SERVER_BODIES_QUEUE, &s->bodies, err)) != 0 ||
        (rc = pool_keep(s->bodies, 1, err)) != 0)
        return rc;
    s->closer = closer_new(s->loop);
    rc = config->layer == HTTP_LAYER_MICROHTTPD ? server_start_mhd(s, config, err)
                                                : server_start_reactors(s, config, err);
    if (rc != 0)
        return rc;
    return listener_new(s->loop, config->address, config->port, server_accepted, s, &s->listener,
                        err);
}

/* A newcomer that looks for room passes from one to another (room.h): all end before one is
 * freed. */
static void server_stop_reactors(struct http_server *s)
{
    for (size_t i = 0; i < s->reactor_count; i++)
        reactor_stop(s->reactors[i]);
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < s->reactor_count; i++)
            more |= reactor_finish(s->reactors[i]);
    }
    for (size_t i = 0; i < s->reactor_count; i++)
        reactor_free(s->reactors[i]);
    free(s->reactors);
}

static void server_done(struct http_server *s)
{
    listener_free(s->listener);
    server_stop_reactors(s);
    mhd_free(s->mhd);
    pool_free(s->bodies);
    closer_free(s->closer);
    loop_free(s->loop);
    router_free(s->router);
    peers_free(s->peers);
    router_free(s->elsewhere);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->metrics);
    free(s->node);
    free(s);
}

static unsigned peer_max(unsigned connections_max)
{
    unsigned max = connections_max / 100 * SERVER_PEER_PERCENT +
                   connections_max % 100 * SERVER_PEER_PERCENT / 100;
    return max > 0 ? max : 1;
}

static size_t headers_max(const struct http_server_config *config)
{
    size_t max = config->connection_memory / 2;
    if (config->net == NET_DATA && max < HEADERS_OF_NODES_MIN)
        return HEADERS_OF_NODES_MIN;
    return max < HEADERS_MAX ? max : HEADERS_MAX;
}

/* libmicrohttpd does not say which connection a request is of. */
static bool asks_for_proof(const struct http_server_config *config)
{
    return (config->net & NET_CLIENTS) == 0 && config->layer != HTTP_LAYER_MICROHTTPD &&
           config->auth != NULL && auth_has_key(config->auth);
}

int http_server_new(const struct http_server_config *config, struct http_server **out,
                    struct error *err)
{
    assert(config->tls == NULL ||
           (config->layer == HTTP_LAYER_EPOLL && config->tls_handshakes_max > 0));
    assert(config->threads > 0 && config->connections_max > 0 && config->idle_timeout_s > 0);
    struct http_server *s = xcalloc(1, sizeof *s);
    s->node = xstrdup(config->node);
    s->net = config->net;
    s->admin_is_elsewhere = config->admin_is_elsewhere;
    s->connections_max = config->connections_max;
    s->peer_connections_max = peer_max(config->connections_max);
    s->peers = peers_new(s->peer_connections_max);
    s->asks_for_proof = asks_for_proof(config);
    s->headers_max = headers_max(config);
    s->collect_memory = config->collect_memory > 0 ? config->collect_memory : HTTP_COLLECT_MEMORY;
    s->body_rate = config->body_rate;
    s->auth = config->auth;
    s->tls = config->tls;
    s->visitors = config->visitors;
    s->guard = config->guard;
    s->witness = config->witness;
    s->error_form = config->error_form;
    s->dialect = config->dialect;
    s->user = config->user;
    s->received_bytes = metric_get(M_http_bytes_received_total, NULL);
    s->sent_bytes = metric_get(M_http_bytes_sent_total, NULL);
    s->overload = metric_get(M_http_overload_total, NULL);
    s->unauthorized = metric_get(M_http_unauthorized_total, NULL);
    s->handshakes_failed = metric_get(M_tls_handshakes_failed_total, NULL);
    char labels[64];
    snprintf(labels, sizeof labels, "listener=\"%s\"", net_name(config->net));
    s->connections_gauge = metric_get(M_http_connections, labels);
    random_id("", s->run);
    pthread_mutex_init(&s->lock, NULL);
    condition_init(&s->changed);
    int rc = server_start(s, config, err);
    if (rc != 0) {
        server_done(s);
        return rc;
    }
    *out = s;
    return 0;
}

size_t http_server_requests(struct http_server *s)
{
    pthread_mutex_lock(&s->lock);
    size_t count = s->request_count;
    pthread_mutex_unlock(&s->lock);
    return count;
}

uint16_t http_server_port(const struct http_server *s)
{
    return listener_port(s->listener);
}

void http_server_leave(struct http_server *s)
{
    atomic_store(&s->leaving, true);
}

static bool is_asked(struct http_server *s)
{
    return s->request_count > 0;
}

static bool is_awaited(struct http_server *s)
{
    return s->request_count > 0 || atomic_load(&s->silent) > 0;
}

/* With the lock held: waits while it is so, no longer than this. */
static void server_wait_while(struct http_server *s, bool (*so)(struct http_server *s), int ms)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += ms / 1000;
    end.tv_nsec += ms % 1000 * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    int rc = 0;
    while (so(s) && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&s->changed, &s->lock, &end);
}

static bool server_owes(struct http_server *s)
{
    for (struct http_request *req = s->requests; req != NULL; req = req->next) {
        if (request_is_owed(req))
            return true;
    }
    return false;
}

static void server_drain(struct http_server *s)
{
    atomic_store(&s->draining, true);
    pthread_mutex_lock(&s->lock);
    server_wait_while(s, is_awaited, SILENT_GRACE_MS);
    server_wait_while(s, is_asked, END_GRACE_MS - SILENT_GRACE_MS);
    atomic_store(&s->over, true);
    for (struct http_request *req = s->requests; req != NULL; req = req->next)
        request_abort(req);
    bool waited = false;
    for (; server_owes(s); waited = true)
        pthread_cond_wait(&s->changed, &s->lock);
    if (waited)
        server_wait_while(s, is_asked, END_GRACE_MS); /* the last replies go out */
    pthread_mutex_unlock(&s->lock);
}

void http_server_free(struct http_server *s)
{
    if (s == NULL)
        return;
    listener_free(s->listener);
    s->listener = NULL;
    server_drain(s);
    server_done(s);
}
