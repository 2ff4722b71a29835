/* The memory of one sub-document: its array and all its texts, in an arena that is released with
 * the last snapshot that holds it.  A change of one sub-document builds that one anew and shares
 * the others, so that committing a job's progress does not copy ten thousand buckets.
 *
 * Internal to cluster/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"

struct document;

struct document *document_new(void);
struct document *document_ref(struct document *d); /* NULL stays NULL */
void document_unref(struct document *d);
/* Once, for what the arena cannot release: called with `arg` before the memory goes. */
void document_on_free(struct document *d, void (*fn)(void *arg), void *arg);
/* compute(doc), of the document that has this memory, once for all that share it.  NULL: none. */
uint64_t document_sum(struct document *d, uint64_t (*compute)(const void *doc), const void *doc);
struct arena *document_arena(struct document *d);

/* The place of `name` in an array sorted by a `char *` that each item has at name_offset: the first
 * item that is not less.  *found says whether it is that name. */
size_t document_find(const void *items, size_t count, size_t item_size, size_t name_offset,
                     const char *name, bool *found);
/* What leads from one such array to the next.  Both lists are sorted, and have no name twice. */
struct document_change {
    const void *put; /* items that replace those of their names, or join them */
    size_t put_count;
    const char *const *drop; /* names that leave, but for a `put` of the same name */
    size_t drop_count;
};
/* append(to, item) for each item of the next array, in order: O(count of both).  Returns a name of
 * `drop` that the array does not have, or NULL. */
const char *document_merge(const void *items, size_t count, size_t item_size, size_t name_offset,
                           const struct document_change *c,
                           void (*append)(void *to, const void *item), void *to);
/* Sorts such an array; returns the first name that stands in it twice, or NULL. */
const char *document_sort(void *items, size_t count, size_t item_size, size_t name_offset);
