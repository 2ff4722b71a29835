/* The job `delete` on a target: tombstones for the objects that it means (delete_queue.h).  What
 * was written under a later state of the cluster than the job was made from stays.  Doing it again
 * finds what was deleted gone. */
#include "target/jobs/delete_queue.h"
#include "target/jobs/objects_walk.h"

static int check(void *ctx, const char *name, const struct attr *current, struct error *err)
{
    const struct job_base *job = ctx;
    if (current == NULL) /* it is damaged or lost: there is nothing to be kept */
        return 0;
    if (!version_is_after(&current->version, job->plan.term, job->plan.version))
        return 0;
    return error_set(err, E_PRECONDITION, "object '%s' was put after the job", name);
}

static int delete_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    struct delete_queue *q = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(q->job->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, q->bucket_id);
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed while the job ran");
    for (size_t i = 0; i < n && !q->job->stop.wanted; i++)
        delete_queue_add(q, b, names[i]);
    delete_queue_drain(q);
    return job_tally_hopeless(q->job->tally) ? job_tally_end(q->job->tally, err) : 0;
}

static int run(void *self, struct error *err)
{
    struct job_base *job = self;
    struct delete_queue q;
    delete_queue_init(&q, job, job->plan.input_bucket_id, check, job);
    int code = objects_walk(job, delete_batch, &q, err);
    delete_queue_done(&q);
    return code;
}

const struct xaction_ops delete_xaction =
    JOB_WORK("delete", .size = sizeof(struct job_base), .done_word = "deleted",
             .over_objects = true, .run = run);
