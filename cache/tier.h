/* One cache directory: its files, what stays of them, and whether it is used.
 *
 * A thread of its own writes what comes from the store, so no reader waits for the disk's writes.
 * Memory for that is bounded; with too little, a piece is dropped and counted.  It begins with a
 * scan of the pieces that are there; they are found before it ends, too.  Any thread may call. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cache/files.h"
#include "cache/pace.h"
#include "cache/piece.h"
#include "common/cleanup.h"
#include "common/error.h"

/* All directories of the cache, to one of them. */
struct tier_source {
    void *context;
    /* Gives the piece's bytes in order to take(), as far as they are cached: how many, or the error
     * of take(). */
    int64_t (*read)(void *context, const struct cache_entity *e, uint64_t index,
                    int (*take)(void *context, const void *data, size_t size), void *taker);
    void (*hold)(void *context, const struct cache_entity *e, int by); /* its pieces: as below */
    void (*drop)(void *context, const struct cache_entity *e); /* its pieces: the whole is there */
};

struct tier_options {
    const char *directory;
    uint64_t limit_bytes;  /* of all pieces, as they are on the disk */
    unsigned free_percent; /* of the file system that stays free */
    uint64_t idle_ms;      /* data sets that were not read for so long leave first */
    uint64_t fill_bytes;   /* memory of what is to be written */
    struct tier_source source;
};

struct tier;

int tier_open(const struct tier_options *options, struct tier **out, struct error *err);
/* What was handed over is written; it still may be read. */
void tier_stop(struct tier *t);
void tier_close(struct tier *t); /* NULL is fine */
DEFINE_CLEANUP(struct tier, tier_close);

/* ---- reading ---- */

/* False: pass it by, for now. */
bool tier_may_read(struct tier *t, const struct pace_side *store);
/* Nobody waits for the bytes: a directory that is tried now and then is left to readers. */
bool tier_may_copy(struct tier *t);
/* May a reader wait itself, whom nobody can interrupt then?  True: tier_near_end() follows. */
bool tier_near_begin(struct tier *t);
void tier_near_end(struct tier *t);
/* As files_find() and files_read(): 0 or -errno.  What is damaged is removed and logged. */
int tier_find(struct tier *t, const struct piece *p, struct files_piece *found);
/* The same of a piece within the whole. */
int tier_find_within(struct tier *t, const struct piece *p, struct files_piece *found);
int tier_read(struct tier *t, const struct files_piece *found, const struct piece *p, size_t offset,
              size_t size, void *to);
/* The reader has found the piece to be so. */
void tier_damaged(struct tier *t, const struct piece *p);
void tier_count(struct tier *t, uint64_t bytes); /* readers got them */
/* Ends the read; the disk took so long. */
void tier_found_close(struct tier *t, struct files_piece *found, const struct pace_side *store,
                      uint64_t us);

/* ---- filling ---- */

struct tier_fill {
    void *data; /* `size` bytes: to be filled */
    size_t size;
};

/* For bytes of a piece that come now.  NULL: they are not wanted.  insist: they are wanted, and
 * memory is waited for; NULL only where the disk is not used. */
struct tier_fill *tier_fill_begin(struct tier *t, const struct piece *p, size_t offset, size_t size,
                                  bool insist);
void tier_fill_end(struct tier *t, struct tier_fill *fill, bool good); /* false: none came */
/* Returns when all that was handed over until now is written or dropped. */
void tier_flush(struct tier *t);

/* ---- wholes ---- */

/* A descriptor of the whole's file, whose bytes were compared in the last 24 hours, since the
 * machine started; or -1.
 * *known: the whole is there, compared or not. */
int tier_whole(struct tier *t, const struct piece *whole, bool *known);
/* Makes the entity's whole of its pieces, or compares the one that is there: by the filler, when it
 * has nothing else to do.  It may fail, and is forgotten then. */
void tier_join(struct tier *t, const struct cache_entity *e);
void tier_drop(struct tier *t, const struct piece *p); /* a piece that is within a whole */
void tier_hold(struct tier *t, const struct piece_id *id, int by); /* it does not leave: +1, -1 */

/* ---- looking ---- */

/* As far as the scan has come. */
bool tier_knows(struct tier *t, const struct piece_id *id);
/* True: the scan has not ended, too. */
bool tier_may_have(struct tier *t, const struct piece_id *id);

bool tier_is_out(struct tier *t);                         /* its disk is no longer used */
bool tier_has(struct tier *t, const struct piece_id *id); /* waits for the scan */
