/* One simulated client: one request at a time, over a kept-alive connection to each endpoint that
 * it has met.
 *
 *   IDLE ─▶ CONNECTING ─▶ SENDING ─▶ AWAITING ─▶ READING ─▶ (the next request) … FINISHED
 *             ▲              ▲          │
 *             └── redirect ──┴──────────┘
 *
 * A failure is counted, closes the connection and makes the client IDLE; the worker's loop starts
 * it again, so that a server that refuses everybody cannot make us recurse. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/bench/load.h"

enum client_phase {
    CLIENT_IDLE,
    CLIENT_CONNECTING,
    CLIENT_SENDING,
    CLIENT_AWAITING,
    CLIENT_READING,
    CLIENT_FINISHED,
};

struct client_socket {
    int fd; /* -1: not open */
    bool wants_out;
    uint64_t answers; /* that came over this connection */
    struct load_client *client;
};

struct load_client {
    struct load_worker *worker;
    enum client_phase phase;
    struct client_socket sockets[LOAD_ENDPOINTS_MAX];
    unsigned endpoint; /* of the request under way */

    bool put;
    bool expecting;   /* the body waits for 100 Continue */
    bool closing;     /* the connection ends with this answer */
    bool redirecting; /* the answer being read is a 307 that leads to next_endpoint and path */
    unsigned next_endpoint;
    unsigned hops;
    unsigned path_index;
    uint64_t begin_ns;
    char path[LOAD_PATH_MAX];

    char out[LOAD_PATH_MAX + LOAD_EXTRA_MAX + 256];
    size_t out_len;
    size_t out_sent;
    uint64_t body_sent;

    char in[LOAD_HEAD_MAX];
    size_t in_len;
    unsigned status;
    uint64_t body_left;
};

void client_init(struct load_client *c, struct load_worker *w);
void client_start(struct load_client *c); /* IDLE → the next request, or FINISHED */
void client_on_event(struct client_socket *s, uint32_t events);
void client_fail(struct load_client *c, enum load_error kind);
void client_done(struct load_client *c); /* closes its connections */
