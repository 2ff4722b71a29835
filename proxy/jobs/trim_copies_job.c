#include "proxy/jobs/trim_copies_job.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/lower.h"
#include "common/mem.h"
#include "proxy/jobs/job_make.h"

/* Is it for this bucket, as it was lowered last, by the present map? */
static bool is_present(const struct job *job, const struct cluster_state *s, const struct bucket *b)
{
    struct lower_fence f;
    return strcmp(job->kind, "mirror") == 0 && lower_fence_from_json(job->spec, &f, NULL) == 0 &&
           f.bucket_id == b->id && lower_check_fence(s, &f, NULL) == 0;
}

/* *rank: how late it was made; 0 where there is none. */
static const struct job *last_of(const struct cluster_state *s, const struct bucket *b,
                                 size_t *rank)
{
    *rank = 0;
    for (size_t i = 0; i < s->jobs.count; i++) {
        if (is_present(s->jobs.jobs[i], s, b))
            *rank = i + 1;
    }
    return *rank > 0 ? s->jobs.jobs[*rank - 1] : NULL;
}

static const struct job *find_unfinished(const struct cluster_state *s)
{
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        if (strcmp(job->kind, "mirror") == 0 && !job_ended(job->state))
            return job;
    }
    return NULL;
}

/* Not after one for this fence was aborted by hand; after a failed one when some time has passed.
 */
static bool is_wanted(const struct job *last, int64_t wall_ms)
{
    if (last == NULL || last->state != JOB_FAILED)
        return last == NULL;
    /* One that ended later than now did so by the clock of another primary. */
    int64_t age_ms = wall_ms - last->ended_ms;
    return age_ms < 0 || age_ms >= TRIM_RETRY_MS;
}

/* Whose turn it is: of those that may end the one that has waited longest for a job. */
static const struct bucket *find_next(const struct cluster_state *s, bool by_hand, int64_t wall_ms)
{
    const struct bucket *next = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < s->bmd.count; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        size_t rank;
        const struct job *last = last_of(s, b, &rank);
        if (!lower_may_end(s, b) || rank >= least || !(by_hand || is_wanted(last, wall_ms)))
            continue;
        next = b;
        least = rank;
    }
    return next;
}

static int make(const struct cluster_state *s, const struct bucket *b, int64_t wall_ms,
                struct job **out, struct error *err)
{
    int code = job_make(s, "mirror", wall_ms, out, err);
    if (code != 0)
        return code;
    const struct lower_fence fence = lower_fence(s, b);
    json_decref((*out)->spec);
    (*out)->spec = lower_fence_to_json(&fence);
    free((*out)->description);
    (*out)->description = xprintf("bucket '%s'", b->name);
    return 0;
}

int trim_copies_job_make(const struct cluster_state *s, int64_t wall_ms, struct job **out,
                         struct error *err)
{
    const struct job *unfinished = find_unfinished(s);
    const struct bucket *b = find_next(s, true, wall_ms);
    if (unfinished != NULL)
        return error_set(err, E_JOB_STATE, "job '%s' is a trim_copies that has not ended",
                         unfinished->id);
    if (lower_latest(&s->bmd) == 0)
        return error_set(err, E_INVALID,
                         "no bucket's copies were lowered: there is nothing to be removed");
    if (b == NULL)
        return error_set(err, E_NODE_STATE,
                         "a target is away, or to be repaired first, or objects are being moved or "
                         "copied to their owners");
    return make(s, b, wall_ms, out, err);
}

int trim_copies_job_fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    struct lower_fence fence;
    int code = lower_fence_from_json(job->spec, &fence, err);
    if (code == 0)
        code = lower_check_fence(s, &fence, err);
    return code != 0 ? error_recode(err, E_ABORTED, "overtaken") : 0;
}

static const struct bucket *find_through(const struct cluster_state *s)
{
    for (size_t i = 0; i < s->bmd.count; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        size_t rank;
        const struct job *last = last_of(s, b, &rank);
        if (lower_may_end(s, b) && last != NULL && last->state == JOB_FINISHED)
            return b;
    }
    return NULL;
}

bool trim_copies_next(const struct cluster_state *s, int64_t wall_ms, struct command *cmd)
{
    struct job *job;
    *cmd = (struct command){.wall_ms = wall_ms};
    const struct bucket *b = find_through(s);
    if (b != NULL) {
        cmd->kind = CMD_COPIES_LOWERED;
        cmd->fence = lower_fence(s, b);
        return true;
    }
    b = find_unfinished(s) == NULL ? find_next(s, false, wall_ms) : NULL;
    if (b == NULL || make(s, b, wall_ms, &job, NULL) != 0)
        return false;
    cmd->kind = CMD_JOB_CREATE;
    cmd->name = job->id;
    cmd->job = job;
    return true;
}
