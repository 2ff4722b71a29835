/* --parallel */
#pragma once

#include "api/ctl/args.h"

#define PARALLEL_DEFAULT 8
#define PARALLEL_MAX 256

static inline unsigned parallel_of(const struct args *a)
{
    if (!a->given[F_parallel] || a->number[F_parallel] == 0)
        return PARALLEL_DEFAULT;
    return a->number[F_parallel] < PARALLEL_MAX ? (unsigned)a->number[F_parallel] : PARALLEL_MAX;
}
