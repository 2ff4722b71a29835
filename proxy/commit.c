/* The primary's single writer.  Commands come from any thread and stand in a queue; one after the
 * other is applied in the control loop's thread, made durable by a thread that may wait for that
 * (a disk, etcd), and published in the control loop's thread again:
 *
 *   any thread ─▶ queue ─▶ apply ─▶ metastore ─▶ p->state, push ─▶ done()
 *                control loop      commit thread     control loop
 *
 * The command that begins a term is applied to the state that the metastore had, and is the only
 * one that a proxy may commit that is not the primary yet. */
#include <assert.h>
#include <pthread.h>

#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "proxy/proxy.h"
#include "proxy/publish.h"

struct commit {
    struct proxy *proxy;
    struct commit *next;              /* in the queue */
    struct command *cmd;              /* NULL: a barrier, which only waits for its turn */
    bool begins;                      /* a term; then: */
    const struct cluster_state *base; /* what the metastore has; */
    bool is_first;                    /* nothing of it */
    bool settled;                     /* tell of a success only when all proxies know it */
    void (*done)(void *arg, const struct error *err);
    void *arg;
    const struct cluster_state *from, *to; /* while the metastore has it */
    struct error err;
};

struct committer {
    struct pool *pool;    /* one thread */
    bool busy;            /* it has a commit */
    struct commit *first; /* those that wait; the control loop's */
    struct commit **end;
};

int committer_new(struct committer **out, struct error *err)
{
    struct committer *c = xcalloc(1, sizeof *c);
    c->end = &c->first;
    int r = pool_new("commit", 1, 1, &c->pool, err);
    if (r != 0) {
        free(c);
        return r;
    }
    *out = c;
    return 0;
}

void committer_free(struct committer *c)
{
    if (c == NULL)
        return;
    assert(c->first == NULL && !c->busy);
    pool_free(c->pool);
    free(c);
}

/* --- one commit ------------------------------------------------------------------------------ */

static void commit_end(struct commit *c, const struct error *err)
{
    c->done(c->arg, err);
    state_unref(c->base);
    command_free(c->cmd);
    free(c);
}

static void commit_settled(void *arg)
{
    commit_end(arg, NULL);
}

static void commit_succeed(struct commit *c)
{
    struct proxy *p = c->proxy;
    if (c->settled && p->publisher != NULL) {
        _cleanup_state_ const struct cluster_state *s = state_current(p->state);
        publisher_settle(p->publisher, s, commit_settled, c);
    } else {
        commit_end(c, NULL);
    }
}

static int check_writable(const struct commit *c, struct error *err)
{
    struct proxy *p = c->proxy;
    if (!c->begins && !proxy_is_primary(p))
        return error_set(err, E_NOT_PRIMARY, "proxy '%s' is not the primary; repeat it", p->id);
    if (p->closing)
        return error_set(err, E_NOT_READY, "proxy '%s' is stopping", p->id);
    return 0;
}

/* *next is *now where nothing is to be done. */
static int commit_apply(struct commit *c, struct error *err)
{
    int r = check_writable(c, err);
    if (r != 0)
        return r;
    c->from = c->begins ? state_ref(c->base) : state_current(c->proxy->state);
    return command_apply(c->from, c->cmd, &c->to, err);
}

static void commit_forget_states(struct commit *c)
{
    state_unref(c->from);
    state_unref(c->to);
    c->from = c->to = NULL;
}

/* --- the queue ---------------------------------------------------------------------------------
 */

static void run_queue(struct proxy *p);

/* A newer term may have come meanwhile, where this proxy has lost its own. */
static void commit_written(void *arg)
{
    struct commit *c = arg;
    struct proxy *p = c->proxy;
    p->committer->busy = false;
    bool advanced = c->err.code == 0 && state_advance(p->state, c->to);
    commit_forget_states(c);
    if (advanced)
        proxy_state_changed(p);
    if (c->err.code == 0)
        commit_succeed(c);
    else
        commit_end(c, &c->err);
    run_queue(p);
}

static void commit_write(void *arg)
{
    struct commit *c = arg;
    struct metastore *m = c->proxy->metastore;
    m->ops->commit(m, c->is_first ? NULL : c->from, c->to, &c->err);
    loop_post(c->proxy->loop, commit_written, c);
}

/* True where the metastore has it now. */
static bool commit_begin(struct commit *c)
{
    struct error err = ERROR_INIT;
    int r = c->cmd != NULL ? commit_apply(c, &err) : 0;
    bool changes = r == 0 && c->cmd != NULL && c->from != c->to;
    if (changes && (r = pool_submit(c->proxy->committer->pool, commit_write, c, &err)) == 0)
        return true;
    commit_forget_states(c);
    if (r != 0)
        commit_end(c, &err);
    else
        commit_succeed(c);
    return false;
}

static void run_queue(struct proxy *p)
{
    struct committer *q = p->committer;
    while (!q->busy && q->first != NULL) {
        struct commit *c = q->first;
        q->first = c->next;
        if (q->first == NULL)
            q->end = &q->first;
        q->busy = commit_begin(c);
    }
}

static void enqueue(void *arg)
{
    struct commit *c = arg;
    struct committer *q = c->proxy->committer;
    *q->end = c;
    q->end = &c->next;
    run_queue(c->proxy);
}

/* --- starting -------------------------------------------------------------------------------- */

static struct commit *commit_new(struct proxy *p, const struct command *cmd,
                                 void (*done)(void *arg, const struct error *err), void *arg)
{
    struct commit *c = xcalloc(1, sizeof *c);
    *c = (struct commit){
        .proxy = p, .cmd = cmd != NULL ? command_copy(cmd) : NULL, .done = done, .arg = arg};
    return c;
}

void proxy_commit(struct proxy *p, const struct command *cmd,
                  void (*done)(void *arg, const struct error *err), void *arg)
{
    loop_post(p->loop, enqueue, commit_new(p, cmd, done, arg));
}

void proxy_commit_settled(struct proxy *p, const struct command *cmd,
                          void (*done)(void *arg, const struct error *err), void *arg)
{
    struct commit *c = commit_new(p, cmd, done, arg);
    c->settled = true;
    loop_post(p->loop, enqueue, c);
}

/* --- waiting --------------------------------------------------------------------------------- */

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    struct error err;
};

static void wake_waiter(void *arg, const struct error *err)
{
    struct waiter *w = arg;
    pthread_mutex_lock(&w->lock);
    if (err != NULL)
        w->err = *err;
    w->done = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static int commit_wait(struct commit *c, struct error *err)
{
    struct proxy *p = c->proxy;
    assert(!loop_here(p->loop));
    struct waiter w = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    c->done = wake_waiter;
    c->arg = &w;
    loop_post(p->loop, enqueue, c);
    pthread_mutex_lock(&w.lock);
    while (!w.done)
        pthread_cond_wait(&w.changed, &w.lock);
    pthread_mutex_unlock(&w.lock);
    pthread_cond_destroy(&w.changed);
    pthread_mutex_destroy(&w.lock);
    if (err != NULL)
        *err = w.err;
    return w.err.code;
}

int proxy_commit_wait(struct proxy *p, const struct command *cmd, struct error *err)
{
    return commit_wait(commit_new(p, cmd, NULL, NULL), err);
}

int proxy_commit_term(struct proxy *p, const struct command *cmd, const struct cluster_state *base,
                      bool is_first, struct error *err)
{
    struct commit *c = commit_new(p, cmd, NULL, NULL);
    c->begins = true;
    c->base = state_ref(base);
    c->is_first = is_first;
    return commit_wait(c, err);
}

void proxy_commit_barrier(struct proxy *p)
{
    commit_wait(commit_new(p, NULL, NULL, NULL), NULL);
}
