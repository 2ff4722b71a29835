/* Objects of buckets with several copies: what the acting owner of a name does
 * (cluster/placement/owners.h says who that is; docs/design/replication.md has the whole, and why
 * it suffices).
 *
 *   write    stage    the other active owners have all bytes, checked; nothing is seen (fanout.h)
 *            turn     the writes of one name go one after the other (turns.h)
 *            compare  where this target may lack something: see below
 *            decide   the conditions, and a version greater than any before
 *            others   commit it, under this target's map or not at all (copies/commit.h)
 *            own      last: only now anybody sees it
 *   read     what is here, while the lease holds and nothing of the name is dirty; else
 *            after a comparison, in the name's turn
 *   compare  whoever may have something is asked; the greatest is brought here, and to whoever
 *            lacks it, before it is answered or written over (copies/compare.h)
 *
 * A write that fails before anybody was told to commit has failed for certain.  Later it is in
 * doubt (503 in_doubt), unless all others have refused: whoever has it has marked it as dirty,
 * and asks the acting owner until it is everywhere, or overwritten (dirty_worker.h).
 *
 * The lease: the primary's word, with each keepalive, that it calls this target unreachable not
 * before some time is over.  Counted from when the keepalive was sent, by a clock that goes on in
 * suspend, and taken by who knows the state under which it was given.
 *
 * Any thread; nobody waits but where it says so: what waits does so in a pool of its own. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "cluster/placement/owners.h"
#include "common/cleanup.h"
#include "target/store/job_stop.h"
#include "target/store/object.h"

struct fanout;
struct handed;
struct read_repair;
struct object_call;
struct pool;
struct dirty_worker;
struct dirty_turns;
struct staged;
struct target;
struct name_queue;
struct dirty;

struct copies {
    struct target *target;
    struct pool *pool;
    struct name_queue *turns;
    struct dirty_turns *dirty_turns;
    struct dirty *dirty;
    struct staged *staged;
    struct dirty_worker *dirty_worker;
    struct read_repair *read_repair;
    struct job_stop stop;
    atomic_ullong lease_until_ms;
    atomic_bool forgone; /* the lease, for good: this target stops */
};

int copies_new(struct target *t, struct copies **out, struct error *err);
void copies_stop(struct copies *c); /* whoever waits here goes on, with an error; NULL is fine */
void copies_free(struct copies *c); /* NULL is fine */

void copies_lease(struct copies *c, uint64_t sent_ms, uint64_t lease_ms);
/* None from here on: what is read is compared first. */
void copies_forgo_lease(struct copies *c);

/* --- the acting owner's ----------------------------------------------------------------------- */

/* The other owners are sent an upload from now on. */
int copies_begin_put(struct object_call *call, const struct object_put_spec *put,
                     struct fanout **fanout, struct error *err);
/* All bytes have come.  Takes put and fanout over.  Where the write has failed for certain, since
 * owners have changed, displaced() comes in place of done(), and takes the bytes. */
typedef void copies_displaced_fn(void *arg, struct handed *h, const struct error *why);
void copies_put(struct target *t, uint64_t bucket_id, const char *name, struct object_put *put,
                struct fanout *fanout, const struct object_condition *condition,
                object_done_fn *done, copies_displaced_fn *displaced, void *arg);
void copies_delete(struct target *t, uint64_t bucket_id, const char *name,
                   const struct object_condition *condition, object_done_fn *done, void *arg);

/* Is what is here of the name all that there is, by the state in force (of `b`, too, which may be
 * of an earlier one) and the lease?  Asked when it has been looked.  Where it is not a comparison
 * helps (copies_settle()), or this target's repair, or the one that acts in its place. */
bool copies_suffice_here(const struct target *t, const struct bucket *b, const char *name);
/* Is it, whoever acts?  This target is a good owner, and no write of the name is under way here. */
bool copies_are_good_here(const struct target *t, const struct bucket *b, const char *name);
/* Asked when a GET or HEAD has looked: is what it has seen all that there is? */
bool copies_may_answer(const struct object_call *call);
/* A GET or HEAD has looked: `o` is open, or `code` says why not.  Must other owners be asked before
 * this is answered? */
bool copies_must_ask(struct object_call *call, const struct object *o, int code);
/* Asks them: the call ends, or goes on with here(call). */
void copies_ask(struct object_call *call, int code, void (*here)(struct object_call *call));
/* Can another owner's copy be had in place of a damaged one? */
bool copies_may_mend(const struct object_call *call);
/* Sends a client to the owner that acts by the state in force, or says why there is none.  False:
 * this target acts by now, and goes on as such. */
bool copies_send_on(struct object_call *call);
/* A comparison alone, in the name's turn, for who looks anew when this returns, and asks
 * copies_may_answer() then.  Waits. */
int copies_compare_wait(struct object_call *call, struct error *err);
/* What the sweeper keeps (sweep.h): old tombstones of which this run, not let in yet, does not know
 * whether all owners have them; and one that is marked, which an owner may lack.  `arg` is the
 * target. */
bool copies_keep_all(void *arg, const struct cluster_state *s);
bool copies_keep_name(void *arg, uint64_t bucket_id, const char *name);
/* Sees to it in the background that all owners have the greatest version (dirty_turns.h). */
int copies_settle(struct target *t, uint64_t bucket_id, const char *name, struct error *err);
