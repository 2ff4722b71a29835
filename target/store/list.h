/* One page of a bucket, of what this target holds: the mountpaths' indexes merged, in bytewise
 * order of names.  Tombstones and what jobs still hide are passed over; but tombstones are shown
 * where they are asked for, since another target may still have the object
 * (proxy/list/merge.h).
 *
 * With a delimiter, names that have it behind the prefix are rolled up into one entry of
 * `prefixes` each, up to and including the delimiter; the scan jumps over what a prefix stands for.
 * Everything on a page, common prefixes too, is greater than start_after: a listing that goes on
 * behind "a/" or "a/1" does not show "a/" again.
 *
 * The work of a page is bounded: after LIST_PASSED_MAX names that are not shown it ends where it
 * is, short or even empty, and says where the next one goes on.  Where that lies within a common
 * prefix which has not been shown yet, `next` alone cannot say so: then `from` does, too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "target/store/object.h"

enum { LIST_LIMIT_MAX = 10000, LIST_PASSED_MAX = INDEX_STEPS_MAX };

struct list_request {
    uint64_t bucket_id;
    const char *prefix;      /* "" for all */
    const char *delimiter;   /* "" for none */
    const char *start_after; /* "" from the start */
    const char *from;        /* NULL, or `from` of the page before */
    size_t limit;            /* entries and prefixes together, 1..LIST_LIMIT_MAX */
    bool tombstones;         /* are entries, too; but not behind the delimiter … */
    bool pending;        /* … and so are those that the backend does not know of yet (back.h) */
    bool skips_internal; /* over internal names (common/internal_name.h), by one seek */
    bool (*shows)(void *ctx,
                  const char *name); /* NULL: all; names for which it says no are hidden */
    void *ctx;
};

struct list_entry {
    const char *name;
    struct index_record record;
};

struct list_page {
    struct arena *arena; /* of all texts */
    struct list_entry *entries;
    size_t entry_count;
    const char **prefixes;
    size_t prefix_count;
    const char *next; /* start_after of the next page */
    const char *from; /* its from; where both are "" this is the last page */
    uint64_t visited; /* entries of the indexes that were looked at */
};

/* E_NOT_READY or E_IO where an index cannot be relied on: never a short page. */
int list_page(struct object_store *s, const struct list_request *req, struct list_page *out,
              struct error *err);
void list_page_done(struct list_page *page);
