/* TLS of one connection, below HTTP.  It never waits and never sends: what it has to say is sealed
 * and appended to the buffer `out` of its owner, who sends it.  So writing always succeeds at once,
 * and only reading depends on the socket.  One thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/error.h"

struct tls;
struct tls_session;

enum tls_shake { TLS_SHAKEN, TLS_SHAKES, TLS_FAILED };

/* fd and `out` are borrowed; the socket does not block.  NULL: no memory. */
struct tls_session *tls_session_new(struct tls *t, int fd, struct buf *out);
void tls_session_free(struct tls_session *s);
/* Goes on with the handshake.  `to_the_end`: the socket's peer has ended, of which no event tells a
 * second time.  TLS_SHAKES: until more can be read.  TLS_FAILED: `err` says why, and
 * the alert is in `out`. */
enum tls_shake tls_session_shake(struct tls_session *s, bool to_the_end, struct error *err);
/* As recv(): what could be read now, up to `room`; 0: the peer has ended; -1: EAGAIN, or an error
 * after which the connection must be closed.  A peer that sends records without data, for new keys
 * and nothing else, is such an error.  EAGAIN may also mean that this was enough for once: ask
 * tls_session_is_drained(). */
ssize_t tls_session_read(struct tls_session *s, char *to, size_t room, bool to_the_end);
/* The last read has taken all that had come: a further one is of use when the socket is readable
 * again, or at its end. */
bool tls_session_is_drained(const struct tls_session *s);
/* Seals all of it.  False: the session is broken. */
bool tls_session_write(struct tls_session *s, const void *data, size_t len);
/* Says that nothing follows, so that the peer knows it has all. */
void tls_session_end(struct tls_session *s);
