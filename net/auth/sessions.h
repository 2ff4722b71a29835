/* The sessions that others have opened with this node, by their ids.  Pure; its owner has the lock.
 *
 * A session is *fresh* until its first request proves that who opened it has the key.  Fresh
 * sessions have a small room of their own, and push out only one another.  Greetings without a
 * challenge (of the release before this one) can be overheard and sent again, and those sessions
 * stay fresh for ever: they have a second small room, so that they push out no others.  Of the
 * proven ones the least recently used goes when there are too many; its node opens another. */
#pragma once

#include "common/auth/mac.h"
#include "net/auth/window.h"

enum { AUTH_NAME_MAX = 64 }; /* of nodes, boots, clusters: longest text with its end */

enum auth_session_room { ROOM_EARLIER, ROOM_FRESH, ROOM_PROVEN, AUTH_SESSION_ROOMS };

struct auth_session {
    char id[2 * AUTH_SESSION_BYTES + 1]; /* hex */
    unsigned char key[AUTH_MAC_BYTES];
    enum auth_session_room room;
    struct auth_window window;
    struct auth_session *chain;         /* of one hash */
    struct auth_session *older, *newer; /* of one room */
};

struct auth_sessions;

struct auth_sessions *auth_sessions_new(size_t fresh_max, size_t proven_max);
void auth_sessions_free(struct auth_sessions *s);
/* The id is new; ROOM_EARLIER or ROOM_FRESH.  The session stays until others push it out. */
struct auth_session *auth_sessions_add(struct auth_sessions *s, enum auth_session_room room,
                                       const char *id);
struct auth_session *auth_sessions_find(struct auth_sessions *s, const char *id); /* or NULL */
/* A request of it was proven: it is the most recently used. */
void auth_sessions_used(struct auth_sessions *s, struct auth_session *x);
size_t auth_sessions_count(const struct auth_sessions *s);
