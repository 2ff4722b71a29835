/* Deletions of objects of one bucket, many at once, so that they share the waits for the disk:
 *
 *   delete_queue_init ─▶ add, add, … ─▶ drain ─▶ add, … ─▶ drain ─▶ done
 *
 * A deletion takes the way of a DELETE: through all owners where the bucket has several copies,
 * and in the name's turn where a rename has one (store/renames.h).  check() says, under the lock
 * under which the deletion commits, whether the object must stay.
 *
 * The tally gets each outcome: deleted, with the object's size; skipped (E_PRECONDITION); missing;
 * or failed.  What a stop kept from being tried is not counted.  Of several copies, what may pass
 * is tried again for a minute, since another owner may be restarting.
 *
 * A queue belongs to one thread; check() and deleted() run in any, also for several names at once.
 */
#pragma once

#include <pthread.h>

#include "target/jobs/job_base.h"

struct bucket;
struct deletion;

/* 0, E_PRECONDITION: the object stays; or another error.  `current` as in an object_condition: NULL
 * where it is damaged or lost. */
typedef int delete_check_fn(void *ctx, const char *name, const struct attr *current,
                            struct error *err);

struct delete_queue {
    struct job_base *job;
    uint64_t bucket_id;
    delete_check_fn *check;
    void (*deleted)(void *ctx, uint64_t size); /* or NULL: one is */
    void *ctx;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t fewer;
    unsigned under_way;
    struct deletion *again; /* that may pass when they are tried again */
};

void delete_queue_init(struct delete_queue *q, struct job_base *job, uint64_t bucket_id,
                       delete_check_fn *check, void *ctx);
/* Waits while too many are under way.  `b`: the bucket as it is now. */
void delete_queue_add(struct delete_queue *q, const struct bucket *b, const char *name);
/* Waits until all have ended. */
void delete_queue_drain(struct delete_queue *q);
void delete_queue_done(struct delete_queue *q); /* it is drained */
