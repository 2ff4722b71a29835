/* The sessions that a client has with its peers: calls are signed with them (auth.h).
 *
 * A call to a peer without a session waits until one is open, with all others to that peer; it is
 * then signed and started, or fails as the opening did.  A peer that does not know the session (it
 * has begun anew) says so, and the call is signed and sent again.  The bytes of a stream cannot be
 * sent twice: it asks first (Expect: 100-continue), which is a round trip; only where that is not
 * answered within a second the bytes go all the same, and may fail as if the connection had been
 * cut.
 *
 * Everything in the loop's thread. */
#pragma once

#include <stdint.h>

#include "net/client/call.h"

struct session_desk;

/* Starts a call of the desk's own at the client. */
typedef uint64_t session_launch_fn(struct http_client *client, struct call *c,
                                   void (*done)(void *arg, struct http_result *r), void *arg);

struct session_desk *session_desk_new(session_launch_fn *launch, struct http_client *client,
                                      struct auth *auth);
/* Nobody waits any more. */
void session_desk_free(struct session_desk *d);

enum session_answer { SESSION_GO, SESSION_WAIT };

/* SESSION_GO: c->signature is what goes before its headers.  SESSION_WAIT: the call is the desk's,
 * which begins or ends it (struct call_life). */
enum session_answer session_sign(struct session_desk *d, struct call *c);
/* The reply's head: is the call to be signed and sent again?  Fails it where that cannot be. */
bool session_wants_again(struct session_desk *d, struct call *c, const struct http_head *head);
/* The transfer failed: who answers next may be another process. */
void session_doubt(struct session_desk *d, const struct call *c);
/* One that waits; NULL: none has this number. */
struct call *session_waiting(struct session_desk *d, uint64_t number);
/* Those who wait, one after the other: fn may end the call. */
void session_each_waiting(struct session_desk *d, void (*fn)(struct call *c, uint64_t now),
                          uint64_t now);
