/* Rows in a stream, front-coded: what a merge sends, and what a run in a work file holds.
 *
 *     row:  shared     varint   bytes that the name has in common with the one before
 *           rest       varint   bytes that follow
 *           …                   those bytes
 *           shard      varint
 *           position   varint
 *           blocks     varint   size / 512
 *           key        8 bytes, low first; where order_has_key()
 *           group      varint; where rows are grouped
 *
 * The number of rows is known beforehand (a header, a run's own count), so that there is no end
 * mark.  A reader checks everything: numbers within their bounds, sizes that do not overflow, and
 * that each row comes after the one before it in the order. */
#pragma once

#include <stdint.h>

#include "sort/base/codec.h"
#include "sort/spec/order.h"

/* A record's, and what sort/rows/items.h adds to a key, or a key of content before it. */
#define ROW_NAME_MAX (SORT_NAME_MAX + 1 + SORT_CONTENT_MAX)

/* Rows one after the other.  The row's name is valid until the next call. */
struct row_source {
    /* 1 and a row, 0 at the end, or an error. */
    int (*next)(void *ctx, struct sort_row *row, struct error *err);
    void *ctx;
};

struct row_writer {
    struct encoder *encoder;
    const struct sort_order *order;
    struct buf last; /* the name before */
};

void row_writer_init(struct row_writer *w, struct encoder *e, const struct sort_order *order);
void row_writer_done(struct row_writer *w);
int row_writer_put(struct row_writer *w, const struct sort_row *row, struct error *err);

struct row_reader {
    struct decoder *decoder;
    const struct sort_order *order;
    uint32_t shards; /* numbers are below this */
    uint64_t left;   /* rows */
    uint64_t bytes;  /* of the rows so far */
    bool any;
    struct sort_row last;
    struct buf names[2]; /* of the last row and of the one that is being read */
};

void row_reader_init(struct row_reader *r, struct decoder *d, const struct sort_order *order,
                     uint32_t shards, uint64_t rows);
void row_reader_done(struct row_reader *r);
int row_reader_next(struct row_reader *r, struct sort_row *row, struct error *err); /* 1, 0, < 0 */
