/* A job's hidden output on all owners of its name, in a bucket with several copies.
 *
 * Who makes it has it first, hidden and whole; then every other owner gets it, with its version and
 * hidden by the same mark, on the disk before the reply.  So the decision to commit the job makes
 * the copies visible as it makes one: each owner by itself, whoever dies then.
 *
 *   PUT    /v1/objects/…, Dfc-Copy: move, Dfc-Job, Dfc-Attempt    hidden here, too; in place of
 *                                                                 what the job had hidden before
 *   DELETE /v1/hidden/…?job=&attempt=                             what it has hidden goes
 *
 * Both are refused (E_JOB_NOT_FOUND) where the job does not run, or in another attempt: what comes
 * late changes nothing.
 *
 * An owner that cannot be reached is no reason to leave it out: E_NET, by which a job that is done
 * again begins again (xaction/controller.h).  One that the job goes on without is left out, also
 * where it is back: it has missed a write, and a repair brings it (cluster/placement/lag.h).
 *
 * Any thread that may wait. */
#pragma once

#include <stdatomic.h>

#include "cluster/documents/state.h"
#include "net/http/server.h"

struct attr;
struct target;

struct hidden_job {
    struct target *target;
    uint64_t bucket_id;
    const struct job *job;
    const atomic_bool *stopped; /* ends it with E_ABORTED */
};

/* fn(n) says of another owner whether it is meant; NULL: all are. */
struct hidden_choice {
    bool (*fn)(void *ctx, const struct node *n);
    void *ctx;
};
/* What is hidden here is on all other owners that are meant. */
int hidden_send(const struct hidden_job *h, const char *name, const struct hidden_choice *choice,
                struct error *err);
/* None of the other owners has anything hidden of the name. */
int hidden_drop(const struct hidden_job *h, const char *name, struct error *err);

/* The condition of a hidden copy that comes; ctx is the request. */
int hidden_check(void *ctx, const struct attr *current, struct error *err);

extern const struct http_route hidden_routes[];
