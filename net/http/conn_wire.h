/* The bytes of a connection, to and from its socket: as they are, or under TLS opened and sealed.
 * What is sealed, and what the socket does not take at once, stands in `out` until it is flushed.
 */
#pragma once

#include <sys/types.h>

#include "net/http/conn_types.h"

enum { WIRE_PIECE_BYTES = 64 * 1024 }; /* of a body, sealed and sent at a time */

/* As recv(). */
ssize_t wire_recv(struct conn *c, char *to, size_t room);
/* That call, which gave n (and errno), has left nothing: what comes from now on is a new event. */
bool wire_is_drained(const struct conn *c, ssize_t n, size_t room);
/* What a call that writes to the socket came to: bytes, 0 when it takes none now, or -1. */
ssize_t wire_wrote(struct conn *c, ssize_t n);
/* Sends what stands in `out`.  CONN_AGAIN: the socket takes more; CONN_WAIT: it does not, and some
 * may be left; CONN_CLOSE. */
enum conn_verdict wire_flush(struct conn *c);
/* Bytes that are small beside the socket's room, with nothing in `out` before them. */
enum conn_verdict wire_say(struct conn *c, const char *text, size_t len);
/* Under TLS only: adds the bytes to `out`, sealed.  CONN_AGAIN or CONN_CLOSE. */
enum conn_verdict wire_seal(struct conn *c, const void *data, size_t len);

/* --- the beginning and the end of TLS --------------------------------------------------------- */
/* CONN_HELLO: does a handshake come, or plain HTTP? */
enum conn_verdict wire_hello_step(struct conn *c);
/* CONN_HANDSHAKE. */
enum conn_verdict wire_handshake_step(struct conn *c);
/* Tells the peer that it has everything; TLS ends here. */
void wire_end(struct conn *c);
