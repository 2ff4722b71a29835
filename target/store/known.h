/* What an owner keeps of an object whose bytes it does not store: a hollow object, an empty object,
 * or a manifest that moves here.  Its file takes about as much as a tombstone.
 *
 *   space_reserve   [ first half: known objects and tombstones | second half: tombstones alone ]
 *
 * A known object may replace any file of its name: that takes no more room than there was. */
#pragma once

#include "target/store/object_parts.h"

/* E_NO_SPACE where a new file would take what is kept for tombstones.  Takes the name's lock.
 * Fault point: disk.kept. */
int known_admit(const struct object_place *p, struct error *err);

/* A file whose attribute cannot be read goes to quarantine before a hollow object replaces it.
 * Takes the name's lock. */
int known_set_damaged_aside(const struct object_place *p, struct error *err);

/* Marks the empty file `fd`, which replaces `cur`: as one whose bytes found no room; or as what
 * `cur` is marked, where that is a stub without an attribute, whose bytes lie in quarantine.
 * Under the lock. */
int known_mark(const struct object_place *p, const struct stored *cur, int fd, struct error *err);
