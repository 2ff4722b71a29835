/* The disk cache of one machine: pieces of entities in one or several directories.
 *
 * Placement is computed: a piece has one directory, by weighted HRW.  The weight of a directory is
 * the size of its file system, and so is its share of the cache's size.  A directory whose disk has
 * failed for good is left out, and the next in rank has its pieces.
 *
 * A cache never makes a read fail.  What it does not have, or has damaged, or cannot read, the
 * caller fetches from the store.  What the store gives is handed over by a fill, and written later.
 * Any thread may call. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cache/piece.h"
#include "common/cleanup.h"
#include "common/error.h"

#define CACHE_DIRECTORIES_MOST 16

struct cache_options {
    const char *directories; /* "DIR" or "DIR:DIR…" */
    uint64_t bytes;          /* of all pieces, as they are on the disks */
    uint64_t fill_bytes;     /* memory of what is to be written */
    uint64_t free_percent;   /* of each file system, that stays free */
    uint64_t idle_ms;        /* data sets that were not read for so long leave first */
};

struct cache;

/* E_EXISTS: another process has one of the directories. */
int cache_open(const struct cache_options *options, struct cache **out, struct error *err);
void cache_close(struct cache *c); /* what was handed over is written; NULL is fine */
DEFINE_CLEANUP(struct cache, cache_close);
/* Those of the directories that can be used, malloc'ed; NULL: none.  Of the others it is warned. */
char *cache_usable(const char *directories);

struct cache_span {
    const struct cache_entity *entity;
    uint64_t offset, size; /* within one piece; begin and end are of parts, or the entity's end */
};

/* Gives the span's bytes in order to take(), as far as they are cached.  Returns how many, or the
 * error of take(), below 0. */
int64_t cache_read(struct cache *c, const struct cache_span *s,
                   int (*take)(void *context, const void *data, size_t size), void *context);

/* As cache_read(), for a reader whom nobody can interrupt: nothing, unless the disk is fast now. */
int64_t cache_read_near(struct cache *c, const struct cache_span *s,
                        int (*take)(void *context, const void *data, size_t size), void *context);

/* A descriptor of a file with the entity's bytes and nothing else, which were compared with their
 * sums in the last 24 hours, since the machine started; -1: there is none.  The file stays readable
 * if it is evicted.  Of an entity all pieces of which are cached it is made then, in the
 * background. */
int cache_whole(struct cache *c, const struct cache_entity *e);
/* The file is not evicted: +1, and -1 later. */
void cache_hold(struct cache *c, const struct cache_entity *e, int by);

/* ---- what the store gives ---- */

struct cache_fill {
    void *data; /* the span's bytes, to be filled; NULL: they are not wanted */
    void *tier, *fill;
};

/* insist: memory is waited for, and no policy refuses. */
struct cache_fill cache_fill_begin(struct cache *c, const struct cache_span *s, bool insist);
/* good: all bytes are there.  us: how long the store took. */
void cache_fill_end(struct cache *c, const struct cache_span *s, struct cache_fill *fill, bool good,
                    uint64_t us);
/* The span's bytes, which the store has got by now.  Kept if a fill of them would be. */
void cache_put(struct cache *c, const struct cache_span *s, const void *data);
/* Returns when all that was handed over is written or dropped. */
void cache_flush(struct cache *c);

/* The caller knows that the piece of the span is damaged: it is removed, and logged. */
void cache_damaged(struct cache *c, const struct cache_span *s);

/* Bytes of the entity's pieces within [offset, offset + size) that are cached. */
uint64_t cache_bytes_of(struct cache *c, const struct cache_entity *e, uint64_t offset,
                        uint64_t size);
