#include "target/copies/commit.h"

#include <pthread.h>
#include <string.h>

#include "cluster/placement/copies_reduce.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/fault.h"
#include "common/mem.h"
#include "common/semaphores.h"
#include "target/copies/copies.h"
#include "target/copies/acting.h"
#include "target/copies/earlier_owners.h"
#include "target/node/member.h"
#include "target/copies/staged.h"
#include "target/node/target.h"

enum { PAUSE_MS = 100, GRACE_MS = 100 };

/* One of the others, over all rounds. */
struct told {
    struct round *round;
    char *id;  /* of the node */
    char *url; /* of the call that is under way */
    bool under_way;
    bool over;  /* its fate is known */
    bool maybe; /* a call had no answer: it may have it */
    enum copy_fate fate;
    int code; /* of the last call … */
    bool not_sent, repeated;
    struct error err; /* … and why */
};

/* Lives until the last answer has come, which nobody may wait for any more. */
struct round {
    const struct cluster_state *state; /* a reference; by which it is sent */
    size_t count, needs;
    pthread_mutex_t lock; /* of what follows, while calls are under way */
    pthread_cond_t changed;
    size_t refs; /* who waits, and calls */
    struct told told[OWNERS_MAX];
};

bool copies_order_has(const struct copies_order *o, const char *node_id)
{
    for (size_t i = 0; i < o->count; i++) {
        if (strcmp(o->others[i]->id, node_id) == 0)
            return true;
    }
    return false;
}

size_t copies_order_made(const struct copies_order *o, const struct owners *owners)
{
    size_t made = 0;
    for (size_t i = 0; i < o->count; i++)
        made += o->fates[i] == COPY_MADE && owners_has(owners, o->others[i]->id);
    return made;
}

bool copies_order_lacks(const struct copies_order *o)
{
    bool lacks = false;
    for (size_t i = 0; i < o->count; i++)
        lacks = lacks || (o->fates[i] != COPY_MADE && o->fates[i] != COPY_PASSED_OVER);
    return lacks;
}

/* --- one round -------------------------------------------------------------------------------- */

/* Gives the lock back. */
static void round_drop(struct round *r)
{
    bool last = --r->refs == 0;
    pthread_mutex_unlock(&r->lock);
    if (!last)
        return;
    for (size_t i = 0; i < r->count; i++) {
        free(r->told[i].id);
        free(r->told[i].url);
    }
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    state_unref(r->state);
    free(r);
}

static void answered(void *arg, struct http_result *r)
{
    struct told *t = arg;
    struct round *round = t->round;
    pthread_mutex_lock(&round->lock);
    t->code = r->code == 0 && r->status == 304 ? 0 : http_result_error(r, t->url, &t->err);
    t->not_sent = r->not_sent;
    t->repeated = r->repeated;
    t->under_way = false;
    pthread_cond_broadcast(&round->changed);
    round_drop(round);
}

static char *commit_url(const struct copies_order *o, const struct told *t)
{
    char version[VERSION_TEXT_MAX];
    const struct cluster_state *s = t->round->state;
    const struct node *n = smap_node(&s->smap, t->id);
    _cleanup_free_ char *url = staged_url(n, o->bucket_id, o->name, s, o->stage);
    return xprintf("%s&version=%s&modified=%lld", url, version_format(&o->as.version, version),
                   (long long)o->as.modified_ms);
}

static void tell(const struct copies_order *o, struct told *t)
{
    free(t->url);
    t->url = commit_url(o, t);
    t->err = ERROR_INIT;
    t->under_way = true;
    const struct http_call call = {.method = HTTP_POST,
                                   .url = t->url,
                                   .node = t->id,
                                   .total_timeout_ms = o->target->params.call_timeout};
    pthread_mutex_lock(&t->round->lock);
    t->round->refs++;
    pthread_mutex_unlock(&t->round->lock);
    http_call_start(o->target->data_client, &call, answered, t);
}

/* Under the lock: all have answered, or as many as it needs have it. */
static bool is_answered(const struct round *r, bool *enough)
{
    size_t made = 0, under_way = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct told *t = &r->told[i];
        under_way += t->under_way;
        made += t->over ? t->fate == COPY_MADE : !t->under_way && t->code == 0;
    }
    *enough = r->needs != COPIES_EACH && made >= r->needs;
    return under_way == 0;
}

/* For all, or for as many as it needs and a little longer. */
static void await(struct round *r)
{
    bool enough;
    pthread_mutex_lock(&r->lock);
    while (!is_answered(r, &enough) && !enough)
        pthread_cond_wait(&r->changed, &r->lock);
    const struct timespec end = clock_after(GRACE_MS);
    while (!is_answered(r, &enough) && pthread_cond_timedwait(&r->changed, &r->lock, &end) == 0)
        ;
    pthread_mutex_unlock(&r->lock);
}

/* --- what an answer means --------------------------------------------------------------------- */

static void settle(struct told *t, enum copy_fate fate)
{
    t->over = true;
    t->fate = fate;
}

static bool is_for_later(const struct told *t)
{
    return t->code == E_STALE_MAP || t->code == E_NOT_READY || t->code == E_OVERLOAD || t->not_sent;
}

/* Its stage is gone: was that by our commit?  What is more than ours may be by another owner that
 * acts, and never saw ours. */
static void look_there(const struct copies_order *o, struct told *t)
{
    const struct cluster_state *s = t->round->state;
    const struct node *n = smap_node(&s->smap, t->id);
    struct object_held held;
    if (!t->maybe)
        settle(t, COPY_REFUSED);
    else if (earlier_ask_node(o->target, s, n, o->bucket_id, o->name, &held, &t->err) == 0 &&
             held.found && version_compare(&held.version, &o->as.version) >= 0)
        settle(t, version_compare(&held.version, &o->as.version) == 0 ? COPY_MADE : COPY_UNKNOWN);
}

/* Without one it may have it. */
static void take_answer(const struct copies_order *o, struct told *t)
{
    pthread_mutex_lock(&t->round->lock);
    bool silent = t->under_way;
    pthread_mutex_unlock(&t->round->lock);
    if (t->over)
        return;
    t->maybe = t->maybe || silent || t->repeated;
    if (silent)
        return;
    if (t->code == 0)
        settle(t, COPY_MADE);
    else if (t->code == E_NOT_FOUND)
        look_there(o, t);
    else if (!is_for_later(t))
        t->maybe = true;
}

/* --- the rounds ------------------------------------------------------------------------------- */

static void posted(void *arg)
{
    sem_post(arg);
}

void copies_refresh(struct target *t)
{
    sem_t over;
    sem_init(&over, 0, 0);
    member_refresh(t->member, NULL, posted, &over);
    semaphore_wait(&over);
    sem_destroy(&over);
}

static bool any_says(const struct round *r, int code)
{
    for (size_t i = 0; i < r->count; i++) {
        if (!r->told[i].over && r->told[i].code == code)
            return true;
    }
    return false;
}

/* lowered: the bucket's copies were, and who owns the name no more knows, and refuses it. */
static bool is_passed_over(const struct round *r, bool lowered, const struct owners *owners,
                           const char *id)
{
    const struct node *n = smap_node(&r->state->smap, id);
    return n == NULL || n->state != NODE_ACTIVE || !node_is_present(n) ||
           (lowered && !owners_has(owners, id));
}

/* By the state in force: does this target still act?  Those that the map passes over by now are out
 * of it. */
static int go_on(const struct copies_order *o, struct round *r, struct error *err)
{
    struct owners owners = {0};
    struct error untold = ERROR_INIT; /* the next round tells them */
    state_unref(r->state);
    r->state = state_current(o->target->state);
    const struct bucket *b = bmd_bucket_by_id(&r->state->bmd, o->bucket_id);
    if (b != NULL)
        owners_of(r->state, b, o->name, &owners);
    bool lowered = b != NULL && bucket_has_surplus(b) &&
                   earlier_tell_former(o->target, r->state, b, o->name, &untold) == 0;
    for (size_t i = 0; i < r->count; i++) {
        if (!r->told[i].over && is_passed_over(r, lowered, &owners, r->told[i].id))
            settle(&r->told[i], COPY_PASSED_OVER);
    }
    if (owners.acting == NULL || strcmp(owners.acting->id, o->target->id) != 0)
        return error_set(err, E_STALE_MAP, "another owner leads '%s' by now", o->name);
    return 0;
}

/* Is there nobody to wait for? */
static bool is_over(const struct round *r)
{
    size_t made = 0, open = 0;
    for (size_t i = 0; i < r->count; i++) {
        open += !r->told[i].over;
        made += r->told[i].over && r->told[i].fate == COPY_MADE;
    }
    return open == 0 || (r->needs != COPIES_EACH && made >= r->needs);
}

static int run_rounds(const struct copies_order *o, struct round *r, struct error *err)
{
    uint64_t until_ms = clock_ms() + o->target->params.call_timeout;
    for (;;) {
        for (size_t i = 0; i < r->count; i++) {
            if (!r->told[i].over)
                tell(o, &r->told[i]);
        }
        await(r);
        for (size_t i = 0; i < r->count; i++)
            take_answer(o, &r->told[i]);
        if (is_over(r))
            return 0;
        if (any_says(r, E_STALE_MAP))
            copies_refresh(o->target);
        int code = go_on(o, r, err);
        if (code != 0 || is_over(r))
            return code;
        if (clock_ms() >= until_ms || !job_stop_pause(&o->target->copies->stop, PAUSE_MS))
            return error_set(err, E_NODE_UNREACHABLE, "not all owners of '%s' have answered",
                             o->name);
    }
}

/* --- the outcome ------------------------------------------------------------------------------ */

static const struct told *first_failure(const struct round *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->told[i].code != 0)
            return &r->told[i];
    }
    return &r->told[0];
}

/* Under the lock: somebody may answer still. */
static int judge(struct copies_order *o, struct round *r, const struct error *why,
                 struct error *err)
{
    for (size_t i = 0; i < r->count; i++) {
        struct told *t = &r->told[i];
        o->fates[i] = t->over ? t->fate : t->maybe ? COPY_UNKNOWN : COPY_REFUSED;
        o->made = o->made || o->fates[i] == COPY_MADE || t->maybe;
    }
    enum copies_outcome outcome = copies_judge(o->fates, r->count, r->needs, o->made);
    if (outcome == COPIES_DONE && why->code == 0)
        return 0;
    if (o->made)
        return error_set(err, E_IN_DOUBT,
                         "not all owners of '%s' are known to have it; repeating it is safe: %s",
                         o->name, first_failure(r)->err.message);
    if (why->code == E_STALE_MAP)
        return error_set(err, why->code, "%s", why->message);
    return error_set(err, E_NODE_UNREACHABLE, "target '%s' could not commit its copy: %s",
                     first_failure(r)->id, first_failure(r)->err.message);
}

static struct round *round_new(const struct copies_order *o)
{
    struct round *r = xcalloc(1, sizeof *r);
    condition_init(&r->changed);
    pthread_mutex_init(&r->lock, NULL);
    r->refs = 1;
    r->state = state_ref(o->state);
    r->count = o->count;
    r->needs = o->needs;
    for (size_t i = 0; i < r->count; i++) {
        r->told[i].round = r;
        r->told[i].id = xstrdup(o->others[i]->id);
        if (o->left_out[i])
            settle(&r->told[i], COPY_REFUSED);
    }
    return r;
}

int copies_commit_others(struct copies_order *o, struct error *err)
{
    struct error why = ERROR_INIT;
    int errnum = fault_errno("copies.decided");
    if (errnum != 0)
        return error_errno(err, errnum, "commit");
    if (o->count == 0 || fault_skips("copies.others"))
        return 0;
    struct round *r = round_new(o);
    (void)run_rounds(o, r, &why);
    pthread_mutex_lock(&r->lock);
    int code = judge(o, r, &why, err);
    round_drop(r);
    return code;
}
