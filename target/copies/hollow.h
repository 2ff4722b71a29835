/* An object without its bytes: what an owner keeps that has no room for them, or refuses them for
 * good, where other owners have them.
 *
 *   the file   empty, with the object's version, time and length; marked as such (quarantine.h)
 *   it counts  as a copy that has lost its bytes: less than a whole one of the same version, and
 *              more than any earlier one
 *
 * So it has not the bytes, and it knows: nothing older is answered from here, whoever acts later,
 * and nothing older is brought back for it (docs/design/replication.md, "No room").  What it takes
 * is as little as a tombstone takes, for which there is a reserve; what was there of an earlier
 * version gives its room back.
 *
 * Waits. */
#pragma once

#include "cluster/documents/state.h"
#include "common/error.h"

/* With Dfc-Copy: hollow, which an earlier build refuses; as a move it would keep an empty object.
 * No body comes; this is how many bytes the object has. */
#define HOLLOW_HEADER "Dfc-Hollow"

struct object_held;
struct target;

/* Refuses an owner with this code what it is sent, whenever it is sent again, until something is
 * done about it: more room, say? */
bool hollow_is_for_good(int code);
/* Can it be known without its bytes?  A tombstone, and what has none, needs no room anyway. */
bool hollow_is_possible(const struct object_held *held);
/* Here.  0 also where as much is here. */
int hollow_keep(struct target *t, const struct bucket *b, const char *name,
                const struct object_held *held, struct error *err);
/* There: the same. */
int hollow_send(struct target *t, const struct cluster_state *s, const struct bucket *b,
                const char *name, const struct object_held *held, const struct node *to,
                struct error *err);
