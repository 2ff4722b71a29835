/* What becomes of a GET or HEAD of an object that the store does not have: the one place that knows
 * where else it could be.  The sources stand in a table (miss.c) and are asked in its order:
 *
 *   miss_begin ─▶ source ─▶ source ─▶ … ─▶ 404
 *                   │
 *                   └ takes the call: replies now or later, or says miss_next() when it has found
 *                     nothing after all
 *
 * A source is quick where it does not take the call: it runs in an HTTP thread, or in a reader's.
 * Who takes it may go on in any thread.  A tombstone is an answer, not a miss: who finds one says
 * miss_ends(), and the search is over. */
#pragma once

#include <stdbool.h>

struct object_call;

struct miss_source {
    const char *name;
    bool (*take)(struct object_call *call);
};

/* The rows. */
extern const struct miss_source earlier_source, cold_miss, miss_lost;

void miss_begin(struct object_call *call);
void miss_next(struct object_call *call);
/* There is no such object: 404. */
void miss_ends(struct object_call *call);
