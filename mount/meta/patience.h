/* How long calls wait for a server that is away, or that refuses them: 60 s.  They count from the
 * moment when the server went away, whichever call found that.  A call that fails again and again
 * waits no longer than that from its own first failure, while the server answers other calls.
 *
 *     struct patience_call call = {0};
 *     while (the call fails for now)
 *         if (!patience_wait(&p, &call))
 *             give up
 *     patience_back(&p)
 *
 * Any thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { META_AWAY_MS = 60000 };

struct patience {
    uint64_t most_ms;               /* constant */
    _Atomic uint64_t away_since_ms; /* 0: the server is there */
};

struct patience_call {
    unsigned failures;
    uint64_t since_ms; /* of the first failure */
};

void patience_back(struct patience *p); /* the server has done what was asked */
/* False: it takes too long.  Otherwise sleeps a little first, longer with each failure. */
bool patience_wait(struct patience *p, struct patience_call *call);
