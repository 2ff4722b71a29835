/* The rest of a reply's body that has left curl: it moves from the server's socket into another
 * one without a copy in memory (splice(2)).
 *
 *   server's socket ─▶ kernel pipe ─▶ client's socket
 *
 * The server's connection ends with the body, by a reset.
 *
 * One reader, in any thread, until tap_free().  While the reader waits, the loop watches the
 * server's socket: a server that sends nothing for the stall timeout cuts the stream. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct loop;
struct tap;

enum {
    TAP_EMPTY = 0, /* no bytes now: on_data comes */
    TAP_FULL = -1, /* the other socket takes none now */
    TAP_CUT = -2,  /* there are fewer bytes than there should be, or one of the sockets failed */
};

/* In the loop's thread.  `fd` is taken over.  NULL: no pipe can be had. */
struct tap *tap_new(struct loop *loop, int fd, uint64_t length, uint64_t stall_ms);
void tap_free(struct tap *t); /* NULL is fine */

/* By the reader, before anything else.  fn() runs in the loop's thread, and posts or wakes. */
void tap_on_data(struct tap *t, void (*fn)(void *arg), void *arg);
uint64_t tap_left(const struct tap *t); /* bytes */
/* At most so many bytes, into a socket that does not block, or into memory.  > 0 or a TAP_…; not
 * with no bytes left. */
ssize_t tap_splice(struct tap *t, int to, size_t max);
ssize_t tap_read(struct tap *t, char *out, size_t max);
