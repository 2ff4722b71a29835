/* The connections that libmicrohttpd drives: a daemon with a pool of threads. */
#pragma once

#include <stddef.h>
#include <sys/socket.h>

#include "common/error.h"

struct http_server;
struct mhd;

struct mhd_config {
    unsigned threads;
    unsigned connections_max; /* never more; the server refuses before */
    size_t connection_memory;
    unsigned idle_timeout_s;
};

int mhd_new(struct http_server *server, const struct mhd_config *config, struct mhd **out,
            struct error *err);
/* Takes the descriptor of an accepted connection. */
void mhd_add(struct mhd *m, int fd, const struct sockaddr *peer, socklen_t peer_len);
void mhd_free(struct mhd *m); /* closes the connections; no request may be asleep */
