/* A public listener that is full makes room: a newcomer gets the place of a connection that asks
 * nothing.
 *
 * Silent is a connection without a whole request, new or kept, perhaps still in the handshake of
 * TLS, from which nothing has come that is
 * not read, for ROOM_SILENT_MS.  Of the addresses that have silent connections, the one with the
 * most connections (peers.h) gives a place: that of its connection that has been silent for
 * longest.  Connections with a request count for their address, but are never closed for another.
 * So clients that hold silent connections do not keep others out, however many addresses they have.
 * Where none is silent the newcomer is refused with 503.
 *
 * Connections belong to reactors.  A newcomer asks each reactor for its best place, one after the
 * other, and then takes that of the reactor that had the best.  A reactor passes once through its
 * connections for that.  Meanwhile the newcomer counts as a connection: there are
 * ROOM_NEWCOMERS_MAX of them at most, beyond connections_max.
 *
 * Listeners of nodes close no connection for this: their nodes prove themselves (server_state.h,
 * SERVER_SILENT_SHARE). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct http_server;

enum {
    ROOM_SILENT_MS = 1000,   /* one that came just now may speak yet */
    ROOM_NEWCOMERS_MAX = 64, /* that look for room at one time */
    ROOM_RETRY_MS = 100,     /* after a search that found none, none begins for so long */
};

/* The accepting thread's.  False: no newcomer may look for room now. */
bool room_may_be_made(struct http_server *s);
/* Takes the descriptor of a connection that is counted already (peers_enter,
 * server_connection_opened). */
void room_make(struct http_server *s, int fd, const struct sockaddr *peer, socklen_t peer_len);
