/* All rows of a Redis database as they were at one moment, while others commit: a cut
 * (redis_scripts.h).  SCAN gives all hashes that are there from its begin to its end.  A key that
 * changed before it is read has its former value in the cut; so has one that was deleted. */
#pragma once

#include "mount/meta/meta.h"
#include "mount/meta/redis_pool.h"

enum { REDIS_CUT_SECONDS = 60 }; /* a reader that dies leaves its cut for so long */

/* id: a random one.  E_NOT_READY: another reader has a cut, or this one was lost on the way. */
int redis_cut_read(struct redis_pool *pool, uint64_t id, meta_visit *visit, void *context,
                   struct error *err);
