/* The ordered index of one mountpath: (bucket id, name) -> record, in LMDB.
 *
 * It is derived: the files are the truth, and reindex.h makes it again from them.  It must still
 * never be silently wrong:
 *
 *   marker    the file `complete`: index and objects are on the disk, and nothing has changed
 * since. The first change takes it away; index_checkpoint() and index_close() write it session
 * index/session.h: after kill -9 the index is what it was, but for the names whose change was under
 * way: index_each_intent() names them, and its owner looks at their files anew      without either
 * (power loss, another mount, a fault of our own) index_open() begins with an empty index and says
 * so; its owner fills it and calls index_set_complete()
 *
 * So whoever changes a file changes the index before, and says index_settled() when the file says
 * the same; forgetting that costs a rebuild after a crash, not a wrong list.  Who could not record
 * a change that a file has had calls index_set_stale(): from then on index_check() fails.  An index
 * whose file turns out to be damaged (a record whose check is wrong, names out of order, what LMDB
 * itself notices, what index_verify() counts) is stale, too, and no longer refuses changes, since
 * it is made anew anyway:
 *
 *   index_rebuild_begin()   a second, empty file; every change now goes into both
 *   index_fill() ...        what the files say, unless the name has changed since
 *   index_rebuild_end()     takes its place: readers go on with the one they began with
 *
 * LMDB's keys have at most 511 bytes, names 1024: index/tree.h says how that is bridged, keeping
 * bytewise order.  Writes do not wait for the disk (MDB_NOSYNC); the map is not written to through
 * memory (no MDB_WRITEMAP), so that a full disk is an error and not a signal.
 *
 * Any thread may call anything; writers wait for one another, readers wait for nobody.  Changes of
 * one name come one after another (its lock is the caller's). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "target/index/record.h"

struct index;

/* Does the marker stand in `dir`? */
bool index_is_marked(const char *dir);

/* Opens the index in directory `dir`, which is made where it is missing.  *fresh: NULL, or why
 * the index was begun anew (a constant text). */
int index_open(const char *dir, uint64_t map_size, bool begin_anew, struct index **out,
               const char **fresh, struct error *err);
/* Writes the marker where the index is complete and not stale. */
void index_close(struct index *x);
DEFINE_CLEANUP(struct index, index_close);

/* After index_open(), before anything else: fn() for each name whose change was under way when the
 * last process ended.  fn makes the index say what the file says, and settles it. */
int index_each_intent(struct index *x,
                      int (*fn)(void *ctx, uint64_t bucket_id, const char *name, struct error *err),
                      void *ctx, struct error *err);

void index_set_complete(struct index *x);
/* `why` is kept for index_check(); the first one counts. */
void index_set_stale(struct index *x, const struct error *why);
/* 0; E_IO where the index cannot be relied on, with the reason; E_NOT_READY while it is filled. */
int index_check(struct index *x, struct error *err);

/* Which names have changed since somebody has looked at all?  index/session.h's watch; it ends,
 * too, where the index is made anew. */
void index_watch(struct index *x, uint64_t number);
uint64_t index_watched(struct index *x);
bool index_may_have_changed(struct index *x, uint64_t watch, uint64_t bucket_id, const char *name);
void index_assume_changed(struct index *x, uint64_t bucket_id, const char *name);

/* How many changes there were; *idle: none is under way. */
uint64_t index_changes(struct index *x, bool *idle);
/* Something else whenever what is pending (back.h) has been put, and whenever the index was opened:
 * who finds it twice the same knows that nothing pending has come in between. */
uint64_t index_pending_mark(const struct index *x);
/* Everything of the file system to the disk, then the marker, unless a change comes between; 0
 * also where there is nothing to do.  Fault point: disk.sync. */
int index_checkpoint(struct index *x, struct error *err);

/* Reads all of it, and compares: each record with its check, the entries' order, their number with
 * the one that the file says.  What a list cannot notice (names that are not there any more) is
 * found here.  E_CORRUPT: it is stale now; E_CANCELLED: *stop, or a change has come since
 * index_changes() said `changes`. */
int index_verify(struct index *x, uint64_t changes, const atomic_bool *stop, struct error *err);

/* E_NO_SPACE where the disk or the map (`index_map_size`) is full.  Fault point: index.write. */
int index_put(struct index *x, uint64_t bucket_id, const char *name, const struct index_record *rec,
              struct error *err);
int index_delete(struct index *x, uint64_t bucket_id, const char *name,
                 struct error *err); /* absent is fine */
/* The file says what the index says. */
void index_settled(struct index *x, uint64_t bucket_id, const char *name);
/* Takes at most `max` names of the bucket away; *done when none is left.  For buckets whose ids
 * are dead: it has no intents. */
int index_drop_some(struct index *x, uint64_t bucket_id, size_t max, bool *done, struct error *err);

/* --- filling it anew -------------------------------------------------------------------------- */
struct index_item {
    uint64_t bucket_id;
    const char *name;
    struct index_record record;
};
/* What the files say, into the index, or into the second file while there is one.  One
 * transaction. */
int index_fill(struct index *x, const struct index_item *items, size_t count, struct error *err);

int index_rebuild_begin(struct index *x, struct error *err); /* E_EXISTS: one is under way */
/* Puts it in the index's place, or drops it: with !whole, or where it missed a change (E_IO). */
int index_rebuild_end(struct index *x, bool whole, struct error *err);

/* The least bucket id above `after` that has a name in the index: 1, or 0 where there is none. */
int index_next_bucket(struct index *x, uint64_t after, uint64_t *bucket_id, struct error *err);

/* How many objects (no tombstones) the bucket has here, and their bytes; bucket_id 0: all buckets.
 */
int index_sum(struct index *x, uint64_t bucket_id, uint64_t *objects, uint64_t *bytes,
              struct error *err);

/* --- reading: a cursor sees the index as it was when the cursor was opened -------------------- */
/* While it is open no page of that time is used again, and the file grows with every change: who
 * goes through many names opens another one after so many steps. */
enum { INDEX_STEPS_MAX = 20000 };

struct index_cursor;

/* E_OVERLOAD with more than 1024 at a time. */
int index_cursor_open(struct index *x, struct index_cursor **out, struct error *err);
void index_cursor_close(struct index_cursor *c);
DEFINE_CLEANUP(struct index_cursor, index_cursor_close);

/* To the first name of the bucket that is not less than `name`, or, with `after`, greater.
 * Both return 1 when they stand on a name, 0 behind the last one, or an error. */
int index_cursor_seek(struct index_cursor *c, uint64_t bucket_id, const char *name, bool after,
                      struct error *err);
int index_cursor_next(struct index_cursor *c, struct error *err);
/* Where it stands; valid until it moves. */
const char *index_cursor_name(const struct index_cursor *c);
const struct index_record *index_cursor_record(const struct index_cursor *c);
/* The entries that it has looked at, in all. */
uint64_t index_cursor_visited(const struct index_cursor *c);

/* The record of one name: 1, 0 where it has none, or an error.  Its job's text is put into `job`.
 */
int index_find(struct index *x, uint64_t bucket_id, const char *name, struct index_record *rec,
               char job[static ATTR_JOB_MAX + 1], struct error *err);
