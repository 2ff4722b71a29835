/* Moving objects between the mountpaths of a target, to where HRW wants them.
 *
 *   copy to tmp/ there ─▶ fsync ─▶ │ index there ─▶ rename ─▶ fsync dir ─▶ index here ─▶ unlink │
 *   (checksum checked)             └───────────── under the name's lock ────────────────────────┘
 *
 * Where both are on one file system the rename takes the file itself.  The version stays.  So a
 * name is on one of the two at every instant, durably, and in one of the indexes; after a crash it
 * may be on both, in the same version, until the next move. */
#pragma once

#include "target/store/object.h"

enum object_move_result {
    MOVE_NOTHING, /* it belongs here, or is not here any more */
    MOVE_DONE,
    MOVE_LATER,   /* a job holds it, or where it belongs is disabled */
    MOVE_DAMAGED, /* left where it is: its attribute cannot be read */
};

/* `from` is open in the set in force.  *bytes: how much was moved. */
int object_move(struct object_store *s, uint64_t bucket_id, const char *name,
                struct mountpath *from, enum object_move_result *result, uint64_t *bytes,
                struct error *err);

/* After a write: older copies of the name on other mountpaths go.  Nothing where the set is
 * settled. */
struct object_place;
void object_remove_others(const struct object_place *p);
