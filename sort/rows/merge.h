/* Many sorted row sources become one: pull-based, linear in the rows, no memory but one row per
 * source.  Each source may number its shards in its own way: a map gives the merged number, and
 * must keep their order. */
#pragma once

#include <stddef.h>

#include "common/cleanup.h"
#include "sort/spec/order.h"
#include "sort/rows/rows.h"

struct merge;

struct merge *merge_new(const struct sort_order *order); /* borrowed */
void merge_free(struct merge *m);
DEFINE_CLEANUP(struct merge, merge_free);
/* Before the first row.  `map` (borrowed) may be NULL. */
void merge_add(struct merge *m, struct row_source source, const uint32_t *map);
/* 1, 0, < 0; fails, too, where two sources bring the same row. */
int merge_next(struct merge *m, struct sort_row *row, struct error *err);
struct row_source merge_source(struct merge *m);
