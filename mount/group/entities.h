/* The entities that a member was asked for last, so that requests for one share its blocks in
 * memory.  Bounded: the one that was asked for longest ago leaves.  Any thread. */
#pragma once

#include <stddef.h>

#include "common/cleanup.h"
#include "mount/data/entity.h"

struct group_entities;

struct group_entities *group_entities_new(size_t most);
void group_entities_free(struct group_entities *t); /* NULL is fine */
DEFINE_CLEANUP(struct group_entities, group_entities_free);

/* The entity that is like `e` (home, key, tag, checksum, size), or `e` itself from now on; with a
 * reference, the caller's.  The caller's reference of `e` is taken over. */
struct entity *group_entities_take(struct group_entities *t, struct entity *e);
