/* Commits of many threads, written by one: those that wait go into one transaction.
 *
 * An engine brings a function that writes a group.  Where a group fails, each commit is tried
 * alone, so that an error belongs to the commit that causes it. */
#pragma once

#include "common/cleanup.h"
#include "mount/meta/meta.h"

struct group;

/* A commit that waits; on its caller's stack. */
struct group_request {
    struct meta_commit *commit;
    int rc; /* filled by the writer, with *err */
    struct error *err;
    struct group_link *link; /* of group.c */
};

struct group_ops {
    size_t most; /* commits in one transaction */
    /* 0: each request has its own result, 0 or E_PRECONDITION.  E_IN_DOUBT: those whose rc is 0 are
     * so, and nobody tries again.  Another code: nothing was changed; E_NET: the engine is away. */
    int (*write)(void *context, struct group_request *const *requests, size_t count,
                 struct error *err);
};

int group_start(const struct group_ops *ops, void *context, struct group **out, struct error *err);
void group_end(struct group *g); /* no commit may be waiting; NULL is fine */

/* Any thread. */
int group_commit(struct group *g, struct meta_commit *c, struct error *err);
