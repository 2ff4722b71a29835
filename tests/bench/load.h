/* dfc-load: as much HTTP/1.1 as a server can take, for as little CPU of our own as possible, so
 * that two servers can be compared on one machine.
 *
 *   main.c     threads
 *   options.c, report.c   the command line, what is printed
 *   worker.c   a thread: its epoll loop, deadlines, the endpoints it has learnt from redirects
 *   client.c   one simulated client: a request at a time over kept-alive connections
 *   response.c, histogram.c   pure
 *
 * Bodies received are discarded inside the kernel (recv with MSG_TRUNC); bodies sent come from one
 * memory file through sendfile(2).  At the end of the time no request begins any more and those
 * under way are finished, so that CPU per request is exact.  Nothing is shared between threads but
 * what is constant and two atomics. */
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tests/bench/histogram.h"

enum {
    LOAD_ENDPOINTS_MAX = 16,
    LOAD_PIDS_MAX = 32,
    LOAD_PATH_MAX = 2048,
    LOAD_HEAD_MAX = 8192,
    LOAD_EXTRA_MAX = 1024,
    LOAD_HOPS_MAX = 3,
    /* Up to here a body leaves in the same segment as its head; above, by sendfile. */
    LOAD_INLINE_BODY_MAX = 16 * 1024,
    /* A run with this many failed requests ends: the server is not there. */
    LOAD_ERRORS_MAX = 1000,
};

enum load_mode { LOAD_GET, LOAD_PUT, LOAD_MIXED };

/* What to do with a 307: count it as an answer, take the hop each time, or take it once for each
 * path and then go straight to the place it named. */
enum load_redirect { REDIRECT_NONE, REDIRECT_FOLLOW, REDIRECT_CACHE };

enum load_error {
    LOAD_ERROR_CONNECT,
    LOAD_ERROR_IO,
    LOAD_ERROR_TIMEOUT,
    LOAD_ERROR_PROTOCOL,
    LOAD_ERROR_KINDS
};

struct load_endpoint {
    char authority[80]; /* "127.0.0.1:8080" */
    struct sockaddr_storage address;
    socklen_t address_len;
};

struct load_stats {
    struct histogram latency_ns; /* of answered requests, the hops of a redirect included */
    uint64_t status[600];        /* of final answers, by HTTP status */
    uint64_t errors[LOAD_ERROR_KINDS];
    uint64_t puts;
    uint64_t redirects;
    uint64_t reconnects; /* a kept-alive connection was found closed; the request was sent again */
    uint64_t bytes_in;   /* of bodies */
    uint64_t bytes_out;
    uint64_t last_answer_ns;
};

struct load {
    enum load_mode mode;
    enum load_redirect redirect;
    struct load_endpoint endpoint;
    char **paths;
    unsigned path_count;
    const char *put_prefix;
    uint64_t put_names; /* names repeat after this many; 0: never */
    unsigned put_percent;
    uint64_t body_bytes;
    const char *body; /* the same bytes as body_fd's */
    int body_fd;
    char extra_head[LOAD_EXTRA_MAX];
    bool expect;     /* PUT with Expect: 100-continue */
    bool close_each; /* a connection per request */
    bool zeros;      /* bodies of zeros, not of bytes that do not compress */
    unsigned connections;
    unsigned threads;
    uint64_t requests_max;
    uint64_t duration_ms;
    uint64_t timeout_ms;

    uint64_t begin_ns;
    atomic_uint_fast64_t started;
    atomic_bool stop;
};

struct load_client;

/* Where a GET of one path went last time (REDIRECT_CACHE). */
struct load_route {
    char *path;
    unsigned endpoint;
};

struct load_worker {
    struct load *load;
    pthread_t thread;
    int epoll_fd;
    struct load_client *clients;
    unsigned client_count;
    unsigned idle;   /* clients whose request failed: they begin again from the loop */
    unsigned active; /* clients that have not finished */
    struct load_endpoint endpoints[LOAD_ENDPOINTS_MAX];
    unsigned endpoint_count;
    struct load_route *routes; /* by path */
    uint64_t random;
    struct load_stats stats;
};

uint64_t load_now_ns(void);

int load_endpoint_resolve(const char *host, size_t host_len, uint16_t port,
                          struct load_endpoint *out); /* 0 or an EAI_ code */

/* Prepares `count` clients; returns 0 or an errno value. */
int load_worker_init(struct load_worker *w, struct load *load, unsigned count, unsigned number);
void *load_worker_run(void *worker); /* the thread */
void load_worker_done(struct load_worker *w);
/* The index of the endpoint, which may be a new one; -1: too many, or not resolvable. */
int load_worker_endpoint(struct load_worker *w, const char *host, size_t host_len, uint16_t port);
