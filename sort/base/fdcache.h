/* Open files by number, at most `capacity` of them: the ones in use, and the last used ones.
 *
 * A file in use is never closed, so that with more users than capacity there may be more; each user
 * holds a bounded number (sort/shard/gather.h).  Any thread; files are opened without the lock. */
#pragma once

#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

struct fdcache;

struct fdcache *fdcache_new(uint32_t files, uint32_t capacity,
                            int (*open)(void *ctx, uint32_t file, int *fd, struct error *err),
                            void *ctx);
void fdcache_free(struct fdcache *c); /* nothing is in use */
DEFINE_CLEANUP(struct fdcache, fdcache_free);
int fdcache_get(struct fdcache *c, uint32_t file, int *fd, struct error *err);
void fdcache_put(struct fdcache *c, uint32_t file);
