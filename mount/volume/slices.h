/* The slice entries of a chunk, and which bytes each of them shows.  Pure.
 *
 * A slice is what one continuous write stored; it never changes.  An entry shows a part of a slice
 * at a place of the chunk, over all older entries.  Slice 0 is zeros: holes, and what a truncation
 * cut off.  Bytes that no entry covers are zeros, too.
 *
 *     old  aaaaaaaaaaaa
 *              bbbb
 *     new        cc
 *          aaaabbccaaaa      four extents
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/buf.h"
#include "common/error.h"

enum { SLICE_SUM_BYTES = 128 << 10 };

struct slice_entry {
    uint32_t at;          /* in the chunk */
    uint32_t length;      /* above 0 */
    uint32_t offset;      /* in the slice */
    uint32_t size;        /* of the slice */
    uint64_t slice;       /* 0: zeros */
    const uint64_t *sums; /* XXH3-64 of each SLICE_SUM_BYTES of the slice */
    uint32_t sums_count;
};

struct slice_list {
    struct slice_entry *entries; /* the newest last */
    size_t count;
};

/* A chunk's value.  E_CORRUPT: it is none, or an entry is outside of chunk or slice. */
int slices_decode(const uint8_t *data, size_t size, uint64_t chunk_bytes, struct arena *arena,
                  struct slice_list *out, struct error *err);
void slices_encode(const struct slice_list *list, struct buf *out);

struct extent {
    uint32_t at, length;
    const struct slice_entry *entry; /* NULL: zeros */
    uint32_t offset;                 /* in the slice */
};

/* What bytes from `at` on, `length` of them, are: extents without gaps, in order, as few as there
 * can be.  They are in the arena and point into the list. */
size_t slices_resolve(const struct slice_list *list, uint32_t at, uint32_t length,
                      struct arena *arena, struct extent **out);

struct slice_range {
    uint32_t at, length; /* in the chunk */
};

/* A list that costs too much: it has more entries than `most`, or less than half of the bytes of
 * its slices are shown. */
bool slices_is_messy(const struct slice_list *list, unsigned most, struct arena *arena);
/* What of such a list to store anew: ranges, each within one block, and each then one slice.  They
 * are in the arena.  Returns their number. */
size_t slices_plan(const struct slice_list *list, uint64_t block_bytes, struct arena *arena,
                   struct slice_range **out);

/* Takes out entries that show nothing: they are hidden, or are zeros over nothing.  The entries
 * that were taken out, in the arena, are what the chunk no longer names. */
struct slice_list slices_prune(struct slice_list *list, uint64_t chunk_bytes, struct arena *arena);
