/* Rows, and the total orders over them.
 *
 * A row stands for one record.  What it is ordered by:
 *
 *     alphanumeric   (name, shard, position)        names bytewise, a prefix before its extension
 *     shuffle        (key, name, shard, position)   key: see order_shuffle_key()
 *     none           (shard, position)
 *
 * `decreasing` reverses the comparison of the key alone (the name, or the shuffle key).  Shards are
 * numbered by their place in the request, so that comparing numbers compares places; within one
 * (shard, position) there is one record, so that no two rows are ever equal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sort/spec.h"

#define SORT_BLOCK 512           /* tar's: every record is a whole number of these */
#define SORT_TAR_END 1024        /* the two zero blocks at the end of a tar */
#define SORT_NAME_MAX 65535      /* bytes of a record's name */
#define SORT_POSITION_MAX (UINT32_MAX - 1)

struct sort_row {
    const char *name; /* not NUL-terminated; its owner says how long it lives */
    uint32_t name_len;
    uint32_t shard;
    uint32_t position; /* of the record in its shard, from 0 */
    uint64_t size;     /* bytes in a tar: headers, contents and padding of all members */
    uint64_t key;      /* with SORT_SHUFFLE */
};

struct sort_order {
    enum sort_algorithm algorithm;
    bool decreasing;
};

/* < 0, > 0; 0 only for the same record. */
int order_compare(const struct sort_order *o, const struct sort_row *a, const struct sort_row *b);
int order_compare_names(const char *a, size_t a_len, const char *b, size_t b_len);

/* The first eight bytes, as a big-endian number, of
 * SHA-256(seed as 8 bytes, low first | shard name | NUL | position as 8 bytes, low first):
 * the same on any number of targets, in any order of arrival. */
uint64_t order_shuffle_key(uint64_t seed, const char *shard_name, uint64_t position);
/* Of `count` positions from this one on. */
void order_shuffle_keys(uint64_t seed, const char *shard_name, uint64_t position, uint64_t *keys,
                        size_t count);
