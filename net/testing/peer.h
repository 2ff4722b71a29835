/* A bare HTTP server for tests of the client: one thread that runs the test's script over blocking
 * sockets, so that every byte, and every missing one, is the test's.
 *
 *     static void script(struct peer *p)
 *     {
 *         struct peer_conn *c = peer_accept(p);
 *         peer_read_request(c);
 *         peer_print(c, "HTTP/1.1 204 No Content\r\n\r\n");
 *         peer_close(c);
 *     }
 *
 * A script that waits longer than 20 seconds for anything ends the program: a hang is a failure. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"

struct peer {
    uint16_t port;
    int fd;
    pthread_t thread;
    void (*script)(struct peer *p);
    void *ctx;            /* the script's */
    atomic_uint accepted; /* connections */
};

struct peer_conn {
    int fd;
    struct buf in;   /* received and not used yet */
    struct buf head; /* of the last request */
    struct buf body; /* unchunked */
};

void peer_start(struct peer *p, void (*script)(struct peer *p), void *ctx);
void peer_stop(struct peer *p); /* no more connections: peer_accept() returns NULL */
void peer_join(struct peer *p);

struct peer_conn *peer_accept(struct peer *p);
/* Reads a request's head, up to the blank line.  False: the client closed the connection. */
bool peer_read_head(struct peer_conn *c);
/* The body of the request whose head was read last.  False: it was cut short. */
bool peer_read_body(struct peer_conn *c);
bool peer_read_request(struct peer_conn *c); /* both */
/* 1..max bytes as they come; 0: the client closed or reset the connection. */
size_t peer_read_some(struct peer_conn *c, char *out, size_t max);
/* False when the client has closed. */
bool peer_send(struct peer_conn *c, const void *data, size_t len);
bool peer_print(struct peer_conn *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Whether the head has this text anywhere. */
bool peer_saw(const struct peer_conn *c, const char *text);
void peer_close(struct peer_conn *c);
