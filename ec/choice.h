/* Which blocks of a stripe to read, so that those that are wanted are in memory or can be computed.
 * Pure.
 *
 * First those that are wanted; where one of them is not to be had, as few others as make k, data
 * before parity.  A slice with a damaged block somewhere is *doubted*: it counts as missing in that
 * stripe alone, and in others is tried last, where without it there are fewer than k. */
#pragma once

#include "ec/code.h"

struct ec_choice {
    unsigned k;
    ec_mask have, doubted; /* slices */
    ec_mask want;          /* blocks */
};

/* `tried` were read, and of them `good` are what they should be.  0: all that are wanted are good,
 * or there are k, or no more can be had. */
ec_mask ec_choice_next(const struct ec_choice *c, ec_mask tried, ec_mask good);
