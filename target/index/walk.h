/* A walk through the names of one bucket, in parts.
 *
 *   struct index_walk w = {.bucket_id = id, .stop = &stop, .more = true};
 *   while (code == 0 && w.more)
 *       code = index_walk(x, &w, fn, ctx, err);
 *
 * A part ends at a bound, and its cursor closes.  Between two parts no old page of the index is
 * kept alive, and the caller may write.  fn() runs while the cursor is open: it must not change
 * the index.
 *
 * A walk belongs to one thread.  A batch keeps copies of the names that a walk takes. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "target/format/attr.h"
#include "target/index/index.h"

enum index_answer {
    INDEX_PASS, /* looked at */
    INDEX_TAKE, /* the same, and counted for names_max and bytes_max */
    INDEX_END,  /* ends the walk behind this name */
};

/* `name` and `record` are valid until it returns. */
typedef enum index_answer index_walk_fn(void *ctx, const char *name,
                                        const struct index_record *record);

struct index_walk {
    uint64_t bucket_id;
    size_t names_max;             /* taken in one part; 0: no bound */
    size_t bytes_max;             /* of the names taken in one part, with their NULs; 0: no bound */
    const atomic_bool *stop;      /* ends the walk once it is true; NULL: nothing does */
    bool more;                    /* the caller sets it at first; false: the walk is over */
    char last[ATTR_NAME_MAX + 1]; /* the last name looked at; "": begin with the first one */
    size_t steps, names, bytes;   /* of this part */
};

/* The next part: fn() for each name behind w->last, in bytewise order.  It ends at a bound, at
 * INDEX_STEPS_MAX names, by fn() or by *stop.  After an error the walk must not go on. */
int index_walk(struct index *x, struct index_walk *w, index_walk_fn *fn, void *ctx,
               struct error *err);

/* For walks over something else than one index (index_merge.h). */
void index_walk_begin(struct index_walk *w);
/* One name.  False: the part ends here. */
bool index_walk_look(struct index_walk *w, const char *name, const struct index_record *record,
                     index_walk_fn *fn, void *ctx);
/* has_next: a name is left behind w->last. */
void index_walk_end(struct index_walk *w, bool has_next);

/* --- names that are kept for later ------------------------------------------------------------ */
enum { INDEX_BATCH_NAMES = 500, INDEX_BATCH_BYTES = 256 << 10 };

typedef bool index_wanted_fn(const void *ctx, const char *name, const struct index_record *record);

struct index_batch {
    struct index_walk walk;
    index_wanted_fn *wanted;
    const void *ctx;
    struct arena *arena;
    size_t count;
    const char *names[INDEX_BATCH_NAMES]; /* until the next part */
};

/* wanted: which names are kept; NULL: all. */
struct index_batch *index_batch_new(uint64_t bucket_id, const atomic_bool *stop,
                                    index_wanted_fn *wanted, const void *ctx);
void index_batch_free(struct index_batch *b);
DEFINE_CLEANUP(struct index_batch, index_batch_free);
void index_batch_clear(struct index_batch *b);
/* The index_walk_fn of a batch, which is its ctx. */
enum index_answer index_batch_take(void *batch, const char *name,
                                   const struct index_record *record);
/* The names of the next part; b->walk.more: another part follows. */
int index_batch_fill(struct index_batch *b, struct index *x, struct error *err);
