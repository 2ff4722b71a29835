/* A segment: an object with bytes of one writer, in the order of its writes, and their index.
 * It is written once and never changed.  Pure.
 *
 *     data | index: sums, records | footer
 *
 * sums     XXH3 of each PLOG_BLOCK of data, 8 bytes each
 * records  record.h
 *
 * Footer, PLOG_FOOTER bytes; integers are little endian:
 *
 *      0  "dfcplog1"                      32  u64 bytes of data
 *      8  u16 format (1), u16 flags       40  u32 bytes of index
 *     12  u32 number of records           44  u32 low half of the footer's XXH3, with this zero
 *     16  u64 writer                      48  u64 end of the logical bytes that are written
 *     24  u32 epoch, u32 n                56  u64 XXH3 of the index
 *
 * Flag 1: there is a cut.  A footer and its index together are the segment's end: whoever has it
 * knows all but the data. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "plog/name.h"
#include "plog/record.h"

enum { PLOG_FOOTER = 64, PLOG_BLOCK = 1 << 20 };

/* --- writing ---------------------------------------------------------------------------------- */
struct plog_segment {
    struct buf bytes; /* data; after the seal all of the object */
    struct plog_encoder index;
    uint64_t end;
    bool cuts;
};

void plog_segment_done(struct plog_segment *s); /* empty, and usable again */
bool plog_segment_empty(const struct plog_segment *s);
/* length ≥ 1, offset + length ≤ PLOG_OFFSET_MAX. */
void plog_segment_write(struct plog_segment *s, const void *data, size_t length, uint64_t offset);
void plog_segment_cut(struct plog_segment *s, uint64_t length);
/* name has epoch, writer and n; the rest of it is filled in.  The index must be below 4 GiB. */
void plog_segment_seal(struct plog_segment *s, struct plog_segment_name *name);

/* --- reading ---------------------------------------------------------------------------------- */
struct plog_footer {
    struct plog_segment_name name;
    uint32_t records;
    uint32_t index_bytes;
    uint64_t index_sum;
};

/* E_CORRUPT, E_UNSUPPORTED: of a later release. */
int plog_footer_parse(const uint8_t bytes[static PLOG_FOOTER], struct plog_footer *f,
                      struct error *err);
void plog_footer_print(const struct plog_footer *f, uint8_t bytes[static PLOG_FOOTER]);
uint64_t plog_footer_size(const struct plog_footer *f); /* of the whole object */
/* Are these bytes the footer's index, whole and sound?  E_CORRUPT. */
int plog_index_check(const struct plog_footer *f, const uint8_t *index, struct error *err);
/* Over the records of an index that has been checked: it meets no error. */
struct plog_cursor plog_index_records(const struct plog_footer *f, const uint8_t *index);
/* Is this the data of block number `block`, all of it?  The index has been checked. */
bool plog_index_block(const struct plog_footer *f, const uint8_t *index, uint64_t block,
                      const void *data, size_t len);
