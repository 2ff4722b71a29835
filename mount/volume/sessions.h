/* Sessions of a volume, as other clients see them. */
#pragma once

#include "mount/volume/txn.h"

enum {
    SESSION_BYTES = 8, /* the time of its last heartbeat, in ms */
    SESSION_LANES_MAX = 1024,
    SESSION_RANGES_MAX = 1024,
};

/* Takes away a session with its lanes and ranges.  With `beat` only if that is its last heartbeat:
 * E_PRECONDITION otherwise, and where the session has committed meanwhile. */
int sessions_end(struct meta *m, uint64_t session, const int64_t *beat, struct error *err);
/* Ends those without a heartbeat.  0 or -errno. */
int sessions_expire(struct volume *v);
