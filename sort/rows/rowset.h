/* The rows of one target, collected in any order and read in order.
 *
 * They stand in one block of memory of the given size: rows from its front, names from its back.
 * When the two meet, what is there is sorted and written as a run to a work file; reading merges
 * the runs and the rest.  When there are RUNS_MAX runs, they are merged into one first.
 *
 * Adding and reading are one thread's at a time. */
#pragma once

#include <stdint.h>

#include "common/cleanup.h"
#include "sort/base/env.h"
#include "sort/spec/order.h"
#include "sort/rows/rows.h"

#define ROWSET_MEMORY_MIN (256 * 1024) /* some of the longest names */

struct rowset;

/* `order` is borrowed; sorts on so many threads.  E_NOMEM where the block is not to be had. */
int rowset_new(const struct sort_env *env, const struct sort_order *order, uint64_t memory,
               unsigned threads, struct rowset **out, struct error *err);
void rowset_free(struct rowset *s);
DEFINE_CLEANUP(struct rowset, rowset_free);
int rowset_add(struct rowset *s, const struct sort_row *row, struct error *err);
uint64_t rowset_count(const struct rowset *s);
uint64_t rowset_bytes(const struct rowset *s);   /* sum of the rows' sizes */
uint64_t rowset_spilled(const struct rowset *s); /* bytes written to work files */
/* Ends the adding: all rows in order, until rowset_close().  May be done again. */
int rowset_open(struct rowset *s, struct row_source *out, struct error *err);
void rowset_close(struct rowset *s);
/* Shard i is number map[i] from now on; the numbers' order is what it was.  Then rows may be added
 * once more. Not while it is open. */
int rowset_renumber(struct rowset *s, const uint32_t *map, struct error *err);
