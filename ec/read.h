/* From slices to an object's bytes, or to a lost slice.  Memory: k + m blocks.
 *
 * Of each stripe only the blocks are read that the range lies in.  Where one of them is not to be
 * had (its slice is not there, its disk does not give it, its check is wrong) others are read, as
 * few as make k (choice.h).  A slice that could not be read is not asked again.  One that gave what
 * is not its own is missing in that stripe, and for others asked last: so an object is read whose
 * slices are all damaged, as long as each stripe has k good blocks.  What a slice has given before
 * is not doubted: each block was checked. */
#pragma once

#include "ec/code.h"
#include "ec/header.h"

/* One block to be read. */
struct ec_want {
    unsigned slice;
    uint64_t offset; /* in the slice's file */
    size_t len;
    unsigned char *out;
    int code; /* the outcome: 0, or why not */
};

struct ec_source {
    void *ctx;
    /* Reads all of them, side by side where it can; each says for itself whether it failed. */
    void (*read)(void *ctx, struct ec_want *wants, size_t count);
};

struct ec_reader;

/* `have`: the slices that there are, or seem to be; `doubted`: those of them that are known to be
 * damaged, and asked last.  E_INVALID. */
int ec_reader_new(const struct ec_layout *layout, uint64_t tag, ec_mask have, ec_mask doubted,
                  const struct ec_source *source, struct ec_reader **out, struct error *err);
void ec_reader_free(struct ec_reader *r);
DEFINE_CLEANUP(struct ec_reader, ec_reader_free);

typedef int ec_take_fn(void *ctx, const void *data, size_t len, struct error *err);

/* The bytes of the object, in order, in pieces.  E_RANGE beyond its length.  Where a stripe has
 * fewer than k good blocks: the code of the first slice that could not be read, or E_CORRUPT. */
int ec_reader_range(struct ec_reader *r, uint64_t offset, uint64_t len, ec_take_fn *take, void *ctx,
                    struct error *err);
/* The file of this slice, in order; its header's slice_sum.  Blocks that it has, and that are good,
 * are its own, all others are made of others. */
int ec_reader_rebuild(struct ec_reader *r, unsigned slice, ec_take_fn *take, void *ctx,
                      uint64_t *slice_sum, struct error *err);

/* Those that have failed: to be repaired. */
ec_mask ec_reader_failed(const struct ec_reader *r);
/* Those of them that gave what is not theirs, or said that it is damaged (E_CORRUPT). */
ec_mask ec_reader_damaged(const struct ec_reader *r);
/* Bytes that were asked for. */
uint64_t ec_reader_bytes(const struct ec_reader *r);
