/* Writes back: of a bucket with a backend and write_policy `back` a write is answered when it is
 * durable here, and uploaded later.
 *
 *   PUT, DELETE ─▶ object or tombstone, on the disk, marked pending ─▶ 200, 204
 *                                      │
 *   backlog ─▶ uploader: read it, check it, send it, or delete there ─▶ the mark goes
 *
 * What is pending is known from the files (ATTR_PENDING), and by them from the indexes, which are
 * looked through after a start and when buckets, owners or mountpaths have changed.  It is not
 * evicted nor forgotten, is not compared with the backend, takes the backend's place in reads and
 * lists, and moves to other mountpaths and targets with its mark.
 *
 * Order.  Of a name there is one state, the last, and one upload at a time: so what the backend has
 * seen of it only moves on, and a write that another one has replaced before its turn is never
 * sent. A write that comes during the upload of the one before stays pending, and goes next.
 *
 * Two targets.  A target uploads what it owns.  Whoever begins to upload while earlier owners are
 * remembered (earlier_owners.h) asks them first, each of them:
 *
 *   - it says whether it is uploading that name.  It answers by the asker's state or a later one,
 * by which it does not own the name; it marks an upload as begun before it looks whose the name is.
 *     So after a `no` it begins none.  After a `yes`, or silence, the asker waits.
 *   - it says what it has.  What is greater than what the asker has comes by the rebalance, and the
 *     asker's own never goes.
 *
 * A rebalance is not through, and so no owner forgotten, while an upload of another's name is under
 * way (rebalance.c).  What a target that was killed had sent whole may be taken in by its backend
 * after that; that a later upload is overtaken by it there takes a backend that holds it back for
 * longer than the restart, or the choice of another owner, takes.
 *
 * A rename leaves a deletion that waits until the new name is there (back_after.h).
 *
 * What is sent twice (a crash between the upload's end and the mark's) is the same, or is deleted
 * again: what somebody else wrote there in between is lost.
 *
 * Reads from the backend do not get between: a fetch never takes the place of what is pending
 * (object_put_spec.yields), and one that began before an upload's end is not kept
 * (fetch_overtake()).
 *
 * Threads: HTTP threads never wait here; uploads block in the uploaders. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "target/store/object.h"

struct back;
struct object_call;
struct target;

enum { BACK_STUCK_MS = 30000 };

int back_new(struct target *t, struct back **out, struct error *err);
void back_stop(struct back *k); /* begins no more; before cold_free() */
void back_free(struct back *k); /* NULL is fine */
/* Buckets or owners may have changed. */
void back_look(struct back *k);

/* Something pending has come to be here; written_ms: when it was written, by the wall. */
void back_note(struct back *k, uint64_t bucket_id, const char *name, int64_t written_ms);
/* Is something pending here?  With `deleted`: a deletion. */
bool back_is_pending(const struct object_call *call, bool deleted);

bool back_is_uploading(struct back *k, uint64_t bucket_id, const char *name);
/* Is an upload of a name under way that another target owns by now? */
bool back_uploads_others(struct back *k);

struct back_count {
    uint64_t waiting;   /* those under way, too, and one more where not all need be known */
    uint64_t stuck;     /* of them: have failed for BACK_STUCK_MS */
    uint64_t late;      /* of them: were written more than back_late ago */
    uint64_t oldest_ms; /* ago the first of them was written; 0: none waits */
};
struct back_count back_count(struct back *k);
