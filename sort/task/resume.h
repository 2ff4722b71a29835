/* What a further attempt need not build again: output shards that this task, or an earlier life of
 * this target, finished in an earlier one, of the same records in the same order out of the same
 * inputs.
 *
 * A shard is known by the digest that comes with its order (sort/task/planner.c): of its name, its
 * records' places in the input, and what the inputs are, whichever targets have them.  Hidden
 * outputs that nobody ordered, or that are ordered otherwise now, or of which an earlier life has
 * not remembered what they are, go before anything is built: the job's commit shows whatever
 * carries its mark. */
#pragma once

#include "common/cleanup.h"
#include "common/error.h"
#include "sort/task/context.h"
#include "sort/rows/orders.h"

struct resume; /* of one task, over all its attempts */

struct resume *resume_new(void);
void resume_free(struct resume *r);
DEFINE_CLEANUP(struct resume, resume_free);

/* A new attempt builds what is in the book: says what stands, and removes the rest. */
int resume_begin(struct resume *r, struct sort_context *c, const struct book *book,
                 struct error *err);
/* For shard i of the book.  Any thread, from here on. */
bool resume_stands(const struct resume *r, size_t i);
bool resume_is_again(struct resume *r, size_t i); /* one of its name was removed */
int resume_built(struct resume *r, const struct sort_context *c, size_t i, const char *name,
                 struct error *err);
