/* Earlier owners: while objects are still being moved to the owners by the present map, a target
 * that owns a name does not know alone what it stands for (cluster/documents/layout.h).  Before it
 * says that there is no such object, and before it writes or deletes one, it asks every earlier
 * owner that may still have it.
 *
 *   N, the owner ── GET /v1/held/{bucket id}/{object}?dfcv=its state ──▶ O, an earlier owner
 *
 * O answers only with that state or a later one in force, and looks under the name's lock.  So its
 * answer is also a promise: what it had begun to write as the owner is in the answer, or is refused
 * at its end (object_env.owns); from then on nobody but N writes the name.  Of all answers the
 * greatest version counts, a tombstone like an object.
 *
 *   GET, HEAD   what O has and N has not yet is read from O, through N (read_through.h)
 *   PUT         the new version is greater than the earlier one; conditions are asked of it
 *   DELETE      the tombstone is made here, and wins over what O has
 *
 * An earlier owner that does not answer keeps the name from being read (503 that names it): what it
 * has may be the object.  A PUT without conditions passes over one that the committed map calls
 * unreachable.
 *
 * Any thread; nobody waits: the answer comes in a worker. */
#pragma once

#include <stdbool.h>

#include "cluster/documents/state.h"
#include "target/copies/held.h"
#include "target/node/miss.h"
#include "target/store/object.h"

struct object_call;
struct target;

/* Is there anybody to ask?  hit: this target has the object. */
bool earlier_is_asked(const struct target *t, const struct cluster_state *s, const struct bucket *b,
                      const char *name, bool hit);
/* The same for a call that has not asked, and whose path does not see to owners itself. */
bool earlier_must_be_asked(const struct object_call *call, bool hit);
/* E_NODE_UNREACHABLE where the map calls any of them so: for who need not try. */
int earlier_check_reachable(const struct target *t, const struct cluster_state *s,
                            const struct bucket *b, const char *name, struct error *err);

/* err is NULL with an answer. */
typedef void earlier_fn(void *arg, const struct earlier_answer *a, const struct error *err);

/* may_skip: whoever is unreachable by the map is not asked. */
void earlier_ask(struct target *t, const struct cluster_state *s, const struct bucket *b,
                 const char *name, bool may_skip, earlier_fn *fn, void *arg);
/* The same, waiting; *held alone, with `uploading` where any of them is.  Not in a loop's thread,
 * an HTTP thread or a worker. */
int earlier_ask_wait(struct target *t, const struct cluster_state *s, const struct bucket *b,
                     const char *name, struct object_held *held, struct error *err);
/* The same for a call. */
int earlier_ask_for(const struct object_call *call, struct object_held *held, struct error *err);
/* These nodes, all at once, waiting: held[i] is the i-th's.  E_NODE_UNREACHABLE where one has not
 * answered. */
int earlier_ask_nodes(struct target *t, const struct cluster_state *s,
                      const struct node *const *nodes, size_t count, uint64_t bucket_id,
                      const char *name, struct object_held *held, struct error *err);
/* One node, waiting. */
int earlier_ask_node(struct target *t, const struct cluster_state *s, const struct node *n,
                     uint64_t bucket_id, const char *name, struct object_held *held,
                     struct error *err);

/* Before the name is written, or what is in doubt is rolled forward: whoever owned it before
 * `copies` were lowered (cluster/placement/copies_reduce.h) knows of that, or is passed over, and
 * so answers no read of it any more.  Waits. */
int earlier_tell_former(struct target *t, const struct cluster_state *s, const struct bucket *b,
                        const char *name, struct error *err);

/* A GET or HEAD: replies, or says that it goes on here (call->asked is set, then). */
void earlier_serve(struct object_call *call, void (*here)(struct object_call *call));
