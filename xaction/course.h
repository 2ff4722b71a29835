/* What becomes of a job on a target: what an order makes of it, what follows the end of a step, and
 * what the documents say of it.  Pure; states.h has the picture, xaction.c the threads. */
#pragma once

#include "cluster/documents/state.h"
#include "xaction/states.h"

struct xaction_life {
    enum xaction_state state;
    bool opened; /* the kind has a state of its own for it */
    bool busy;   /* a thread is in a step */
    bool stop_wanted;
    uint64_t attempt;  /* the newest that was ordered */
    bool again_wanted; /* the step at hand still belongs to an earlier one */
};

enum xaction_effect {
    XACTION_KEEPS,   /* nothing is to be done */
    XACTION_REFUSES, /* the state does not allow it */
    XACTION_MOVES,   /* to `to`, where nothing is to be done */
    XACTION_BEGINS,  /* to `to`, with a step to do */
    XACTION_STOPS,   /* as soon as the step at hand has ended */
    XACTION_REPEATS, /* to `preparing`, for the order's attempt, as soon as that step has ended */
};

struct xaction_turn {
    enum xaction_effect effect;
    enum xaction_state to;
};

/* `attempt`: of the order's job. */
struct xaction_turn xaction_ordered(const struct xaction_life *l, enum xaction_order order,
                                    uint64_t attempt);
/* The step of a busy job has ended: the state that it is in then; the same where it is to be done
 * again. */
enum xaction_state xaction_step_ended(const struct xaction_life *l, bool success);
bool xaction_may_move(enum xaction_state from, enum xaction_state to);

/* May a target with these documents begin the job?  It must be in them, for what is on the disks
 * and not in the documents is taken for the rest of a job that has ended: E_NOT_READY.  One that is
 * beyond its beginning there does not begin anew, unless its kind resumes, for the order was on its
 * way for too long: E_JOB_STATE; nor does an attempt that is not the present one. */
int xaction_may_begin(const struct jobs *jobs, const struct job *job, struct error *err);
/* Has the job ended for this node, as the documents have it (NULL: they do not know it any more)?
 * Then it is to be committed, or stopped; one that goes on without this node is stopped here at
 * once. */
bool xaction_settles(const struct job *known, const char *node_id, enum xaction_order *order);
