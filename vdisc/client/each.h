/* The same work for many numbers, on a few threads. */
#pragma once

#include <stdint.h>

#include "api/dfc.h"

/* Calls run() with each number below `count`, begun in their order.  The first failure ends what
 * has not begun; that of the lowest number is returned with its error.  threads: at least 1. */
int each_number(uint32_t count, unsigned threads,
                int (*run)(void *context, uint32_t number, struct dfc_error *err), void *context,
                struct dfc_error *err);
