/* A PUT whose bytes have all come, and which has failed for certain: nobody was told to commit it.
 *
 *   why            owners have changed since it began; or a proxy with an older map has sent it to
 *                  a target that does not act, for a client that cannot follow a redirect; or
 *                  another owner has just begun anew, and did not take it
 *   what is done   it is sent once more to the owner that acts by now (this target, too), as the
 *                  client's own request; the client gets that answer
 *   how often      until the owner that acts has taken or refused it (hand_next.h).  A header marks
 *                  what was sent on, and its receiver does not send it on again: no sender waits
 *                  for another sender, on this target or elsewhere */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct object_call;
struct object_put;

/* What was put: read from the file, which may have lost its name. */
struct handed {
    int fd; /* -1: none */
    uint64_t size;
};

/* Holds what a put has, all of it, whatever becomes of the put. */
int handed_take(struct handed *h, struct object_put *put, struct error *err);
void handed_drop(struct handed *h);

/* Would it be sent on, as things are?  Else the caller need not read the bytes.  Waits for the
 * newest map: no thread of a loop. */
bool hand_on_is_of_use(const struct object_call *call, const struct error *why);
/* Takes h, and replies, also where it cannot be handed on; `why`: what it is answered with then.
 * Any thread. */
void hand_on(struct object_call *call, struct handed *h, const struct error *why);
