/* The locks of an inode, those of all clients: the value of its LOCK key.  Pure.
 *
 * Locks of flock(2) and of fcntl(2) do not see each other.  A holder is a session and an owner in
 * it.  Two locks conflict if their holders differ, their ranges overlap, and one is exclusive. */
#pragma once

#include "common/arena.h"
#include "mount/volume/volume.h"

enum { LOCK_BYTES = 40, LOCKS_MAX = 1000 };

struct held_lock {
    struct volume_lock lock;
    uint64_t session;
};

struct lock_list {
    struct held_lock *locks; /* in the arena, with room for LOCKS_MAX + 2 */
    size_t count;
};

/* False: these bytes are no list. */
bool lock_list_decode(struct arena *arena, const uint8_t *data, size_t size, struct lock_list *out);
/* count * LOCK_BYTES bytes, in the arena. */
const uint8_t *lock_list_encode(struct arena *arena, const struct lock_list *list);

/* The first lock that `wanted` must wait for; NULL: none. */
const struct held_lock *lock_list_conflict(const struct lock_list *list,
                                           const struct held_lock *wanted);
/* The holder's locks become what `wanted` says in its range: parts before and behind stay.  False:
 * nothing changed.  The count may become LOCKS_MAX + 2. */
bool lock_list_set(struct lock_list *list, const struct held_lock *wanted);
void lock_list_drop_session(struct lock_list *list, uint64_t session);
bool lock_list_has_session(const struct lock_list *list, uint64_t session);
