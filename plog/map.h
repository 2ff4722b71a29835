/* The map of a plog: which byte of which segment each logical byte is.  Pure.
 *
 * A map is made of the ends of segments (segment.h), in any order, and each once.  It shows the
 * same file whoever makes it: of two writes of a byte the one with the greater key is seen, where a
 * key is (epoch, writer, n, position in the segment).  A cut is a write of nothing from its length
 * on.
 *
 * A map is of one thread at a time; looking at it may sort it.
 *
 * A merged index is a header of PLOG_MERGED bytes and such ends, footer before index, one behind
 * the other.  It takes nothing away, so a segment that arrives late finds its place.
 *
 *     0  "dfcplogm"   8  u32 format (1), u32 number of segments   16  u64 XXH3 of what follows */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "plog/segment.h"

enum { PLOG_MERGED = 24, PLOG_RUNS_MAX = 1 << 18 };

struct plog_extent {
    uint64_t start, length; /* logical */
    uint64_t physical;      /* in the segment */
    size_t segment;         /* see plog_map_segment() */
};
struct plog_extents {
    size_t count, room;
    struct plog_extent *items;
};
void plog_extents_done(struct plog_extents *e);

struct plog_map;

struct plog_map *plog_map_new(void);
void plog_map_free(struct plog_map *m);
DEFINE_CLEANUP(struct plog_map, plog_map_free);
#define _cleanup_plog_map_ _cleanup_(plog_map_freep)

/* From now on E_TOO_LARGE instead of more than `bytes` of memory; hint: what to do then, or NULL,
 * and it lives longer.  0 bytes: any number. */
void plog_map_limit(struct plog_map *m, uint64_t bytes, const char *hint);
uint64_t plog_map_memory(const struct plog_map *m); /* the sum of its segments */
/* Of the index, and of a piece for each of its records: many times as much.  Sorting needs up to
 * three times that for a while. */
uint64_t plog_footer_memory(const struct plog_footer *f);
bool plog_map_has(const struct plog_map *m, const struct plog_segment_name *name);
/* Nothing happens where the map has the segment.  E_CORRUPT: it is no index of this footer.
 * E_TOO_LARGE: the limit. */
int plog_map_add(struct plog_map *m, const struct plog_footer *f, const uint8_t *index,
                 struct error *err);
/* Adds what is in a merged index.  After an error some of it may have been added. */
int plog_map_parse(struct plog_map *m, const uint8_t *bytes, size_t len, struct error *err);
void plog_map_print(const struct plog_map *m, struct buf *out); /* a merged index */

/* --- what the map says ------------------------------------------------------------------------ */
size_t plog_map_segments(const struct plog_map *m);
const struct plog_footer *plog_map_segment(const struct plog_map *m, size_t i);
const uint8_t *plog_map_index(const struct plog_map *m, size_t i);
uint64_t plog_map_size(struct plog_map *m);        /* of the file */
uint64_t plog_map_bytes(const struct plog_map *m); /* of data in all segments */
uint32_t plog_map_epoch(const struct plog_map *m); /* the greatest */
/* The first byte from `from` on that some write has, be it cut or not; false: there is none. */
bool plog_map_next(struct plog_map *m, uint64_t from, uint64_t *at);
/* The extents of [from, end), ascending; what is between them reads as zeros.  Neighbours in one
 * segment are one extent.  The end, which is the result, is `to`.  It is less where patterns have
 * more than PLOG_RUNS_MAX runs in the range, beside one for each record: so memory is bounded, also
 * by a small index of patterns that has billions of runs. */
uint64_t plog_map_paint(struct plog_map *m, uint64_t from, uint64_t to, struct plog_extents *out);
