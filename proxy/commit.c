/* The primary's single writer: commands come from any thread, and are applied, made durable and
 * published one after the other in the control loop's thread. */
#include <assert.h>
#include <pthread.h>

#include "common/log.h"
#include "common/mem.h"
#include "proxy/proxy.h"
#include "proxy/publish.h"

struct commit {
    struct proxy *proxy;
    struct command *cmd;
    bool settled; /* tell of a success only when all proxies know it */
    void (*done)(void *arg, const struct error *err);
    void *arg;
};

static void commit_end(struct commit *c, const struct error *err)
{
    c->done(c->arg, err);
    command_free(c->cmd);
    free(c);
}

static void commit_settled(void *arg)
{
    commit_end(arg, NULL);
}

static int check_writable(const struct proxy *p, struct error *err)
{
    if (!p->is_primary)
        return error_set(err, E_NOT_PRIMARY, "proxy '%s' is not the primary", p->id);
    if (p->closing)
        return error_set(err, E_NOT_READY, "proxy '%s' is stopping", p->id);
    return 0;
}

static int commit_apply(struct proxy *p, const struct command *cmd, struct error *err)
{
    _cleanup_state_ const struct cluster_state *now = state_current(p->state);
    _cleanup_state_ const struct cluster_state *next = NULL;
    int r;
    if ((r = check_writable(p, err)) != 0 || (r = command_apply(now, cmd, &next, err)) != 0)
        return r;
    if (next == now)
        return 0;
    if ((r = p->metastore->ops->commit(p->metastore, now, next, err)) != 0)
        return r;
    bool advanced = state_advance(p->state, next);
    assert(advanced); /* nobody else writes */
    (void)advanced;
    proxy_state_changed(p);
    return 0;
}

static void commit_run(void *arg)
{
    struct commit *c = arg;
    struct proxy *p = c->proxy;
    struct error err = ERROR_INIT;
    if (commit_apply(p, c->cmd, &err) != 0) {
        commit_end(c, &err);
    } else if (c->settled && p->publisher != NULL) {
        _cleanup_state_ const struct cluster_state *s = state_current(p->state);
        publisher_settle(p->publisher, s, commit_settled, c);
    } else {
        commit_end(c, NULL);
    }
}

static void commit_start(struct proxy *p, const struct command *cmd, bool settled,
                         void (*done)(void *arg, const struct error *err), void *arg)
{
    struct commit *c = xcalloc(1, sizeof *c);
    *c = (struct commit){
        .proxy = p, .cmd = command_copy(cmd), .settled = settled, .done = done, .arg = arg};
    loop_post(p->loop, commit_run, c);
}

void proxy_commit(struct proxy *p, const struct command *cmd,
                  void (*done)(void *arg, const struct error *err), void *arg)
{
    commit_start(p, cmd, false, done, arg);
}

void proxy_commit_settled(struct proxy *p, const struct command *cmd,
                          void (*done)(void *arg, const struct error *err), void *arg)
{
    commit_start(p, cmd, true, done, arg);
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

int proxy_commit_wait(struct proxy *p, const struct command *cmd, struct error *err)
{
    assert(!loop_here(p->loop));
    struct waiter w = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    proxy_commit(p, cmd, wake_waiter, &w);
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
