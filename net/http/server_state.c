#include "net/http/server_state.h"

#include <stdio.h>

#include "common/clock.h"
#include "net/http/peers.h"

/* --- connections ------------------------------------------------------------------------------ */

void server_connection_opened(struct http_server *s)
{
    atomic_fetch_add_explicit(&s->connections, 1, memory_order_relaxed);
    metric_gauge_add(s->connections_gauge, 1);
}

bool server_asks_for_proof(const struct http_server *s)
{
    return s->asks_for_proof;
}

uint64_t server_head_timeout_ms(struct http_server *s, uint64_t usual_ms)
{
    bool is_crowded =
        s->asks_for_proof && atomic_load(&s->silent) > s->connections_max / SERVER_SILENT_SHARE;
    return is_crowded && usual_ms > SERVER_CROWDED_MS ? SERVER_CROWDED_MS : usual_ms;
}

void server_connection_closed(struct http_server *s, const struct sockaddr *peer)
{
    peers_leave(s->peers, peer);
    atomic_fetch_sub_explicit(&s->connections, 1, memory_order_relaxed);
    metric_gauge_add(s->connections_gauge, -1);
}

void server_connection_silent(struct http_server *s)
{
    atomic_fetch_add(&s->silent, 1);
}

void server_connection_spoke(struct http_server *s)
{
    atomic_fetch_sub(&s->silent, 1);
    if (!server_is_draining(s))
        return;
    pthread_mutex_lock(&s->lock);
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* --- bodies ----------------------------------------------------------------------------------- */

bool server_take_collected(struct http_server *s, size_t own, size_t more)
{
    size_t before = atomic_load_explicit(&s->collected, memory_order_relaxed);
    do {
        bool fits = before + more <= s->collect_memory;
        if (!fits && before != own && own + more > SERVER_COLLECT_SMALL)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&s->collected, &before, before + more,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

void server_give_collected(struct http_server *s, size_t bytes)
{
    atomic_fetch_sub_explicit(&s->collected, bytes, memory_order_relaxed);
}

/* --- requests --------------------------------------------------------------------------------- */

void server_add_request(struct http_server *s, struct http_request *req)
{
    pthread_mutex_lock(&s->lock);
    req->next = s->requests;
    if (req->next != NULL)
        req->next->previous = req;
    s->requests = req;
    s->request_count++;
    pthread_mutex_unlock(&s->lock);
}

void server_remove_request(struct http_server *s, struct http_request *req)
{
    pthread_mutex_lock(&s->lock);
    if (req->previous != NULL)
        req->previous->next = req->next;
    else
        s->requests = req->next;
    if (req->next != NULL)
        req->next->previous = req->previous;
    s->request_count--;
    if (server_is_draining(s))
        pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

bool server_is_draining(struct http_server *s)
{
    return atomic_load_explicit(&s->draining, memory_order_relaxed);
}

bool server_keeps_no_connection(struct http_server *s)
{
    return server_is_draining(s) || atomic_load_explicit(&s->leaving, memory_order_relaxed);
}

bool server_is_over(struct http_server *s)
{
    return atomic_load_explicit(&s->over, memory_order_relaxed);
}

void server_lock(struct http_server *s)
{
    pthread_mutex_lock(&s->lock);
}

void server_changed_and_unlock(struct http_server *s)
{
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* --- metrics ---------------------------------------------------------------------------------- */

static const char *route_name(const struct http_route *route)
{
    return route != NULL ? route->name : "none";
}

static metric_t *route_metric(_Atomic(metric_t *) *slot, enum metric_id id, const char *labels)
{
    metric_t *m = metric_get(id, labels); /* the same for everybody who asks */
    atomic_store_explicit(slot, m, memory_order_release);
    return m;
}

static metric_t *route_requests(struct route_metrics *m, const struct http_route *route, int class)
{
    metric_t *known = atomic_load_explicit(&m->requests[class], memory_order_acquire);
    if (known != NULL)
        return known;
    char labels[128];
    snprintf(labels, sizeof labels, "route=\"%s\",code=\"%dxx\"", route_name(route), class);
    return route_metric(&m->requests[class], M_http_requests_total, labels);
}

static metric_t *route_seconds(struct route_metrics *m, const struct http_route *route)
{
    metric_t *known = atomic_load_explicit(&m->seconds, memory_order_acquire);
    if (known != NULL)
        return known;
    char labels[128];
    snprintf(labels, sizeof labels, "route=\"%s\"", route_name(route));
    return route_metric(&m->seconds, M_http_request_seconds, labels);
}

int server_status(const struct http_request *req)
{
    return req->reply.status != 0 ? req->reply.status : 499;
}

void server_count_request(struct http_server *s, const struct http_request *req)
{
    const struct http_route *route = req->match.route;
    struct route_metrics *m =
        &s->metrics[route != NULL ? req->match.index : router_count(s->router)];
    int status = server_status(req);
    int class = status / 100 >= 1 && status / 100 <= 5 ? status / 100 : 5;
    metric_add(route_requests(m, route, class), 1);
    metric_observe_us(route_seconds(m, route), clock_us() - req->began_us);
    metric_add(s->received_bytes, req->body.received);
    metric_add(s->sent_bytes, req->sent_bytes);
}
