/* A majority of a name's owners, for buckets whose `write_quorum` is that.
 *
 *   write   is acknowledged when a majority of all its owners have it, those that the map passes
 *           over counted as missing; who has not is brought up to it later
 *   read    compares what a majority has: any two majorities share an owner, who has the last write
 *
 * So nothing hangs on who acts, nor on leases: an owner that was not waited for acts when another
 * one dies, and hears of what it lacks before it answers.  Two things make the sum of two
 * majorities more than all:
 *
 *   who has lost what it had (it came without its disks: LAG_MISSED since 0) takes writes, but what
 *   it says does not count until a repair is through; who has only been away has what it had
 *
 *   while objects move, a majority of each earlier set of owners is heard, too, by the map of who
 *   asks: they take no write of an earlier map after that (cluster/documents/layout.h)
 *
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cluster/placement/owners.h"

bool quorum_is_wanted(const struct bucket *b);
/* How many owners must have a write. */
size_t quorum_of(const struct owners *o);
/* Do these, who have said what they have of the name, know among them of all that was acknowledged?
 */
bool quorum_knows(const struct cluster_state *s, const struct bucket *b, const char *name,
                  const struct node *const *heard, size_t count);
/* Do all active targets together have each object, so that what they have is the bucket's list? */
bool quorum_lists(const struct cluster_state *s, const struct bucket *b);
