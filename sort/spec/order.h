/* Rows, and the total orders over them.
 *
 * A row stands for one record.  What it is ordered by:
 *
 *     alphanumeric   (name, shard, position)        names bytewise, a prefix before its extension
 *     shuffle        (key, name, shard, position)   key: see order_shuffle_key()
 *     none           (shard, position)
 *     md5            (key, name, shard, position)   key: see order_md5_key()
 *     natural        (name with numbers as numbers, name, shard, position)
 *     content        (key, name, shard, position)   key: see content.h
 *
 * A content key that is a text stands in the row's name, before the record's own and a NUL.
 *
 * Before all these comes the group, where there are any: the format of names of the output shards
 * that an external key map sends the record to.
 *
 * `decreasing` reverses the comparison of the first of these alone.  Shards are
 * numbered by their place in the request, so that comparing numbers compares places; within one
 * (shard, position) there is one record, so that no two rows are ever equal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sort/spec/spec.h"

#define SORT_BLOCK 512        /* tar's: every record is a whole number of these */
#define SORT_TAR_END 1024     /* the two zero blocks at the end of a tar */
#define SORT_NAME_MAX 65535   /* bytes of a record's name */
#define SORT_CONTENT_MAX 4096 /* bytes of a key that is a text */
#define SORT_POSITION_MAX (UINT32_MAX - 1)

struct sort_row {
    const char *name; /* not NUL-terminated; its owner says how long it lives */
    uint32_t name_len;
    uint32_t shard;
    uint32_t position; /* of the record in its shard, from 0 */
    uint32_t group;    /* where they are grouped, else 0 */
    uint64_t size;     /* bytes in a tar: headers, contents and padding of all members */
    uint64_t key;      /* where order_has_key() */
};

struct sort_order {
    enum sort_algorithm algorithm;
    bool decreasing;
    bool text_keys; /* with SORT_CONTENT */
    bool grouped;
};

/* Rows have a number that comes first. */
static inline bool order_has_key(const struct sort_order *o)
{
    return o->algorithm == SORT_SHUFFLE || o->algorithm == SORT_MD5 ||
           (o->algorithm == SORT_CONTENT && !o->text_keys);
}

/* The record's name in a row. */
const char *order_name(const struct sort_order *o, const struct sort_row *row, size_t *len);

/* < 0, > 0; 0 only for the same record. */
int order_compare(const struct sort_order *o, const struct sort_row *a, const struct sort_row *b);
/* Runs of digits compare as the numbers that they are, however long; 0 for "a1" and "a01". */
int order_compare_natural(const char *a, size_t a_len, const char *b, size_t b_len);
int order_compare_names(const char *a, size_t a_len, const char *b, size_t b_len);

/* The first eight bytes, as a big-endian number, of
 * SHA-256(seed as 8 bytes, low first | shard name | NUL | position as 8 bytes, low first):
 * the same on any number of targets, in any order of arrival. */
uint64_t order_shuffle_key(uint64_t seed, const char *shard_name, uint64_t position);
/* The first eight bytes, as a big-endian number, of the name's MD5. */
uint64_t order_md5_key(const char *name, size_t len);
/* Of `count` positions from this one on. */
void order_shuffle_keys(uint64_t seed, const char *shard_name, uint64_t position, uint64_t *keys,
                        size_t count);
