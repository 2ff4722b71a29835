/* Where a key is in Redis.  All keys of Redis have one hash tag.
 *
 *     {dfcv}h<letter><…>   a hash: fields and stamped values
 *     {dfcv}i<letter><…>   a sorted set: order of what the hash cannot give in order
 *
 *     shape             hash                    field           sorted set
 *     POINT             letter, id / 256        id % 256        of the kind: id / 256
 *     NUMBERS, XATTR    letter, id              number, name    none: the script sorts them
 *     ENTRY             letter, id              name            of the directory: names
 *     QUEUE             letter                  time, number    of the kind: fields
 *
 * Hashes of 256 inodes need less memory than a key of Redis for each inode.  Numbers are
 * big-endian, so that their bytes have their order. */
#pragma once

#include "mount/meta/meta.h"

#define REDIS_TAG "{dfcv}"

enum { REDIS_HASH_MAX = sizeof REDIS_TAG + 1 + 1 + 8 };

struct redis_slot {
    char shape; /* 'p' POINT, 'n' without a sorted set, 'i' with one */
    size_t hash_size, field_size;
    char hash[REDIS_HASH_MAX];
    char field[META_KEY_MAX];
};

void redis_slot_of(const struct meta_key *key, struct redis_slot *out);

/* The rows that a page asks for: their hash (of a POINT kind, its sorted set), and bounds. */
struct redis_range {
    char shape;
    size_t hash_size, low_size, high_size;
    char hash[REDIS_HASH_MAX];
    /* 'i': as ZRANGEBYLEX takes them.  Otherwise low is the field after which the rows begin, or
     * empty, and high is not used. */
    char low[1 + META_KEY_MAX], high[1 + META_KEY_MAX];
};

/* Of META_PAGE. */
void redis_range_of(const struct meta_item *item, struct redis_range *out);
/* Of a queue: ids up to `until`. */
void redis_range_until(enum meta_kind kind, uint64_t until, struct redis_range *out);

/* The key of a row: `range` gave its field.  The name points into `bytes`, which holds the encoded
 * key.  False: no key has this field. */
bool redis_range_key(const struct redis_range *range, const char *field, size_t size,
                     uint8_t bytes[static META_KEY_MAX], struct meta_key *out);
