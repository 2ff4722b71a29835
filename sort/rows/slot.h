/* The form that a row has in memory, and the sorting of those: rowset.c's own.
 *
 * The key is what decides most comparisons without touching a name: for alphanumeric the eight
 * bytes that follow what all names have in common, for none the place, else the row's own, if it
 * has one. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sort/spec/order.h"

struct slot {
    uint64_t key; /* where order_has_key(); else it is made when sorting */
    uint64_t size;
    size_t name; /* offset into `names` */
    uint32_t name_len;
    uint32_t shard;
    uint32_t position;
    uint32_t group;
};

/* In place: quicksort, with heapsort where it goes wrong.  Large tables on several threads, which
 * does not show in the result: no two rows are equal. */
void slots_sort(struct slot *slots, size_t count, const char *names, const struct sort_order *order,
                unsigned threads);
