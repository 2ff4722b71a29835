/* Rates of one user on one node: requests and bytes a second, as token buckets of one second's
 * depth.  Pure; its owner has the lock.
 *
 * A user that was idle may make one second's requests at once.  A request is refused while the user
 * has no request left, or owes bytes.  Bytes are taken when they have gone, in either direction: a
 * large body may owe more than a second's share, and its stream then waits.
 *
 * The limit comes with each call, since the document may change it at any time. */
#pragma once

#include <stdint.h>

#include "cluster/access/user.h"

/* All zero is a user who never asked. */
struct rate {
    double used_requests, used_bytes; /* of the second's share, not given back yet … */
    uint64_t at_ms;                   /* … at this time */
};

/* Takes one request.  0: it may begin.  Else the milliseconds after which one may. */
uint64_t rate_take_request(struct rate *r, const struct access_rate *limit, uint64_t now_ms);
/* Takes bytes that have gone.  The milliseconds that a stream waits before it goes on. */
uint64_t rate_take_bytes(struct rate *r, const struct access_rate *limit, uint64_t bytes,
                         uint64_t now_ms);
