/* Who merges with whom: the paper's arrangement (section 3.1, IntraClusterSort), pure.
 *
 * The participants stand in an order that depends on the salt alone, so that every target finds the
 * same one for itself; those that the job goes on without are left out of it.  In each round,
 * counting from one, odd positions send their table to the next position and leave; an unpaired
 * last one passes into the next round.  After ceil(log2 n) rounds one is left: the last target,
 * which holds the whole order.
 *
 *     round 1   1 -> 2    3 -> 4    5 -> 6    7 (passes)
 *     round 2        2 -> 4              6 -> 7
 *     round 3             4  ------------->   7 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"

#define ARRANGEMENT_MAX 65536 /* participants */

enum arrangement_move {
    ARRANGEMENT_SEND,    /* to `peer`; the last thing it does */
    ARRANGEMENT_RECEIVE, /* from `peer` */
    ARRANGEMENT_PASS,    /* it has no partner in this round */
    ARRANGEMENT_GONE,    /* it has sent in an earlier round */
};

struct arrangement_step {
    enum arrangement_move move;
    unsigned peer;
};

struct arrangement {
    unsigned count; /* who takes part */
    unsigned rounds;
    unsigned *order; /* targets, by position */
    unsigned participants;
    unsigned *position; /* positions, by target; ARRANGEMENT_MAX of those that do not take part */
};

/* absent[i]: target i does not take part; NULL: all do.  Somebody does. */
struct arrangement *arrangement_new(unsigned participants, const bool *absent, uint64_t salt);
void arrangement_free(struct arrangement *a);
DEFINE_CLEANUP(struct arrangement, arrangement_free);

bool arrangement_has(const struct arrangement *a, unsigned target);
/* What target `self` does in a round (0..rounds-1). */
struct arrangement_step arrangement_step(const struct arrangement *a, unsigned self,
                                         unsigned round);
unsigned arrangement_last(const struct arrangement *a); /* who holds the whole order */
