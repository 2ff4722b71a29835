/* The thread side of the primary's single writer (proxy/metastore/writer.h): changes come from any
 * thread; the control loop's runs the queue; a thread that may wait for a disk, or etcd, makes them
 * durable:
 *
 *   any thread ─▶ queue ─▶ apply ─▶ metastore ─▶ p->state, push ─▶ done()
 *                control loop      commit thread     control loop */
#include <assert.h>
#include <pthread.h>

#include "common/mem.h"
#include "io/pool.h"
#include "proxy/primary/proxy.h"
#include "proxy/primary/publish.h"
#include "proxy/metastore/writer.h"

struct committer {
    struct proxy *proxy;
    struct pool *pool; /* one thread */
    struct writer *writer;
    const struct cluster_state *from, *to; /* that the thread makes durable */
    int code;                              /* how that ended … */
    struct error err;                      /* … and why */
};

/* --- the writer's world: the control loop's thread -------------------------------------------- */

static const struct cluster_state *env_state(void *ctx)
{
    const struct committer *c = ctx;
    return state_current(c->proxy->state);
}

/* What clients ask for, and makes the documents longer.  What the cluster does by itself is never
 * refused for their length. */
static bool lengthens(const struct command *cmd)
{
    switch (cmd->kind) {
    case CMD_BUCKET_CREATE:
    case CMD_BUCKET_PROPS:
    case CMD_BUCKET_TEXTS:
    case CMD_JOB_CREATE:
        return true;
    case CMD_CONFIG_SET:
        return cmd->text != NULL;
    default:
        return false;
    }
}

/* A node that cannot take the documents whole learns nothing more, and cannot join. */
static int check_length(const struct proxy *p, const struct command *cmd, struct error *err)
{
    size_t bytes = p->publisher != NULL ? publisher_bytes(p->publisher) : 0;
    if (!lengthens(cmd) || bytes <= p->params.state_max / 4 * 3)
        return 0;
    return error_set(
        err, E_OVERLOAD,
        "the cluster's documents have %zu bytes, more than three quarters of state_max "
        "(%llu bytes): remove buckets, or raise state_max on every node",
        bytes, (unsigned long long)p->params.state_max);
}

static int env_check(void *ctx, const struct command *cmd, bool begins, struct error *err)
{
    const struct committer *c = ctx;
    struct proxy *p = c->proxy;
    if (!begins && !proxy_is_primary(p))
        return error_set(err, E_NOT_PRIMARY, "proxy '%s' is not the primary; repeat it", p->id);
    if (p->fenced && !begins)
        return error_set(err, E_NOT_PRIMARY,
                         "proxy '%s' is moving the cluster's documents; repeat it", p->id);
    if (p->closing)
        return error_set(err, E_NOT_READY, "proxy '%s' is stopping", p->id);
    return check_length(p, cmd, err);
}

static void written(void *arg)
{
    struct committer *c = arg;
    struct error err = c->err;
    writer_written(c->writer, c->code != 0 ? &err : NULL);
}

static void make_durable(void *arg)
{
    struct committer *c = arg;
    struct metastore *m = c->proxy->metastore;
    c->code = m->ops->commit(m, c->from, c->to, &c->err);
    loop_post(c->proxy->loop, written, c);
}

static int env_write(void *ctx, const struct cluster_state *from, const struct cluster_state *to,
                     struct error *err)
{
    struct committer *c = ctx;
    c->from = from;
    c->to = to;
    c->err = ERROR_INIT;
    return pool_submit(c->pool, make_durable, c, err);
}

/* A newer term may have come meanwhile, where this proxy has lost its own. */
static void env_publish(void *ctx, const struct cluster_state *s)
{
    const struct committer *c = ctx;
    if (state_advance(c->proxy->state, s))
        proxy_state_changed(c->proxy);
}

static void env_settle(void *ctx, enum settle_scope scope, void (*fn)(void *arg), void *arg)
{
    const struct committer *c = ctx;
    struct proxy *p = c->proxy;
    _cleanup_state_ const struct cluster_state *s = state_current(p->state);
    if (p->publisher != NULL)
        publisher_settle(p->publisher, s, scope, fn, arg);
    else
        fn(arg);
}

int committer_new(struct proxy *p, struct committer **out, struct error *err)
{
    struct committer *c = xcalloc(1, sizeof *c);
    const struct writer_env env = {.ctx = c,
                                   .state = env_state,
                                   .check = env_check,
                                   .write = env_write,
                                   .publish = env_publish,
                                   .settle = env_settle};
    int r = pool_new("commit", 1, 1, &c->pool, err);
    if (r == 0)
        r = pool_keep(c->pool, 1, err);
    if (r != 0) {
        pool_free(c->pool);
        free(c);
        return r;
    }
    c->proxy = p;
    c->writer = writer_new(&env);
    *out = c;
    return 0;
}

void committer_free(struct committer *c)
{
    if (c == NULL)
        return;
    writer_free(c->writer);
    pool_free(c->pool);
    free(c);
}

/* --- starting -------------------------------------------------------------------------------- */

/* On its way to the control loop. */
struct posted {
    struct proxy *proxy;
    struct change *change;
};

static void put_posted(void *arg)
{
    struct posted *posted = arg;
    writer_put(posted->proxy->committer->writer, posted->change);
    free(posted);
}

static void post(struct proxy *p, struct change *change)
{
    struct posted *posted = xcalloc(1, sizeof *posted);
    *posted = (struct posted){.proxy = p, .change = change};
    loop_post(p->loop, put_posted, posted);
}

void proxy_commit(struct proxy *p, const struct command *cmd,
                  void (*done)(void *arg, const struct error *err), void *arg)
{
    post(p, change_new(cmd, done, arg));
}

void proxy_commit_settled(struct proxy *p, const struct command *cmd,
                          void (*done)(void *arg, const struct error *err), void *arg)
{
    struct change *c = change_new(cmd, done, arg);
    change_settles(c);
    post(p, c);
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

static void waiter_init(struct waiter *w)
{
    *w = (struct waiter){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
}

/* `c` wakes `w`. */
static int commit_wait(struct proxy *p, struct change *c, struct waiter *w, struct error *err)
{
    assert(!loop_here(p->loop));
    post(p, c);
    pthread_mutex_lock(&w->lock);
    while (!w->done)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    if (err != NULL)
        *err = w->err;
    return w->err.code;
}

int proxy_commit_wait(struct proxy *p, const struct command *cmd, struct error *err)
{
    struct waiter w;
    waiter_init(&w);
    return commit_wait(p, change_new(cmd, wake_waiter, &w), &w, err);
}

int proxy_commit_term(struct proxy *p, const struct command *cmd, const struct cluster_state *base,
                      bool is_first, struct error *err)
{
    struct waiter w;
    waiter_init(&w);
    struct change *c = change_new(cmd, wake_waiter, &w);
    change_begins(c, base, is_first);
    return commit_wait(p, c, &w, err);
}

void proxy_commit_barrier(struct proxy *p)
{
    struct waiter w;
    waiter_init(&w);
    commit_wait(p, change_new(NULL, wake_waiter, &w), &w, NULL);
}
