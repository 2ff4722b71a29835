/* Connections of a control or data listener on which nobody has proven yet to be a node.
 *
 * They have a quarter of connections_max, and one network address has three quarters of that:
 * whoever has no key takes at most these, and a node keeps what it has open.  A connection leaves
 * with its first signed request, or when it is closed; a request without a signature is its last
 * (net/conn.c).  Any thread. */
#pragma once

#include <sys/socket.h>

#include "common/error.h"

struct unproven;

enum {
    UNPROVEN_SHARE = 4, /* one of so many connections */
    UNPROVEN_MIN = 8,   /* however few connections there may be */
};

struct unproven *unproven_new(unsigned connections_max);
void unproven_free(struct unproven *u); /* all have left */
/* E_OVERLOAD: there are too many, and this one is not counted. */
int unproven_enter(struct unproven *u, const struct sockaddr *peer, struct error *err);
void unproven_leave(struct unproven *u, const struct sockaddr *peer);
