/* How long calls wait for a server that is away: 60 s from the moment when it went, whoever asks.
 *
 *     for (unsigned failures = 1; the call fails for now; failures++)
 *         if (!patience_wait(&p, failures))
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
    _Atomic uint64_t away_since_ms; /* 0: the server is there */
};

void patience_back(struct patience *p); /* the server has replied */
/* False: it is away for too long.  Otherwise sleeps a little first, longer with each failure. */
bool patience_wait(struct patience *p, unsigned failures);
