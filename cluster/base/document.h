/* The memory of one sub-document: its array and all its texts, in an arena that is released with
 * the last snapshot that holds it.  A change of one sub-document builds that one anew and shares
 * the others, so that committing a job's progress does not copy ten thousand buckets.
 *
 * Internal to cluster/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"

struct document;

struct document *document_new(void);
struct document *document_ref(struct document *d); /* NULL stays NULL */
void document_unref(struct document *d);
/* Once, for what the arena cannot release: called with `arg` before the memory goes. */
void document_on_free(struct document *d, void (*fn)(void *arg), void *arg);
struct arena *document_arena(struct document *d);

/* The place of `name` in an array sorted by a `char *` that each item has at name_offset: the first
 * item that is not less.  *found says whether it is that name. */
size_t document_find(const void *items, size_t count, size_t item_size, size_t name_offset,
                     const char *name, bool *found);
/* Sorts such an array; returns the first name that stands in it twice, or NULL. */
const char *document_sort(void *items, size_t count, size_t item_size, size_t name_offset);
