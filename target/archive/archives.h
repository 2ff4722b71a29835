/* Members of archives on this target: indexes of them (shard_index.h), and the making of these.
 *
 *   archives_find() ── ready ──▶ the index
 *                   ── not yet ▶ a thread reads the object's headers: one of its disk's readers,
 *                                or for an object in slices one that reads slices
 *
 * A quarter of each disk's readers makes indexes at most: the rest stays for clients.
 * Any thread. */
#pragma once

#include "target/archive/shard_index.h"
#include "target/store/object.h"

struct archives;
struct reader;
struct target;

struct archives *archives_new(struct target *t);
/* What is being made ends with E_NOT_READY, before the servers wait for their requests.  NULL is
 * fine. */
void archives_stop(struct archives *a);
void archives_free(struct archives *a); /* after the servers and readers of slices; NULL is fine */

/* The index of the open object: version, size and bytes all come from it.  True: *out is a
 * reference, and the descriptor stays the caller's.  False: the descriptor is closed, or will be,
 * and fn(arg) comes once, in this thread or another one. */
bool archives_find(struct archives *a, uint64_t bucket_id, const struct object *o,
                   struct reader *reader, shard_fn *fn, void *arg, struct shard **out);
