/* The log of an upload's parts: one record for each part whose bytes are stored.  Pure; fuzzed.
 *
 *     number u32 · side u32 · size u64 · unit u64 · time u64 · MD5 · XXH3-64 of these
 *
 * An upload whose parts have checksums of S3 has a longer record, in which these precede the
 * XXH3-64:
 *
 *     checksum, and zeros behind it · algorithm u64: a place in enum s3_sum_type
 *
 * All records of a log have one form.  Uploads of earlier builds have the short one.
 *
 * Numbers are little-endian.  A record is appended after its part's bytes are durable, one record
 * after the other.  A number that is sent again has a further record, and the last one counts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "s3/sum.h"

enum {
    PARTS_MAX = 10000,
    PART_RECORDS_MAX = 20 * PARTS_MAX, /* of one upload: parts that were sent again count, too */
    PART_MD5 = 16,
    PART_RECORD = 56,     /* bytes */
    PART_RECORD_SUM = 96, /* with a checksum */
};

#define PART_SIZE_MAX (5ULL << 30) /* bytes */

struct part {
    unsigned number; /* 1 to PARTS_MAX */
    uint32_t side;   /* its bytes are in the file side-<side>; 0: in the body */
    uint64_t size;   /* bytes, at most PART_SIZE_MAX */
    uint64_t unit;   /* of a part in the body: it begins at (number - 1) * unit; else 0 */
    uint64_t time_ms;
    unsigned char md5[PART_MD5];
    bool has_sum; /* so have all parts of an upload, or none */
    struct s3_sum_value sum;
};

/* The parts that count, by ascending numbers. */
struct part_table {
    struct part *parts;
    size_t count;
    uint64_t unit;       /* of all parts in the body; 0: none is there */
    size_t log_bytes;    /* of whole records: what follows is torn, and to be cut */
    uint32_t sides_used; /* the greatest side file of any record */
};

/* `record`, here and below: bytes of each record, PART_RECORD or PART_RECORD_SUM. */
void part_record_put(const struct part *part, size_t record,
                     unsigned char out[static PART_RECORD_SUM]);
/* Reads a log.  Bytes at the end that are no whole record are torn by a crash, and zeros in
 * place of a record are one that power was lost before.  E_CORRUPT: another damaged record before a
 * whole one, or one that no upload writes. */
int part_log_read(const void *log, size_t len, size_t record, struct part_table *out,
                  struct error *err);
/* The side file of a number's last record in these bytes of a log; 0: in the body, or none. */
uint32_t part_log_side(const void *log, size_t len, size_t record, unsigned number);
void part_table_clear(struct part_table *table);
/* NULL: no such part. */
const struct part *part_table_find(const struct part_table *table, unsigned number);
