/* What a connection has read and not used up.  During a turn it stands in memory that all
 * connections of the reactor share; what is left at the turn's end is kept in the connection's
 * own. */
#pragma once

#include <stddef.h>

#include "net/http/conn_types.h"

/* The beginning and the end of a turn. */
void conn_input_borrow(struct conn *c);
void conn_input_return(struct conn *c);
/* The first bytes are used up. */
void conn_input_consume(struct conn *c, size_t len);
/* Reads more behind what is there; there must be room.  Under TLS a read may bring what has to be
 * answered: that goes out before more is read.  CONN_AGAIN: try again, with more bytes or without;
 * CONN_WAIT: the socket has none; CONN_CLOSE: there will be none. */
enum conn_verdict conn_input_read(struct conn *c);
