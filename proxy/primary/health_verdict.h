/* The colour of the cluster's health, kept for a moment: a judgement looks at every bucket, and
 * whoever reads /metrics asks for one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { VERDICT_KEEP_MS = 1000 }; /* what nodes report changes the colour, too */

struct health_verdict {
    const char *colour;     /* one of cluster_health_colours, or NULL: none yet */
    uint64_t term, version; /* of the documents that were judged … */
    uint64_t judged_ms;     /* … at this time */
};

/* Does it hold for these documents at this time? */
bool health_verdict_holds(const struct health_verdict *v, uint64_t term, uint64_t version,
                          uint64_t now_ms);
