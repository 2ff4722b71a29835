/* The engine "memory": a sorted table behind a lock.  Tests and the simulator use it, and compare
 * the other engines with it.  Its clock is meta_memory_clock(), or the wall. */
#pragma once

#include "mount/meta/meta.h"

extern const struct meta_ops meta_memory_ops;

void meta_memory_set_clock(struct meta *m, int64_t unix_ms); /* 0: the wall again */

/* Calls `each` for all keys in their order: what tests compare and judge. */
void meta_memory_walk(struct meta *m,
                      void (*each)(void *context, const struct meta_key *key,
                                   const struct meta_value *value),
                      void *context);
