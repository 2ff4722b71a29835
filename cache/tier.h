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

struct tier_options {
    const char *directory;
    uint64_t limit_bytes;  /* of all pieces, as they are on the disk */
    unsigned free_percent; /* of the file system that stays free */
    uint64_t idle_ms;      /* data sets that were not read for so long leave first */
    uint64_t fill_bytes;   /* memory of what is to be written */
};

struct tier;

int tier_open(const struct tier_options *options, struct tier **out, struct error *err);
void tier_close(struct tier *t); /* after all that is to be written is; NULL is fine */
DEFINE_CLEANUP(struct tier, tier_close);

/* ---- reading ---- */

/* False: pass it by, for now. */
bool tier_may_read(struct tier *t, const struct pace_side *store);
/* May a reader wait itself, whom nobody can interrupt then?  True: tier_near_end() follows. */
bool tier_near_begin(struct tier *t);
void tier_near_end(struct tier *t);
/* As files_find() and files_read(): 0 or -errno.  What is damaged is removed and logged. */
int tier_find(struct tier *t, const struct piece *p, struct files_piece *found);
int tier_read(struct tier *t, const struct files_piece *found, const struct piece *p, size_t offset,
              size_t size, void *to);
/* The reader has found the piece to be so. */
void tier_damaged(struct tier *t, const struct piece *p);
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
void tier_flush(
    struct tier *t); /* returns when all that was handed over until now is written or dropped */

/* ---- looking ---- */

bool tier_is_out(struct tier *t);                         /* its disk is no longer used */
bool tier_has(struct tier *t, const struct piece_id *id); /* waits for the scan */
