/* Who took locks of fcntl(2) through which open file.
 *
 * A process loses its locks of a file with each close, which the kernel tells (FLUSH).  Locks of an
 * open file (F_OFD_SETLK) end with its last close, and of that the kernel tells the open file, but
 * not the owner.  So an owner that no close has told is that of an open file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lock_owners;

struct lock_owners *lock_owners_new(void);
void lock_owners_free(struct lock_owners *o);
/* Any thread may call. */
void lock_owners_add(struct lock_owners *o, uint64_t file, uint64_t owner);
void lock_owners_remove(struct lock_owners *o, uint64_t file, uint64_t owner);
/* One owner of the file less; false: there is none. */
bool lock_owners_take(struct lock_owners *o, uint64_t file, uint64_t *owner);
