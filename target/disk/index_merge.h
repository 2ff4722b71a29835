/* The names of a bucket in the indexes of several mountpaths as one row, in bytewise order: for
 * lists (list.h), and for who compares all that is here (antientropy.h).
 *
 * Over all mountpaths it misses no name that a resilver moves from one to another meanwhile.  One
 * thread; whoever goes far closes it and opens it again (INDEX_STEPS_MAX). */
#pragma once

#include "target/index/walk.h"
#include "target/disk/mountpaths.h"

struct index_merge_source {
    struct index_cursor *cursor;
    bool on_name;
};

struct index_merge {
    const struct mountpath_set *set; /* or NULL */
    uint64_t bucket_id;
    size_t count;
    struct index_merge_source sources[MOUNTPATHS_MAX];
};

/* A zeroed one; also after an error index_merge_close() follows.  one: of this mountpath alone;
 * NULL: of all.  E_NOT_READY, E_IO where an index cannot be relied on; E_MOUNTPATH_DISABLED. */
int index_merge_open(struct index_merge *m, struct mountpaths *all, const struct mountpath *one,
                     uint64_t bucket_id, struct error *err);
void index_merge_close(struct index_merge *m);

/* To the first name that is not less, or, with `after`, greater. */
int index_merge_seek(struct index_merge *m, const char *name, bool after, struct error *err);
/* Where the least name stands, of copies of one name that of the greatest version; NULL at the
 * end. */
const struct index_cursor *index_merge_least(const struct index_merge *m);
/* Behind `name` wherever it stands. */
int index_merge_skip(struct index_merge *m, const char *name, struct error *err);
void index_merge_end(struct index_merge *m); /* behind all */
/* The entries that were looked at, in all. */
uint64_t index_merge_visited(const struct index_merge *m);

/* index_walk() over the merged indexes, which it opens and closes: index/walk.h. */
int index_merge_walk(struct mountpaths *all, const struct mountpath *one, struct index_walk *w,
                     index_walk_fn *fn, void *ctx, struct error *err);
int index_merge_fill(struct mountpaths *all, const struct mountpath *one, struct index_batch *b,
                     struct error *err);
