/* The ordered index of one mountpath: (bucket id, name) -> record, in LMDB.
 *
 * It is derived: the files are the truth, and reindex.h makes it again from them.  It must still
 * never be silently wrong.  So a marker is written when it is closed with everything in it, and
 * taken away when it is opened; where the marker is missing (the process was killed, the machine
 * lost power) index_open() begins with an empty index and says so, and its owner fills it and calls
 * index_set_complete().  An owner that could not record a change it has made to a file calls
 * index_set_stale(): from then on index_check() fails, and no marker will be written.
 *
 * LMDB's keys have at most 511 bytes, names 1024: index_tree.h says how that is bridged, keeping
 * bytewise order.  Writes do not wait for the disk (MDB_NOSYNC), which the marker makes safe; the
 * map is not written to through memory (no MDB_WRITEMAP), so that a full disk is an error and not
 * a signal, which costs about 10 us a change.
 *
 * Any thread may call anything; writers wait for one another, readers wait for nobody. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "target/index_record.h"

struct index;

/* Opens the index in directory `dir`, which is made where it is missing.  *fresh: NULL, or why
 * the index was begun anew (a constant text). */
int index_open(const char *dir, uint64_t map_size, bool begin_anew, struct index **out,
               const char **fresh, struct error *err);
/* Writes the marker where the index is complete and not stale. */
void index_close(struct index *x);
DEFINE_CLEANUP(struct index, index_close);

void index_set_complete(struct index *x);
/* `why` is kept for index_check(); the first one counts. */
void index_set_stale(struct index *x, const struct error *why);
/* 0, or E_IO where the index cannot be relied on, with the reason. */
int index_check(struct index *x, struct error *err);

/* E_NO_SPACE where the disk or the map (`index_map_size`) is full.  Fault point: index.write. */
int index_put(struct index *x, uint64_t bucket_id, const char *name,
              const struct index_record *rec, struct error *err);
int index_delete(struct index *x, uint64_t bucket_id, const char *name,
                 struct error *err); /* absent is fine */
/* Many puts in one transaction. */
struct index_item {
    uint64_t bucket_id;
    const char *name;
    struct index_record record;
};
int index_put_many(struct index *x, const struct index_item *items, size_t count,
                   struct error *err);
/* Takes at most `max` names of the bucket away; *done when none is left. */
int index_drop_some(struct index *x, uint64_t bucket_id, size_t max, bool *done,
                    struct error *err);

/* The least bucket id above `after` that has a name in the index: 1, or 0 where there is none. */
int index_next_bucket(struct index *x, uint64_t after, uint64_t *bucket_id, struct error *err);

/* How many objects (no tombstones) the bucket has here, and their bytes; bucket_id 0: all buckets. */
int index_sum(struct index *x, uint64_t bucket_id, uint64_t *objects, uint64_t *bytes,
              struct error *err);

/* --- reading: a cursor sees the index as it was when the cursor was opened -------------------- */
struct index_cursor;

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
