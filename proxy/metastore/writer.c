#include "proxy/metastore/writer.h"

#include <assert.h>

#include "common/mem.h"

struct change {
    struct change *next; /* in the queue */
    struct command *cmd;
    bool begins;
    bool is_first;
    bool settles;
    const struct cluster_state *base;
    change_done_fn *done;
    void *arg;
    const struct cluster_state *from, *to; /* while it is being written */
};

struct writer {
    struct writer_env env;
    struct change *writing; /* write() was called for it */
    struct change *first;   /* those that wait */
    struct change **end;
};

struct change *change_new(const struct command *cmd, change_done_fn *done, void *arg)
{
    struct change *c = xcalloc(1, sizeof *c);
    *c = (struct change){.cmd = cmd != NULL ? command_copy(cmd) : NULL, .done = done, .arg = arg};
    return c;
}

void change_settles(struct change *c)
{
    c->settles = true;
}

void change_begins(struct change *c, const struct cluster_state *base, bool is_first)
{
    c->begins = true;
    c->base = state_ref(base);
    c->is_first = is_first;
}

struct writer *writer_new(const struct writer_env *env)
{
    struct writer *w = xcalloc(1, sizeof *w);
    w->env = *env;
    w->end = &w->first;
    return w;
}

void writer_free(struct writer *w)
{
    assert(w == NULL || writer_is_idle(w));
    free(w);
}

bool writer_is_idle(const struct writer *w)
{
    return w->writing == NULL && w->first == NULL;
}

/* --- the end of a change --------------------------------------------------------------------- */

static void change_end(struct change *c, const struct error *err)
{
    c->done(c->arg, err);
    state_unref(c->base);
    command_free(c->cmd);
    free(c);
}

static void change_settled(void *arg)
{
    change_end(arg, NULL);
}

static enum settle_scope scope_of(const struct change *c)
{
    bool has_new_name =
        c->cmd != NULL && (c->cmd->kind == CMD_BUCKET_CREATE || c->cmd->kind == CMD_BUCKET_RENAME);
    return has_new_name ? SETTLE_NODES : SETTLE_PROXIES;
}

static void change_succeed(struct writer *w, struct change *c)
{
    if (c->settles)
        w->env.settle(w->env.ctx, scope_of(c), change_settled, c);
    else
        change_end(c, NULL);
}

static void forget_states(struct change *c)
{
    state_unref(c->from);
    state_unref(c->to);
    c->from = c->to = NULL;
}

/* --- the queue ------------------------------------------------------------------------------- */

/* c->to is c->from where nothing is to be done. */
static int apply(struct writer *w, struct change *c, struct error *err)
{
    int r = w->env.check(w->env.ctx, c->cmd, c->begins, err);
    if (r != 0)
        return r;
    c->from = c->begins ? state_ref(c->base) : w->env.state(w->env.ctx);
    return command_apply(c->from, c->cmd, &c->to, err);
}

/* True where it is being written now. */
static bool begin(struct writer *w, struct change *c)
{
    struct error err = ERROR_INIT;
    int r = c->cmd != NULL ? apply(w, c, &err) : 0;
    if (r == 0 && c->from != c->to) {
        r = w->env.write(w->env.ctx, c->is_first ? NULL : c->from, c->to, &err);
        if (r == 0)
            return true;
    }
    forget_states(c);
    if (r != 0)
        change_end(c, &err);
    else
        change_succeed(w, c);
    return false;
}

static void run_queue(struct writer *w)
{
    while (w->writing == NULL && w->first != NULL) {
        struct change *c = w->first;
        w->first = c->next;
        if (w->first == NULL)
            w->end = &w->first;
        if (begin(w, c))
            w->writing = c;
    }
}

void writer_put(struct writer *w, struct change *c)
{
    *w->end = c;
    w->end = &c->next;
    run_queue(w);
}

void writer_written(struct writer *w, const struct error *err)
{
    struct change *c = w->writing;
    assert(c != NULL);
    w->writing = NULL;
    if (err == NULL)
        w->env.publish(w->env.ctx, c->to);
    forget_states(c);
    if (err == NULL)
        change_succeed(w, c);
    else
        change_end(c, err);
    run_queue(w);
}
