/* The quotas of buckets on this target: who may still write, what the keepalives say, and when it
 * is counted.  cluster/props/quota.h judges, quota_ledger.h adds up,
 * quota_count.h counts.
 *
 *   keepalive ──▶ {"quotas": [{"bucket", "objects", "bytes"}]}            of buckets counted here
 *   reply     ◀── {"quotas": [{"bucket", "objects", "bytes", "yours": {"objects", "bytes"}}]}
 *                 what the other targets have, and what the primary heard last from this one;
 *                 no field while a primary that has just begun has not heard every target
 *
 * Either has QUOTAS_AT_ONCE buckets at most, in turn: a keepalive that is too large would be
 * refused, and with it the target.
 *
 * Quotas are soft.  A bucket may exceed its quota by what arrives within two keepalives, by what
 * targets cut off from the primary take, and by the outputs that jobs are making at that time.
 * Counts take at most a twentieth of the time: in large buckets, the room that deletions free is
 * known some seconds later.
 *
 * Any thread, but for the two calls of the control loop. */
#pragma once

#include <jansson.h>

#include "cluster/documents/bmd.h"
#include "target/node/quota_ledger.h"
#include "target/store/object.h"

struct quotas;
struct target;

struct quotas *quotas_new(struct target *t);
void quotas_stop(struct quotas *q); /* ends a count; before t->workers end; NULL is fine */
void quotas_free(struct quotas *q); /* after t->workers have ended */

/* In the control loop: what a keepalive says, or NULL: no bucket has a quota.  Begins a count when
 * one is due. */
json_t *quotas_report(struct quotas *q);
/* In the control loop: the field of the reply, or NULL. */
int quotas_hear(struct quotas *q, json_t *list, struct error *err);
/* What this target has of the bucket. */
struct quota_amount quotas_own(struct quotas *q, uint64_t bucket_id);

/* --- one write -------------------------------------------------------------------------------- */

/* A write that counts from its begin to its end.  All zero is one that does not count. */
struct quota_claim {
    struct quotas *quotas;
    const struct bucket *bucket; /* lives longer than the claim */
    bool replaces;
    uint64_t old_bytes, bytes;  /* of the object that it replaces; that have come */
    bool grows;                 /* its size was not announced */
    struct quota_amount growth; /* taken so far */
};

/* E_QUOTA_EXCEEDED, with what to do.  `size` may be OBJECT_SIZE_UNKNOWN: then quota_claim_more()
 * follows.  `earlier`: what an earlier owner has of the name, or NULL. */
int quota_claim_begin(struct quotas *q, const struct bucket *b, const char *name, uint64_t size,
                      const struct object_held *earlier, struct quota_claim *out,
                      struct error *err);
/* So many bytes more have come.  Nothing where the size was announced. */
int quota_claim_more(struct quota_claim *c, uint64_t bytes, struct error *err);
/* The write has ended.  One that failed counts until the next count, too. */
void quota_claim_end(struct quota_claim *c);
/* A write of this size, from begin to end: for jobs, whose outputs count from their begin.  One of
 * OBJECT_SIZE_UNKNOWN counts as a byte. */
int quota_take(struct quotas *q, const struct bucket *b, const char *name, uint64_t size,
               struct error *err);
