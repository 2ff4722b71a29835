#include "xaction/controller.h"

#include <string.h>

#include "xaction/kinds.h"

/* Has every peer that counts reached one of the states in the mask? */
#define STATE_BIT(s) (1u << (s))

static bool peer_is(const struct controller_peer *p, unsigned mask)
{
    return p->heard && (STATE_BIT(p->state) & mask) != 0;
}

static bool all_peers(const struct controller_peer *peers, size_t n, unsigned mask)
{
    for (size_t i = 0; i < n; i++) {
        if (!peer_is(&peers[i], mask))
            return false;
    }
    return n > 0;
}

static void order_all(enum controller_order *orders, const struct controller_peer *peers, size_t n,
                      enum controller_order order, unsigned done_mask)
{
    for (size_t i = 0; i < n; i++)
        orders[i] = peer_is(&peers[i], done_mask) ? CONTROLLER_NOTHING : order;
}

static void verdict_fail(struct controller_verdict *v, int code, const char *peer,
                         const char *message)
{
    v->next = JOB_STOPPING;
    v->stop_as = JOB_FAILED;
    error_set(&v->cause, code, "%s: %s", peer, message);
}

/* What a target says when a peer that has failed cuts its streams, or knows the job no more. */
static bool is_echo(int code)
{
    return code == E_NET || code == E_TIMEOUT || code == E_CANCELLED || code == E_ABORTED ||
           code == E_LENGTH || code == E_JOB_NOT_FOUND || code == E_NOT_READY;
}

static bool anybody_runs(const struct controller_peer *peers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!peers[i].heard || peers[i].state == XACTION_RUNNING)
            return true;
    }
    return false;
}

/* A participant that failed: for a reason of its own, or only as an echo. */
static const struct controller_peer *find_failed(const struct controller_peer *peers, size_t n,
                                                 bool echo)
{
    for (size_t i = 0; i < n; i++) {
        const struct controller_peer *p = &peers[i];
        if (p->heard && p->state == XACTION_FAILED && is_echo(p->error_code) == echo)
            return p;
    }
    return NULL;
}

/* may_be: what a participant may be without being lost; `waits`: one that is away comes back. */
static bool find_lost(const struct controller_peer *peers, size_t n, unsigned may_be, bool waits,
                      struct controller_verdict *v)
{
    for (size_t i = 0; i < n; i++) {
        const struct controller_peer *p = &peers[i];
        if (!p->reachable && !waits)
            verdict_fail(v, E_NODE_UNREACHABLE, p->id, "the target stopped answering");
        else if (p->heard && p->state != XACTION_FAILED && !peer_is(p, may_be))
            verdict_fail(v, E_ABORTED, p->id, "the target lost its part of the job (restarted?)");
        else
            continue;
        return true;
    }
    return false;
}

/* Of several that only tell of each other, the one that does not tell anything. */
static void verdict_echo(struct controller_verdict *v, const struct controller_peer *peers,
                         size_t n, const struct controller_peer *echo)
{
    for (size_t i = 0; i < n; i++) {
        if (peers[i].silent) {
            verdict_fail(v, E_NODE_UNREACHABLE, peers[i].id, "the target does not answer");
            return;
        }
    }
    verdict_fail(v, echo->error_code, echo->id, echo->error_message);
}

static bool find_echo(const struct controller_peer *peers, size_t n, bool patient,
                      struct controller_verdict *v)
{
    const struct controller_peer *echo = find_failed(peers, n, true);
    if (echo == NULL || (patient && anybody_runs(peers, n)))
        return false;
    verdict_echo(v, peers, n, echo);
    return true;
}

/* The first reason why the job cannot go on, before the decision.  A failure that is only the echo
 * of another gives way to the original.  again: who is lost is no reason to end it. */
static bool find_failure(const struct controller_peer *peers, size_t n, unsigned may_be, bool waits,
                         bool patient, bool again, struct controller_verdict *v)
{
    const struct controller_peer *failed = find_failed(peers, n, false);
    if (failed != NULL) {
        verdict_fail(v, failed->error_code, failed->id, failed->error_message);
        return true;
    }
    if (!find_lost(peers, n, may_be, waits, v) && !find_echo(peers, n, patient, v))
        return false;
    if (again)
        *v = (struct controller_verdict){.next = JOB_QUEUED, .stop_as = v->stop_as};
    return true;
}

static bool anybody_spared(const struct controller_peer *peers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (peers[i].spared)
            return true;
    }
    return false;
}

static void verdict_unfit(struct controller_verdict *v, const struct error *unfit)
{
    v->next = JOB_STOPPING;
    v->stop_as = unfit->code == E_ABORTED ? JOB_ABORTED : JOB_FAILED;
    v->cause = *unfit;
}

static void step_queued(const struct job *job, const struct controller_peer *peers, size_t n,
                        const struct error *unfit, bool patient, struct controller_verdict *v,
                        enum controller_order *orders)
{
    const struct xaction_kind *kind = xaction_kind_find(job->kind);
    const bool waits = kind != NULL && kind->again;
    const unsigned ready = STATE_BIT(XACTION_READY);
    const unsigned preparing = STATE_BIT(XACTION_PREPARING);
    const unsigned may_be = ready | preparing | STATE_BIT(XACTION_NONE);
    if (find_failure(peers, n, may_be, waits, patient, false, v))
        return;
    if (unfit != NULL)
        verdict_unfit(v, unfit);
    else if (anybody_spared(peers, n))
        v->sheds = true;
    else if (all_peers(peers, n, ready))
        v->next = JOB_RUNNING;
    else
        order_all(orders, peers, n, CONTROLLER_PREPARE, ready | preparing);
}

/* One that has restarted begins again. */
static void order_again(enum controller_order *orders, const struct controller_peer *peers,
                        size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (peer_is(&peers[i], STATE_BIT(XACTION_NONE)))
            orders[i] = CONTROLLER_PREPARE;
        else if (peer_is(&peers[i], STATE_BIT(XACTION_PREPARING)))
            orders[i] = CONTROLLER_NOTHING;
    }
}

static bool anybody_failed(const struct controller_peer *peers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (peer_is(&peers[i], STATE_BIT(XACTION_FAILED)))
            return true;
    }
    return false;
}

/* Of those that can be reached, has anybody not come to an end yet? */
static bool anybody_works(const struct controller_peer *peers, size_t n)
{
    const unsigned ended = STATE_BIT(XACTION_PREPARED) | STATE_BIT(XACTION_FAILED);
    for (size_t i = 0; i < n; i++) {
        if (peers[i].reachable && !peer_is(&peers[i], ended))
            return true;
    }
    return false;
}

static void step_running(const struct job *job, const struct controller_peer *peers, size_t n,
                         const struct error *unfit, bool patient, bool again,
                         struct controller_verdict *v, enum controller_order *orders)
{
    const struct xaction_kind *kind = xaction_kind_find(job->kind);
    const bool resumes = kind != NULL && kind->resumes;
    const unsigned started = STATE_BIT(XACTION_RUNNING) | STATE_BIT(XACTION_PREPARED);
    const unsigned begins = STATE_BIT(XACTION_NONE) | STATE_BIT(XACTION_PREPARING);
    /* What one could not do does not keep the others: nothing of it will be undone. */
    const bool waits = resumes && anybody_failed(peers, n) && anybody_works(peers, n);
    unsigned may_be = started | STATE_BIT(XACTION_READY) | (resumes ? begins : 0);
    if (!waits && find_failure(peers, n, may_be, resumes, patient, again, v))
        return;
    if (unfit != NULL) {
        verdict_unfit(v, unfit);
    } else if (all_peers(peers, n, STATE_BIT(XACTION_PREPARED))) {
        v->next = JOB_COMMITTING;
    } else {
        order_all(orders, peers, n, CONTROLLER_RUN, started | STATE_BIT(XACTION_FAILED));
        if (resumes)
            order_again(orders, peers, n);
    }
}

/* Who is spared here keeps its part: when it is back it finds that the job has finished, and
 * commits. Where nobody knows the job any more by then it takes its part for one that was stopped,
 * and removes it: it lags (missed), the others have all of it, and a repair brings it. */
static void step_committing(const struct controller_peer *peers, size_t n,
                            struct controller_verdict *v, enum controller_order *orders)
{
    const unsigned done = STATE_BIT(XACTION_COMMITTED);
    bool all = n > 0;
    for (size_t i = 0; i < n; i++)
        all = all && (peers[i].gone || peers[i].spared || peer_is(&peers[i], done));
    if (all)
        v->next = JOB_FINISHED;
    else
        order_all(orders, peers, n, CONTROLLER_COMMIT, done | STATE_BIT(XACTION_COMMITTING));
}

/* Those that cannot be reached clean up when they return and find that the job has ended. */
static void step_stopping(const struct job *job, const struct controller_peer *peers, size_t n,
                          struct controller_verdict *v, enum controller_order *orders)
{
    const unsigned done = STATE_BIT(XACTION_STOPPED);
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        bool stopped = peer_is(&peers[i], done);
        orders[i] = stopped || peer_is(&peers[i], STATE_BIT(XACTION_STOPPING)) ? CONTROLLER_NOTHING
                                                                               : CONTROLLER_STOP;
        all = all && (stopped || !peers[i].reachable);
    }
    if (all)
        v->next = job->stop_as;
}

void controller_step(const struct job *job, const struct controller_peer *peers, size_t n,
                     const struct error *unfit, bool patient, bool again,
                     struct controller_verdict *verdict, enum controller_order *orders)
{
    *verdict = (struct controller_verdict){.next = job->state, .stop_as = job->stop_as};
    for (size_t i = 0; i < n; i++)
        orders[i] = CONTROLLER_NOTHING;
    switch (job->state) {
    case JOB_QUEUED:
        step_queued(job, peers, n, unfit, patient, verdict, orders);
        break;
    case JOB_RUNNING:
        step_running(job, peers, n, unfit, patient, again, verdict, orders);
        break;
    case JOB_COMMITTING:
        step_committing(peers, n, verdict, orders);
        break;
    case JOB_STOPPING:
        step_stopping(job, peers, n, verdict, orders);
        break;
    case JOB_FINISHED:
    case JOB_FAILED:
    case JOB_ABORTED:
        break;
    }
}
