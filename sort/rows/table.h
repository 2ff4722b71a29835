/* A sorted table in a stream: what a target sends to the next one of the arrangement.
 *
 *     magic      "DFCTABL2"
 *     job        8 bytes: the job's hash, so that no stream goes into another job
 *     order      2 bytes: algorithm; decreasing, and 2 for grouped
 *     map        8 bytes, where grouped: the external key map's checksum, so that all have the same
 *     inputs     8 bytes: the sum of the stamps of all inputs (sort/base/env.h)
 *     rows       varint
 *     blocks     varint: the sum of all sizes / 512
 *     dictionary (sort/rows/dict.h)
 *     rows       (sort/rows/rows.h)
 *     checksum   8 bytes: XXH3-64 of everything before, canonical */
#pragma once

#include <stdint.h>

#include "common/cleanup.h"
#include "sort/base/codec.h"
#include "sort/rows/dict.h"
#include "sort/rows/rows.h"

struct table_head {
    uint64_t job;
    struct sort_order order;
    uint64_t map;
    uint64_t inputs;
    uint64_t rows;
    uint64_t bytes;
};

int table_write(struct sink sink, const struct table_head *head, const struct dict *dict,
                struct row_source rows, struct error *err);

struct table_reader;

/* Reads up to the rows.  E_CORRUPT where the stream is not of this job and order. */
int table_reader_open(struct source source, const struct table_head *expected,
                      unsigned participants, struct table_reader **out, struct error *err);
void table_reader_free(struct table_reader *t);
DEFINE_CLEANUP(struct table_reader, table_reader_free);
const struct table_head *table_reader_head(const struct table_reader *t);
const struct dict *table_reader_dict(const struct table_reader *t);
/* The rows; the end comes only after the counts and the checksum have been found right. */
struct row_source table_reader_rows(struct table_reader *t);
