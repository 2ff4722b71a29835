/* The tiers below the memory buffer: the disk cache, where there is one, and the store.
 *
 * Of a request each piece is read from the cache as far as it is there; the store gives the rest,
 * which the cache writes later.  An entity with neither entity tag nor sums cannot be told from
 * another version, so the cache does not have it.  Any thread may call. */
#pragma once

#include "cache/cache.h"
#include "mount/data/buffer.h"

/* What waits to be written to the disk takes this part of the buffer. */
#define TIERS_FILL_SHARE 4

struct tiers {
    struct cache *cache; /* NULL: no disk cache */
    struct data_store store;
    char *scope; /* of names in the cache: no other bucket of any cluster has it */
    bool joins;  /* the cache is to have large entities in one file */
};

/* As fetch of struct data_store; context is a struct tiers. */
int tiers_fetch(void *tiers, const struct entity *e, uint64_t offset, uint64_t length,
                const struct dfc_sink *sink);

/* As near of struct data_store: what the cache has. */
bool tiers_near(void *tiers, const struct entity *e, uint64_t offset, size_t length, void *to);

/* Brings what is missing of the range into the cache, and waits until it is written: 0, or -errno.
 * EOPNOTSUPP: there is no cache, or the entity is none for it; ENOSPC: the cache has not taken all
 * of it. */
int tiers_warm(struct tiers *t, const struct entity *e, uint64_t offset, uint64_t length);

/* Bytes of the range that the cache has. */
uint64_t tiers_cached(struct tiers *t, const struct entity *e, uint64_t offset, uint64_t length);

/* A descriptor of a file with the entity's bytes, as of cache_whole(); -1: there is none. */
int tiers_whole(struct tiers *t, const struct entity *e);
void tiers_hold(struct tiers *t, const struct entity *e, int by); /* as cache_hold() */

/* The entity's bytes, which the store has got by now: the cache may keep them. */
void tiers_put(struct tiers *t, const struct entity *e, const char *data);
/* A reader has found that bytes of the entity are not what they must be. */
void tiers_differ(void *tiers, const struct entity *e, uint64_t offset);

/* ---- how the cache knows an entity; malloc'ed, pure ---- */

char *tiers_name(const char *scope, const struct entity *e);
char *tiers_set(const char *scope, const char *key); /* the bucket and two directories */
