/* The threads of a pool among those who would each take all of them: work has a key (the server
 * that it waits for), and of one key at most so many run at once.  The others of that key wait
 * here, in their order, and take no thread meanwhile.
 *
 * Threads: any. */
#pragma once

#include <stddef.h>

#include "common/error.h"

struct pool;
struct shares;

/* `most`: of one key at once, at least 1; `waiting_max`: of all keys, here. */
struct shares *shares_new(struct pool *pool, unsigned most, size_t waiting_max);
/* After the pool has ended; NULL is fine. */
void shares_free(struct shares *s);
/* E_OVERLOAD where too many wait, here or in the pool. */
int shares_submit(struct shares *s, const char *key, void (*fn)(void *arg), void *arg,
                  struct error *err);
