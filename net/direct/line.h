/* One plain connection to another node, for one request after the other.
 *
 *   node's socket ─▶ memory               line_recv()
 *   node's socket ─▶ kernel pipe ─▶ to    line_splice(), without a copy in memory
 *
 * No call waits.  The pipe is made when it is first needed, and kept with the connection. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"

enum { LINE_IN_KEPT_BYTES = 32 << 10 };

enum {
    LINE_EMPTY = 0, /* no bytes now: EPOLLIN comes */
    LINE_FULL = -1, /* the other socket takes none now */
    LINE_CUT = -2,  /* the connection has ended, or a call failed */
    LINE_COPY = -4, /* no pipe now: by line_recv() */
};

struct http_guest;
struct lines;

struct line {
    int fd;
    int pipe[2];   /* -1: none */
    size_t piped;  /* bytes in it */
    bool copies;   /* this body: there is no pipe for it, or none of use */
    bool drained;  /* the last read left nothing in the socket: what comes now is an event */
    int wakes_at;  /* bytes for which the socket becomes readable */
    struct buf in; /* received and not used yet */
    char *authority;
    struct http_guest *guest; /* that watches it; or NULL */
    struct lines *lines;      /* where it is kept (lines.h) … */
    struct line *next, **prev;
    uint64_t since_ms; /* … since then */
};

/* "127.0.0.1:80", "[::1]:80": no name that must be asked for. */
bool line_is_numeric(const char *authority);
/* Begins to connect to the node `authority` at its numeric `address`; EPOLLOUT comes.
 * `silence_ms`: net/client/silence.h; 0: TCP's own times.  E_NET. */
int line_open(const char *authority, const char *address, uint64_t silence_ms, struct line **out,
              struct error *err);
void line_close(struct line *l); /* and its guest; NULL is fine */
DEFINE_CLEANUP(struct line, line_close);

/* After EPOLLOUT: what the attempt came to.  0 or E_NET. */
int line_check_connected(const struct line *l, struct error *err);
/* > 0 bytes, LINE_FULL or LINE_CUT. */
ssize_t line_send(struct line *l, const char *data, size_t len);
/* Before it is kept: forgets `in`, and keeps no more memory for it than LINE_IN_KEPT_BYTES. */
void line_forget(struct line *l);
/* > 0 bytes, LINE_EMPTY or LINE_CUT.  Not after line_splice() has left bytes in the pipe. */
ssize_t line_recv(struct line *l, char *out, size_t max);
/* Moves at most `max` of the next `left` bytes, which all belong to one body, into a socket that
 * does not block.  > 0 bytes or a LINE_…; LINE_COPY where the system gives no pipe, or a tiny one.
 */
ssize_t line_splice(struct line *l, int to, size_t max, uint64_t left);
/* The caller waits for so many bytes: the socket becomes readable when a good part of them has
 * come. */
void line_await(struct line *l, uint64_t bytes);
bool line_has_bytes(const struct line *l);
/* Between two requests: the node is there, and has sent nothing that nobody asked for. */
bool line_is_clean(const struct line *l);
