/* Sets of slices, counted. */
#pragma once

#include "ec/code.h"

static inline unsigned ec_mask_count(ec_mask mask)
{
    return (unsigned)__builtin_popcountll(mask);
}

/* The n lowest, or all. */
static inline ec_mask ec_mask_first(ec_mask mask, unsigned n)
{
    ec_mask out = 0;
    for (; n > 0 && mask != 0; n--) {
        out |= mask & -mask;
        mask &= mask - 1;
    }
    return out;
}
