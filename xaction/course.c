#include "xaction/course.h"

#include "xaction/kinds.h"

#define BIT(state) (1u << (state))

/* The picture of states.h. */
bool xaction_may_move(enum xaction_state from, enum xaction_state to)
{
    static const unsigned allowed[] = {
        [XACTION_NONE] = BIT(XACTION_PREPARING) | BIT(XACTION_COMMITTING) | BIT(XACTION_STOPPING) |
                         BIT(XACTION_FAILED) | BIT(XACTION_STOPPED),
        [XACTION_PREPARING] = BIT(XACTION_READY) | BIT(XACTION_FAILED) | BIT(XACTION_STOPPING) |
                              BIT(XACTION_PREPARING),
        [XACTION_READY] = BIT(XACTION_RUNNING) | BIT(XACTION_COMMITTING) | BIT(XACTION_STOPPING) |
                          BIT(XACTION_PREPARING),
        [XACTION_RUNNING] = BIT(XACTION_PREPARED) | BIT(XACTION_FAILED) | BIT(XACTION_STOPPING) |
                            BIT(XACTION_PREPARING),
        [XACTION_PREPARED] =
            BIT(XACTION_COMMITTING) | BIT(XACTION_STOPPING) | BIT(XACTION_PREPARING),
        [XACTION_COMMITTING] = BIT(XACTION_COMMITTED),
        [XACTION_COMMITTED] = 0,
        [XACTION_FAILED] = BIT(XACTION_STOPPING) | BIT(XACTION_STOPPED) | BIT(XACTION_PREPARING),
        [XACTION_STOPPING] = BIT(XACTION_STOPPED),
        [XACTION_STOPPED] = 0,
    };
    return (allowed[from] & BIT(to)) != 0;
}

static bool is_in(const struct xaction_life *l, unsigned states)
{
    return (BIT(l->state) & states) != 0;
}

static const struct xaction_turn keeps = {.effect = XACTION_KEEPS};
static const struct xaction_turn refuses = {.effect = XACTION_REFUSES};

static struct xaction_turn begins(enum xaction_state to)
{
    return (struct xaction_turn){.effect = XACTION_BEGINS, .to = to};
}

static struct xaction_turn moves(enum xaction_state to)
{
    return (struct xaction_turn){.effect = XACTION_MOVES, .to = to};
}

/* A job that is known here and was not decided yet goes through another attempt. */
static struct xaction_turn repeat(const struct xaction_life *l)
{
    if (l->stop_wanted || is_in(l, BIT(XACTION_COMMITTING) | BIT(XACTION_COMMITTED)))
        return refuses;
    if (!l->opened)
        return keeps;
    return l->busy ? (struct xaction_turn){.effect = XACTION_REPEATS} : begins(XACTION_PREPARING);
}

/* A job that cannot be opened is one that has failed: there is nothing to undo. */
static struct xaction_turn prepare(const struct xaction_life *l, uint64_t attempt)
{
    if (is_in(l, BIT(XACTION_STOPPING) | BIT(XACTION_STOPPED)))
        return refuses;
    if (l->state != XACTION_NONE)
        return attempt > l->attempt ? repeat(l) : keeps;
    return l->opened ? begins(XACTION_PREPARING) : moves(XACTION_FAILED);
}

static struct xaction_turn run(const struct xaction_life *l, uint64_t attempt)
{
    if (attempt != l->attempt)
        return refuses;
    if (is_in(l, BIT(XACTION_RUNNING) | BIT(XACTION_PREPARED) | BIT(XACTION_FAILED)))
        return keeps;
    return l->state == XACTION_READY && !l->stop_wanted ? begins(XACTION_RUNNING) : refuses;
}

static struct xaction_turn commit(const struct xaction_life *l, uint64_t attempt)
{
    (void)attempt;
    if (is_in(l, BIT(XACTION_COMMITTING) | BIT(XACTION_COMMITTED)))
        return keeps;
    bool can = is_in(l, BIT(XACTION_PREPARED) | BIT(XACTION_READY) | BIT(XACTION_NONE));
    return can && l->opened && !l->stop_wanted ? begins(XACTION_COMMITTING) : refuses;
}

/* What was not opened never began here. */
static struct xaction_turn stop(const struct xaction_life *l, uint64_t attempt)
{
    (void)attempt;
    if (is_in(l, BIT(XACTION_STOPPING) | BIT(XACTION_STOPPED)))
        return keeps;
    if (is_in(l, BIT(XACTION_COMMITTING) | BIT(XACTION_COMMITTED)))
        return refuses;
    if (!l->opened)
        return moves(XACTION_STOPPED);
    return l->busy ? (struct xaction_turn){.effect = XACTION_STOPS} : begins(XACTION_STOPPING);
}

struct xaction_turn xaction_ordered(const struct xaction_life *l, enum xaction_order order,
                                    uint64_t attempt)
{
    static struct xaction_turn (*const turns[])(const struct xaction_life *l, uint64_t attempt) = {
        [XACTION_PREPARE] = prepare,
        [XACTION_RUN] = run,
        [XACTION_COMMIT] = commit,
        [XACTION_STOP] = stop,
    };
    return turns[order](l, attempt);
}

enum xaction_state xaction_step_ended(const struct xaction_life *l, bool success)
{
    bool undecided = is_in(l, BIT(XACTION_PREPARING) | BIT(XACTION_RUNNING));
    if (undecided && l->again_wanted && !l->stop_wanted)
        return XACTION_PREPARING;
    switch (l->state) {
    case XACTION_PREPARING:
        return l->stop_wanted ? XACTION_STOPPING : success ? XACTION_READY : XACTION_FAILED;
    case XACTION_RUNNING:
        return l->stop_wanted ? XACTION_STOPPING : success ? XACTION_PREPARED : XACTION_FAILED;
    case XACTION_COMMITTING:
        return success ? XACTION_COMMITTED : XACTION_COMMITTING;
    case XACTION_STOPPING:
        return success ? XACTION_STOPPED : XACTION_STOPPING;
    default:
        return l->state;
    }
}

/* --- what the documents say ------------------------------------------------------------------ */

int xaction_may_begin(const struct jobs *jobs, const struct job *job, struct error *err)
{
    const struct job *known = jobs_find(jobs, job->id);
    if (known == NULL)
        return error_set(err, E_NOT_READY, "job '%s' is not in the state that this target has",
                         job->id);
    const struct xaction_kind *kind = xaction_kind_find(job->kind);
    bool resumes = kind != NULL && kind->resumes && known->state == JOB_RUNNING;
    if (known->state != JOB_QUEUED && !resumes)
        return error_set(err, E_JOB_STATE, "job '%s' is %s", job->id, job_state_name(known->state));
    if (known->attempt != job->attempt)
        return error_set(err, E_JOB_STATE, "job '%s' is at attempt %llu", job->id,
                         (unsigned long long)known->attempt);
    return 0;
}

bool xaction_settles(const struct job *known, const char *node_id, enum xaction_order *order)
{
    bool left_out = known != NULL && job_leaves_out(known, node_id);
    if (known != NULL && !left_out && !job_ended(known->state))
        return false;
    bool stands = known != NULL && !left_out && known->state == JOB_FINISHED;
    *order = stands ? XACTION_COMMIT : XACTION_STOP;
    return true;
}
