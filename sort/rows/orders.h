/* Orders: the outputs that a target shall build: shards, and of which records; indexes.
 *
 * In the stream from the last target to a builder:
 *
 *     magic      "DFCORDR4"
 *     job        8 bytes
 *     shards     each: 1, then the shard as below
 *     end        0, varint shards
 *     checksum   8 bytes
 *
 *     shard:     kind, length of the name, name, bytes, records, digest (16 bytes), and for each
 *                record: source target, shard's number there, position, blocks (size / 512); or the
 *                text
 *
 * A builder keeps its orders in a book: all of them, before it builds the first shard, so that
 * nothing is built of a plan that turns out impossible. */
#pragma once

#include <stdint.h>
#include <xxhash.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "sort/base/blob.h"
#include "sort/base/codec.h"
#include "sort/base/env.h"

enum order_kind {
    ORDER_SHARD,
    ORDER_DALI, /* the index (dali.h) of the shard that would have these records */
    ORDER_TEXT, /* these bytes */
};

struct order_record {
    uint32_t source; /* target */
    uint32_t shard;  /* its number there */
    uint32_t position;
    uint64_t size;
};

struct order_shard {
    enum order_kind kind;
    struct buf name; /* text */
    uint64_t bytes;  /* of the records, as in a tar; of the text */
    uint64_t records;
    XXH128_hash_t digest; /* of the records and their order, whoever has them (planner.c) */
};

int order_put_record(struct encoder *e, const struct order_record *r, struct error *err);
int order_get_record(struct decoder *d, unsigned participants, struct order_record *r,
                     struct error *err);
int order_put_shard(struct encoder *e, const struct order_shard *s, struct error *err);
int order_get_shard(struct decoder *d, struct order_shard *s, struct error *err);

/* --- the book -----------------------------------------------------------------------------------
 */

struct book;

struct book *book_new(const struct sort_env *env, uint64_t memory_limit);
void book_free(struct book *b);
DEFINE_CLEANUP(struct book, book_free);
/* An output and its records, encoded as above, out of `records`; or its text. */
int book_add(struct book *b, const struct order_shard *s, struct source records, struct error *err);
size_t book_count(const struct book *b);
size_t book_shards(const struct book *b);  /* of these */
uint64_t book_bytes(const struct book *b); /* of all shards' records */
/* Where output i begins: the range to decode. */
struct blob_range book_range(const struct book *b, size_t i);

/* --- the stream ---------------------------------------------------------------------------------
 */

int orders_begin(struct encoder *e, uint64_t job, struct error *err);
int orders_add(struct encoder *e, const struct order_shard *s, struct source records,
               struct error *err);
int orders_end(struct encoder *e, uint64_t shards, struct error *err);
/* The whole stream into the book. */
int orders_receive(struct source source, uint64_t job, unsigned participants, struct book *b,
                   struct error *err);
