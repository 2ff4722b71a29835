/* A listening socket on a loop: every accepted connection is handed to a callback. */
#pragma once

#include <stdint.h>
#include <sys/socket.h>

#include "common/error.h"
#include "io/loop.h"

struct listener;

/* In the loop's thread; takes the descriptor. */
typedef void listener_fn(void *arg, int fd, const struct sockaddr *peer, socklen_t peer_len);

/* address: numeric IPv4 or IPv6.  port 0: any free one. */
int listener_new(struct loop *loop, const char *address, uint16_t port, listener_fn *fn, void *arg,
                 struct listener **out, struct error *err);
uint16_t listener_port(const struct listener *l);
void listener_free(struct listener *l); /* never from the loop's thread */
