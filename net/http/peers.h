/* How many connections each network address has open, so that one client cannot take them all.
 *
 * An IPv4 address counts by itself (also in its IPv6 form), an IPv6 address as its network of 64
 * bits: whoever has one address of that has all of them.  Any thread. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

struct peers;

struct peers *peers_new(unsigned each_max);
void peers_free(struct peers *p); /* all have left */
/* False: this one has each_max already, and is not counted again. */
bool peers_enter(struct peers *p, const struct sockaddr *peer);
void peers_leave(struct peers *p, const struct sockaddr *peer);
/* The connections of this one's address. */
unsigned peers_count(struct peers *p, const struct sockaddr *peer);
