/* A bare HTTP client for tests: sends the bytes that it is told to, reads one reply at a time.
 * Failures end the test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"

/* Connections that are opened speak TLS; whose certificate it is does not matter. */
extern bool wire_speaks_tls;

struct wire {
    int fd;
    struct ssl_st *tls; /* NULL: plain */
    bool ended;         /* TLS: the peer has said that nothing follows */
    bool duplex;        /* TLS: its bytes pass through memory, see wire_make_duplex() */
    struct buf in;      /* received and not used yet */
};

struct wire_reply {
    int status;
    struct buf head; /* status line and headers */
    struct buf body; /* unchunked */
    bool complete;   /* false: the connection ended before the body did */
};

struct wire wire_open(uint16_t port);
struct wire wire_open_plain(uint16_t port);
struct wire wire_open_from(uint16_t port, uint32_t address); /* 127.x.y.z, in the host's order */
/* From now on one thread may send while another one reads. */
void wire_make_duplex(struct wire *w);
void wire_close(struct wire *w);
void wire_send(struct wire *w, const void *data, size_t len);
/* Not all of it when the other side closed.  Returns whether all was sent. */
bool wire_try_send(struct wire *w, const void *data, size_t len);
void wire_print(struct wire *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The next reply.  head_only: to a HEAD. */
void wire_read(struct wire *w, bool head_only, struct wire_reply *r);
/* The next reply is an error of node "n1", with this code and what every error has. */
void wire_read_error(struct wire *w, int status, const char *code);
/* The body is an error document with this code. */
void wire_assert_code(struct wire_reply *r, const char *code);
/* As recv(), past TLS and past what was received before; it is not interrupted. */
ssize_t wire_recv_plain(struct wire *w, void *to, size_t room);
/* False: the connection was closed (or reset) before another byte. */
bool wire_is_open(struct wire *w);
/* What comes within this time: 1, a byte (which stays); 0, the end; -1, nothing. */
int wire_peek(struct wire *w, unsigned ms);
/* A connection from this address (as wire_open_from) is one too many.  The server says so: by a
 * reply (503), or by an alert where it speaks TLS. */
void wire_assert_refused(uint16_t port, uint32_t address);
/* The value of a header, or NULL; valid until the next call. */
const char *wire_header(struct wire_reply *r, const char *name);
void wire_reply_done(struct wire_reply *r);
/* One request without a body on the connection, and its reply. */
void wire_get(struct wire *w, const char *method, const char *target, struct wire_reply *r);
