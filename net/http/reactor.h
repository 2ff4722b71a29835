/* A thread that drives connections: epoll, timeouts, and wake-ups from other threads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/error.h"
#include "net/http/conn_types.h"

struct reactor_limits {
    uint64_t timeout_ms;           /* in which nothing moves */
    uint64_t head_timeout_ms;      /* of the first head; 0: timeout_ms */
    uint64_t handshake_timeout_ms; /* of TLS */
    unsigned handshakes_max;
};

int reactor_new(struct http_server *server, const char *thread_name,
                const struct reactor_limits *limits, struct reactor **out, struct error *err);
/* Takes the descriptor of an accepted connection, which is counted already
 * (server_connection_opened).  Any thread. */
void reactor_adopt(struct reactor *r, int fd, const struct sockaddr *peer, socklen_t peer_len);
unsigned reactor_load(const struct reactor *r);
/* Ends the thread.  Other reactors may still give it jobs and connections. */
void reactor_stop(struct reactor *r);
/* Of one that has ended: takes what it was still given.  False: nothing. */
bool reactor_finish(struct reactor *r);
/* Closes the connections; no request may be owed, and all reactors of the server have ended. */
void reactor_free(struct reactor *r);
