/* Closing a connection whose peer is still sending.
 *
 * close() with unread bytes in the socket sends a reset, and a reset can overtake the reply that
 * was just written.  So the write side is closed, and what still comes is read and thrown away
 * until the peer closes or its time is over (RFC 9112 section 9.6). */
#pragma once

#include "common/error.h"
#include "io/loop.h"

struct closer;

struct closer *closer_new(struct loop *loop);
void closer_free(struct closer *l); /* closes what is left; never from the loop's thread */
/* Takes the descriptor.  Any thread. */
void closer_add(struct closer *l, int fd);
