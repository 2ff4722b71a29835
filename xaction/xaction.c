#include "xaction/xaction.h"

#include <assert.h>
#include <pthread.h>
#include <time.h>

#include "cluster/documents/state.h"
#include "common/backoff.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/thread.h"
#include "xaction/course.h"

/* Between the tries of a commit or an undo. */
static const struct backoff insistence = {.first_ms = 100, .max_ms = 10000};

/* One job on this node.  At most one thread works on an entry at a time (`busy`); orders that come
 * meanwhile only change what it does next. */
struct entry {
    struct entry *next;
    struct xactions *registry;
    struct job *job;
    struct job *next_job;          /* of a further attempt, until it begins; or NULL */
    const struct xaction_ops *ops; /* NULL: of a kind that this node does not know */
    void *self;                    /* NULL where open() failed, and once the job has ended */
    enum xaction_state state;
    struct error error;
    json_t *last_status; /* of `self`, when it was freed */
    unsigned holds;
    bool busy;
    bool threaded; /* `thread` has to be joined */
    bool stop_wanted;
    pthread_t thread;
};

struct xactions {
    const struct xaction_ops *const *kinds;
    void *host;
    void (*moved)(void *host, const char *job_id);
    pthread_mutex_t lock;
    pthread_cond_t changed; /* an entry's holds or busy went down, or `closing` came */
    struct entry *entries;
    bool closing;
};

int xaction_nothing(void *self, struct error *err)
{
    (void)self;
    (void)err;
    return 0;
}

struct xactions *xactions_new(const struct xaction_ops *const *kinds, void *host,
                              void (*moved)(void *host, const char *job_id))
{
    struct xactions *x = xcalloc(1, sizeof *x);
    x->kinds = kinds;
    x->host = host;
    x->moved = moved;
    pthread_mutex_init(&x->lock, NULL);
    condition_init(&x->changed);
    return x;
}

/* Its thread has left the lock for the last time, or is about to. */
static void entry_join(struct entry *e)
{
    assert(!e->busy);
    if (e->threaded)
        pthread_join(e->thread, NULL);
    e->threaded = false;
}

static void entry_free(struct entry *e)
{
    entry_join(e);
    if (e->self != NULL)
        e->ops->free(e->self);
    json_decref(e->last_status);
    job_unref(e->next_job);
    job_unref(e->job);
    free(e);
}

/* stop() is for run(): the other steps end by themselves. */
static void entry_interrupt(struct entry *e)
{
    if (e->state == XACTION_RUNNING)
        e->ops->stop(e->self);
}

static void entry_repeat(struct entry *e, const struct job *job)
{
    job_unref(e->next_job);
    e->next_job = job_ref(job);
    if (e->state == XACTION_RUNNING && e->ops->give_way != NULL)
        e->ops->give_way(e->self);
    else
        entry_interrupt(e);
}

void xactions_close(struct xactions *x)
{
    pthread_mutex_lock(&x->lock);
    x->closing = true;
    for (struct entry *e = x->entries; e != NULL; e = e->next)
        entry_interrupt(e);
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
}

void xactions_free(struct xactions *x)
{
    if (x == NULL)
        return;
    xactions_close(x);
    pthread_mutex_lock(&x->lock);
    for (struct entry *e = x->entries; e != NULL; e = e->next) {
        while (e->busy || e->holds > 0)
            pthread_cond_wait(&x->changed, &x->lock);
    }
    pthread_mutex_unlock(&x->lock);
    while (x->entries != NULL) {
        struct entry *e = x->entries;
        x->entries = e->next;
        entry_free(e);
    }
    pthread_cond_destroy(&x->changed);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

static struct entry *entry_find(struct xactions *x, const char *job_id)
{
    struct entry *e = x->entries;
    while (e != NULL && strcmp(e->job->id, job_id) != 0)
        e = e->next;
    return e;
}

static const struct xaction_ops *kind_find(struct xactions *x, const char *kind)
{
    for (size_t i = 0; x->kinds[i] != NULL; i++) {
        if (strcmp(x->kinds[i]->kind, kind) == 0)
            return x->kinds[i];
    }
    return NULL;
}

static void entry_move(struct entry *e, enum xaction_state to)
{
    const unsigned worth_telling = 1u << XACTION_READY | 1u << XACTION_PREPARED |
                                   1u << XACTION_COMMITTED | 1u << XACTION_FAILED |
                                   1u << XACTION_STOPPED;
    struct xactions *x = e->registry;
    assert(xaction_may_move(e->state, to));
    e->state = to;
    if (x->moved != NULL && !x->closing && (worth_telling & 1u << to) != 0)
        x->moved(x->host, e->job->id);
}

static struct xaction_life entry_life(const struct entry *e)
{
    return (struct xaction_life){.state = e->state,
                                 .opened = e->self != NULL,
                                 .busy = e->busy,
                                 .stop_wanted = e->stop_wanted,
                                 .attempt = (e->next_job != NULL ? e->next_job : e->job)->attempt,
                                 .again_wanted = e->next_job != NULL};
}

/* --- the job's thread: every function below is entered and left with the lock held ------------ */

/* The job is over on this node: its state goes when nobody uses it any more, its last status stays.
 */
static void entry_retire(struct entry *e)
{
    struct xactions *x = e->registry;
    while (e->holds > 0)
        pthread_cond_wait(&x->changed, &x->lock);
    e->last_status = e->ops->status(e->self);
    void *self = steal(e->self);
    pthread_mutex_unlock(&x->lock);
    e->ops->free(self);
    pthread_mutex_lock(&x->lock);
}

static int entry_call(struct entry *e, int (*fn)(void *self, struct error *err), const char *what,
                      struct error *err)
{
    *err = ERROR_INIT;
    pthread_mutex_unlock(&e->registry->lock);
    int code = fn(e->self, err);
    if (code != 0)
        log_warn("job step failed", lstr("job", e->job->id), lstr("step", what), lerr(err));
    pthread_mutex_lock(&e->registry->lock);
    return code;
}

static void entry_try(struct entry *e, int (*fn)(void *self, struct error *err), const char *what)
{
    struct error err;
    int code = entry_call(e, fn, what, &err);
    if (code != 0 && e->registry->closing)
        return; /* that is the end of the node, not of the job, which goes on with the next start */
    struct xaction_life life = entry_life(e);
    e->error = code != 0 ? err : ERROR_INIT;
    entry_move(e, xaction_step_ended(&life, code == 0));
}

/* A further attempt begins when nobody uses any more what the one before had. */
static void entry_prepare(struct entry *e)
{
    struct xactions *x = e->registry;
    while (e->next_job != NULL && e->holds > 0)
        pthread_cond_wait(&x->changed, &x->lock);
    if (e->next_job != NULL) {
        job_unref(e->job);
        e->job = steal(e->next_job);
        if (e->ops->again != NULL) {
            pthread_mutex_unlock(&x->lock);
            e->ops->again(e->self, e->job);
            pthread_mutex_lock(&x->lock);
        }
    }
    entry_try(e, e->ops->prepare, "prepare");
}

/* Or until the node stops. */
static void entry_pause(struct entry *e, uint64_t ms)
{
    const struct timespec until = clock_after(ms);
    struct xactions *x = e->registry;
    while (!x->closing && pthread_cond_timedwait(&x->changed, &x->lock, &until) == 0)
        ;
}

/* Again and again: there is no other way out of these states.  A success leaves the error that the
 * job had before. */
static void entry_insist(struct entry *e, int (*fn)(void *self, struct error *err),
                         const char *what, enum xaction_state after)
{
    const struct error before = e->error;
    unsigned failures = 0;
    struct error err;
    while (entry_call(e, fn, what, &err) != 0) {
        e->error = err;
        entry_pause(e, backoff_ms(&insistence, ++failures));
        if (e->registry->closing)
            return;
    }
    e->error = before;
    entry_move(e, after);
    entry_retire(e);
}

static void *entry_thread(void *arg)
{
    struct entry *e = arg;
    struct xactions *x = e->registry;
    pthread_mutex_lock(&x->lock);
    if (e->state == XACTION_RUNNING)
        entry_try(e, e->ops->run, "run");
    while (e->state == XACTION_PREPARING && !x->closing)
        entry_prepare(e);
    if (e->state == XACTION_COMMITTING)
        entry_insist(e, e->ops->commit, "commit", XACTION_COMMITTED);
    if (e->state == XACTION_STOPPING && !x->closing)
        entry_insist(e, e->ops->undo, "undo", XACTION_STOPPED);
    e->busy = false;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
    return NULL;
}

/* --- orders: all with the lock held ----------------------------------------------------------- */

/* Enters a state in which the job's thread has something to do. */
static int entry_begin(struct entry *e, enum xaction_state state, struct error *err)
{
    entry_join(e);
    int code = thread_start(e->ops->kind, entry_thread, e, &e->thread, err);
    if (code != 0)
        return error_wrap(err, "job '%s'", e->job->id);
    e->busy = true;
    e->threaded = true;
    entry_move(e, state);
    return 0;
}

static struct entry *entry_new(struct xactions *x, const struct job *job)
{
    struct entry *e = xcalloc(1, sizeof *e);
    e->registry = x;
    e->job = job_ref(job);
    e->ops = kind_find(x, job->kind);
    if (e->ops == NULL)
        error_set(&e->error, E_UNSUPPORTED, "this node does not know the kind '%s'", job->kind);
    else if (e->ops->open(e->ops, x->host, job, &e->self, &e->error) != 0)
        e->self = NULL;
    else
        e->error = ERROR_INIT;
    if (e->self == NULL)
        log_warn("job not opened", lstr("job", job->id), lerr(&e->error));
    e->next = x->entries;
    x->entries = e;
    return e;
}

static void entry_drop(struct entry *e)
{
    struct entry **at = &e->registry->entries;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    entry_free(e);
}

/* A commit that finds nothing to open says why there is nothing. */
static int refuse(const struct entry *e, enum xaction_order order, struct error *err)
{
    if (order == XACTION_COMMIT && e->state == XACTION_NONE && e->error.code != 0)
        return error_set(err, e->error.code, "%s", e->error.message);
    return error_set(err, E_JOB_STATE, "job '%s': cannot %s while it is %s", e->job->id,
                     xaction_order_name(order), xaction_state_name(e->state));
}

static int entry_order(struct entry *e, enum xaction_order order, const struct job *job,
                       struct error *err)
{
    struct xaction_life life = entry_life(e);
    struct xaction_turn turn = xaction_ordered(&life, order, job->attempt);
    int code = 0;
    switch (turn.effect) {
    case XACTION_KEEPS:
        break;
    case XACTION_REFUSES:
        return refuse(e, order, err);
    case XACTION_MOVES:
        entry_move(e, turn.to);
        break;
    case XACTION_BEGINS:
        code = entry_begin(e, turn.to, err);
        if (code != 0)
            break;
        e->stop_wanted = e->stop_wanted || turn.to == XACTION_STOPPING;
        if (turn.to == XACTION_PREPARING && life.state != XACTION_NONE)
            entry_repeat(e, job);
        break;
    case XACTION_STOPS:
        e->stop_wanted = true;
        entry_interrupt(e);
        break;
    case XACTION_REPEATS:
        entry_repeat(e, job);
        break;
    }
    return code;
}

static int order_carry_out(struct xactions *x, enum xaction_order order, const struct job *job,
                           struct error *err)
{
    struct entry *e = entry_find(x, job->id);
    if (x->closing)
        return error_set(err, E_NOT_READY, "job '%s': this node is stopping", job->id);
    if (e == NULL && order == XACTION_RUN)
        return error_set(err, E_JOB_STATE, "job '%s': this node was not told to prepare it",
                         job->id);
    if (e == NULL)
        e = entry_new(x, job);
    int code = entry_order(e, order, job, err);
    if (e->state == XACTION_NONE)
        entry_drop(e); /* nothing has come of it */
    return code;
}

int xactions_order(struct xactions *x, enum xaction_order order, const struct job *job,
                   struct error *err)
{
    pthread_mutex_lock(&x->lock);
    int code = order_carry_out(x, order, job, err);
    pthread_mutex_unlock(&x->lock);
    return code;
}

static json_t *entry_status(const struct entry *e)
{
    if (e->self == NULL)
        return json_deep_copy(e->last_status);
    /* Before that its thread is still making what status() looks at. */
    return e->state == XACTION_PREPARING ? NULL : e->ops->status(e->self);
}

static json_t *entry_report(const struct entry *e)
{
    json_t *report = json_pack("{s:s}", "state", xaction_state_name(e->state));
    if (e->job->attempt > 0)
        json_object_set_new(report, "attempt", json_integer((json_int_t)e->job->attempt));
    if (e->error.code != 0)
        json_object_set_new(report, "error",
                            json_pack("{s:s, s:o}", "code", error_name(e->error.code), "message",
                                      json_string_escaped(e->error.message)));
    json_t *status = entry_status(e);
    if (status != NULL)
        json_object_set_new(report, "status", status);
    return report;
}

json_t *xactions_report(struct xactions *x, const char *job_id)
{
    pthread_mutex_lock(&x->lock);
    const struct entry *e = entry_find(x, job_id);
    json_t *report =
        e != NULL ? entry_report(e) : json_pack("{s:s}", "state", xaction_state_name(XACTION_NONE));
    pthread_mutex_unlock(&x->lock);
    return report;
}

static bool is_kind(const struct xaction_ops *ops, const char *kind)
{
    return strcmp(ops->kind, kind) == 0 || (ops->like != NULL && strcmp(ops->like, kind) == 0);
}

void *xactions_hold(struct xactions *x, const char *job_id, const char *kind)
{
    void *self = NULL;
    pthread_mutex_lock(&x->lock);
    struct entry *e = entry_find(x, job_id);
    if (e != NULL && !x->closing && !e->stop_wanted && e->next_job == NULL &&
        (e->state == XACTION_READY || e->state == XACTION_RUNNING ||
         e->state == XACTION_PREPARED) &&
        is_kind(e->ops, kind)) {
        e->holds++;
        self = e->self;
    }
    pthread_mutex_unlock(&x->lock);
    return self;
}

void xactions_release(struct xactions *x, const char *job_id)
{
    pthread_mutex_lock(&x->lock);
    struct entry *e = entry_find(x, job_id);
    assert(e != NULL && e->holds > 0);
    e->holds--;
    pthread_cond_broadcast(&x->changed);
    pthread_mutex_unlock(&x->lock);
}

bool xactions_hold_attempt(struct xactions *x, const char *job_id, const char *kind,
                           uint64_t attempt)
{
    const void *self = xactions_hold(x, job_id, kind);
    if (self == NULL)
        return false;
    pthread_mutex_lock(&x->lock);
    const struct xaction_ops *ops = entry_find(x, job_id)->ops;
    pthread_mutex_unlock(&x->lock);
    if (ops->attempt == NULL || ops->attempt(self) == attempt)
        return true;
    xactions_release(x, job_id);
    return false;
}

static bool entry_over(const struct entry *e)
{
    return (e->state == XACTION_COMMITTED || e->state == XACTION_STOPPED) && !e->busy &&
           e->holds == 0;
}

static void entry_settle(struct entry *e, enum xaction_order order)
{
    struct error err = ERROR_INIT;
    int code = entry_order(e, order, e->job, &err);
    if (code != 0 && code != E_JOB_STATE)
        log_warn("ended job not cleaned up", lstr("job", e->job->id), lerr(&err));
}

void xactions_settle(struct xactions *x, const struct jobs *jobs, const char *node_id)
{
    pthread_mutex_lock(&x->lock);
    for (struct entry *e = x->entries, *next; e != NULL && !x->closing; e = next) {
        next = e->next;
        enum xaction_order order;
        if (!xaction_settles(jobs_find(jobs, e->job->id), node_id, &order))
            continue;
        if (entry_over(e))
            entry_drop(e);
        else
            entry_settle(e, order);
    }
    pthread_mutex_unlock(&x->lock);
}
