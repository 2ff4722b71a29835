/* The primary's single writer: changes stand in a queue; one after the other is applied to the
 * present state, made durable, put in force, and told as done.
 *
 *   writer_put() ─▶ queue ─▶ apply ─▶ write() … writer_written() ─▶ publish() ─▶ settle() ─▶ done()
 *
 * A change that changes nothing is done at once; one that is refused, or is not durable, is told so
 * and is not in force.  The change that begins a term is applied to the state that the metastore
 * had, and is the only one that may be made by who is not the primary yet.
 *
 * Pure: the metastore and the rest of the world come in through the env.  All in one thread, but
 * for change_new(). */
#pragma once

#include <stdbool.h>

#include "proxy/metastore/settle_scope.h"
#include "cluster/command/command.h"

struct change;
struct writer;

struct writer_env {
    void *ctx;
    const struct cluster_state *(*state)(
        void *ctx); /* in force: a reference, for the writer to drop */
    /* May the change be made?  `begins`: it is the one that begins a term. */
    int (*check)(void *ctx, const struct command *cmd, bool begins, struct error *err);
    /* Makes `to` durable (`from` NULL: the first of all); writer_written() comes after return. Both
     * live until then. */
    int (*write)(void *ctx, const struct cluster_state *from, const struct cluster_state *to,
                 struct error *err);
    void (*publish)(void *ctx, const struct cluster_state *s); /* it is durable: put it in force */
    /* fn(arg) when everybody of the scope knows what is in force now; also before return. */
    void (*settle)(void *ctx, enum settle_scope scope, void (*fn)(void *arg), void *arg);
};

typedef void change_done_fn(void *arg, const struct error *err); /* NULL: done */

/* A change to be: the command (copied), or NULL for a barrier, which only waits for its turn. */
struct change *change_new(const struct command *cmd, change_done_fn *done, void *arg);
void change_settles(struct change *c); /* tell of a success only when it is settled */
/* It begins a term upon `base`, of which the metastore has nothing yet where is_first. */
void change_begins(struct change *c, const struct cluster_state *base, bool is_first);

struct writer *writer_new(const struct writer_env *env);
void writer_free(struct writer *w);                  /* idle */
void writer_put(struct writer *w, struct change *c); /* takes it */
/* What write() was told to make durable is so (err NULL), or is not. */
void writer_written(struct writer *w, const struct error *err);
bool writer_is_idle(const struct writer *w);
