#include "tests/bench/load.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/client.h"

enum { EVENTS_MAX = 256, TICK_MS = 20 };

uint64_t load_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int load_endpoint_resolve(const char *host, size_t host_len, uint16_t port,
                          struct load_endpoint *out)
{
    char name[64];
    char service[8];
    if (host_len >= sizeof name)
        return EAI_NONAME;
    memcpy(name, host, host_len);
    name[host_len] = '\0';
    snprintf(service, sizeof service, "%u", port);
    snprintf(out->authority, sizeof out->authority, "%s:%u", name, port);
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    int rc = getaddrinfo(name, service, &hints, &found);
    if (rc != 0)
        return rc;
    memcpy(&out->address, found->ai_addr, found->ai_addrlen);
    out->address_len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

int load_worker_endpoint(struct load_worker *w, const char *host, size_t host_len, uint16_t port)
{
    struct load_endpoint e;
    char authority[sizeof e.authority];
    snprintf(authority, sizeof authority, "%.*s:%u", (int)host_len, host, port);
    for (unsigned i = 0; i < w->endpoint_count; i++)
        if (strcmp(w->endpoints[i].authority, authority) == 0)
            return (int)i;
    if (w->endpoint_count == LOAD_ENDPOINTS_MAX ||
        load_endpoint_resolve(host, host_len, port, &e) != 0)
        return -1;
    w->endpoints[w->endpoint_count] = e;
    return (int)w->endpoint_count++;
}

int load_worker_init(struct load_worker *w, struct load *load, unsigned count, unsigned number)
{
    *w = (struct load_worker){
        .load = load,
        .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
        .clients = calloc(count, sizeof w->clients[0]),
        .client_count = count,
        .active = count,
        .endpoints = {load->endpoint},
        .endpoint_count = 1,
        .routes = calloc(load->path_count + 1, sizeof w->routes[0]),
        .random = 0x9e3779b97f4a7c15u * (number + 1),
    };
    if (w->epoll_fd < 0)
        return errno;
    if (w->clients == NULL || w->routes == NULL)
        return ENOMEM;
    for (unsigned i = 0; i < count; i++)
        client_init(&w->clients[i], w);
    return 0;
}

void load_worker_done(struct load_worker *w)
{
    for (unsigned i = 0; w->clients != NULL && i < w->client_count; i++)
        client_done(&w->clients[i]);
    for (unsigned i = 0; w->routes != NULL && i < w->load->path_count; i++)
        free(w->routes[i].path);
    free(w->routes);
    free(w->clients);
    if (w->epoll_fd >= 0)
        close(w->epoll_fd);
}

static bool too_many_errors(const struct load_worker *w)
{
    uint64_t errors = 0;
    for (unsigned i = 0; i < LOAD_ERROR_KINDS; i++)
        errors += w->stats.errors[i];
    return errors >= LOAD_ERRORS_MAX;
}

static void start_idle(struct load_worker *w)
{
    if (w->idle == 0)
        return;
    w->idle = 0;
    for (unsigned i = 0; i < w->client_count; i++)
        if (w->clients[i].phase == CLIENT_IDLE)
            client_start(&w->clients[i]);
}

static void fail_overdue(struct load_worker *w, uint64_t now)
{
    for (unsigned i = 0; i < w->client_count; i++) {
        struct load_client *c = &w->clients[i];
        bool busy = c->phase != CLIENT_IDLE && c->phase != CLIENT_FINISHED;
        if (busy && now - c->begin_ns > w->load->timeout_ms * 1000000u && now > c->begin_ns)
            client_fail(c, LOAD_ERROR_TIMEOUT);
    }
}

/* Every request ends: by its answer, by a failure, or here by its timeout; and after the run's
 * time none begins.  So the loop ends. */
void *load_worker_run(void *worker)
{
    struct load_worker *w = worker;
    struct load *load = w->load;
    const uint64_t tick_ns = TICK_MS * 1000000u;
    const uint64_t end_ns = load->begin_ns + load->duration_ms * 1000000u;
    uint64_t next_tick_ns = load->begin_ns + tick_ns;
    w->idle = w->client_count;
    start_idle(w);
    while (w->active > 0) {
        struct epoll_event events[EVENTS_MAX];
        int n = epoll_wait(w->epoll_fd, events, EVENTS_MAX, TICK_MS);
        for (int i = 0; i < n; i++)
            client_on_event(events[i].data.ptr, events[i].events);
        start_idle(w);
        uint64_t now = load_now_ns();
        if (now < next_tick_ns)
            continue;
        next_tick_ns = now + tick_ns;
        if (now >= end_ns || too_many_errors(w))
            atomic_store(&load->stop, true);
        fail_overdue(w, now);
    }
    return NULL;
}
