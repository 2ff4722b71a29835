/* Caches for tests, in directories of their own, and the store that fills them. */
#pragma once

#include "cache/cache.h"

#define MIB (1u << 20)
#define BLOCK (128u << 10)
#define STORE_US 60000000 /* the store's latency: no disk is so slow that it is passed by */

extern char caches_root[]; /* with d0, d1 and d2 */

int caches_setup(void **state); /* of each test */
int caches_teardown(void **state);

/* Of the first `count` directories, 1 or 3. */
struct cache *caches_make_of(unsigned count, uint64_t bytes, uint64_t fill_bytes);
struct cache *caches_make(unsigned count);

void caches_generate(const struct cache_entity *e, uint64_t offset, size_t size, char *to);
bool caches_matches(const struct cache_entity *e, uint64_t offset, size_t size, const char *data);
/* The store gives these bytes of one piece: are they wanted? */
bool caches_fill_span(struct cache *c, const struct cache_entity *e, uint64_t offset, uint64_t size,
                      bool insist);
/* All of the entity, in parts of `part` bytes. */
void caches_fill(struct cache *c, const struct cache_entity *e, uint64_t part, bool insist);
/* A cache that knows nothing of the store would pass a very slow directory by, to learn of it. */
void caches_store_is_slow(struct cache *c);

/* The files that cache_whole() asked for are made, or given up. */
void caches_settle(void);

/* For cache_read(): compares what comes. */
struct caches_got {
    const struct cache_entity *entity;
    uint64_t at;
    int rc;
};
int caches_take(void *context, const void *data, size_t size);
/* Bytes of it that are cached, each compared. */
uint64_t caches_read_all(struct cache *c, const struct cache_entity *e);
