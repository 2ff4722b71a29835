/* The records of an index: which logical bytes the data of a segment are.  Pure.
 *
 *   piece   `count` runs of `length` bytes; the first begins at `start`, each further one `stride`
 *           bytes later.  Their data follow the data of the piece before.
 *   cut     the file was cut (or extended) to `start` bytes
 *
 * A record is one byte of kind, then varints:
 *
 *   0  run       delta of start, length
 *   1  pattern   delta of start, length, stride, count
 *   2  cut       length of the file
 *
 * The delta counts from the end of the piece before, in zigzag: 0, -1, 1, -2, … are 0, 1, 2, 3, … .
 * The encoder finds runs and patterns, so that equal writes at equal distances are one record. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

#define PLOG_OFFSET_MAX ((uint64_t)INT64_MAX) /* of a logical byte, and of the end of a file */

struct plog_record {
    bool is_cut;
    uint64_t start;
    uint64_t length;   /* the rest is for pieces; at least 1 */
    uint64_t stride;   /* 0, or greater than length: the runs of a piece never touch */
    uint64_t count;    /* 1 where stride is 0, else at least 2 */
    uint64_t physical; /* of the piece's first byte in the segment */
};

/* One past the last logical byte of a piece. */
uint64_t plog_record_end(const struct plog_record *r);

/* --- writing ---------------------------------------------------------------------------------- */
struct plog_encoder {
    struct buf out; /* records that are complete */
    uint32_t records;
    uint64_t last_end;               /* of the last piece in `out` */
    struct plog_record pattern, run; /* not in `out` yet; count 0: none.  pattern comes first. */
};

void plog_encoder_done(struct plog_encoder *e);
/* The next bytes of data are these logical ones.  length ≥ 1, start + length ≤ PLOG_OFFSET_MAX. */
void plog_encode_write(struct plog_encoder *e, uint64_t start, uint64_t length);
void plog_encode_cut(struct plog_encoder *e, uint64_t length);
void plog_encode_flush(struct plog_encoder *e); /* `out` has all; more may follow */

/* --- reading ---------------------------------------------------------------------------------- */
struct plog_cursor {
    const uint8_t *at, *end;
    uint64_t last_end, physical;
};

/* 1 and the next record, 0 at the end, or E_CORRUPT: a record that no encoder makes. */
int plog_cursor_next(struct plog_cursor *c, struct plog_record *r, struct error *err);
