#include "proxy/jobs/trim_copies_job.h"

#include <stdlib.h>

#include "cluster/placement/copies_reduce.h"
#include "common/mem.h"
#include "proxy/jobs/job_make.h"
#include "proxy/jobs/standing_job.h"

static const char kind[] = "mirror";

/* Is it for this bucket, as it was lowered last, by the present map? */
static bool is_present(const struct job *job, const struct cluster_state *s, const struct bucket *b)
{
    struct copies_reduce_fence f;
    return standing_is(job, kind) && copies_reduce_fence_from_json(job->spec, &f, NULL) == 0 &&
           f.bucket_id == b->id && copies_reduce_check_fence(s, &f, NULL) == 0;
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

/* Whose turn it is: of those that may end the one that has waited longest for a job. */
static const struct bucket *find_next(const struct cluster_state *s, bool by_hand, int64_t wall_ms)
{
    const struct bucket *next = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < s->bmd.count; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        size_t rank;
        const struct job *last = last_of(s, b, &rank);
        if (!copies_reduce_may_end(s, b) || rank >= least ||
            !(by_hand || standing_may_follow(last, TRIM_RETRY_MS, wall_ms)))
            continue;
        next = b;
        least = rank;
    }
    return next;
}

static int make_for(const struct cluster_state *s, const struct bucket *b, int64_t wall_ms,
                    struct job **out, struct error *err)
{
    int code = job_make(s, kind, wall_ms, out, err);
    if (code != 0)
        return code;
    const struct copies_reduce_fence fence = copies_reduce_fence(s, b);
    json_decref((*out)->spec);
    (*out)->spec = copies_reduce_fence_to_json(&fence);
    free((*out)->description);
    (*out)->description = xprintf("bucket '%s'", b->name);
    return 0;
}

static int make(const struct cluster_state *s, int64_t wall_ms, struct job **out, struct error *err)
{
    const struct bucket *b = find_next(s, true, wall_ms);
    int code = standing_check_none(s, kind, err);
    if (code != 0)
        return code;
    if (copies_reduce_latest(&s->bmd) == 0)
        return error_set(err, E_INVALID,
                         "no bucket's copies were lowered: there is nothing to be removed");
    if (b == NULL)
        return error_set(err, E_NODE_STATE,
                         "a target is away, or to be repaired first, or objects are being moved or "
                         "copied to their owners");
    return make_for(s, b, wall_ms, out, err);
}

static int fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    struct copies_reduce_fence fence;
    int code = copies_reduce_fence_from_json(job->spec, &fence, err);
    if (code == 0)
        code = copies_reduce_check_fence(s, &fence, err);
    return code != 0 ? error_recode(err, E_ABORTED, "overtaken") : 0;
}

static const struct bucket *find_through(const struct cluster_state *s)
{
    for (size_t i = 0; i < s->bmd.count; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        size_t rank;
        const struct job *last = last_of(s, b, &rank);
        if (copies_reduce_may_end(s, b) && last != NULL && last->state == JOB_FINISHED)
            return b;
    }
    return NULL;
}

static bool next(const struct cluster_state *s, const struct standing_now *now, struct command *cmd)
{
    struct job *job;
    *cmd = (struct command){.wall_ms = now->wall_ms};
    const struct bucket *b = find_through(s);
    if (b != NULL) {
        cmd->kind = CMD_COPIES_LOWERED;
        cmd->fence = copies_reduce_fence(s, b);
        return true;
    }
    b = standing_unfinished(s, kind) == NULL ? find_next(s, false, now->wall_ms) : NULL;
    if (b == NULL || make_for(s, b, now->wall_ms, &job, NULL) != 0)
        return false;
    return standing_create(job, now->wall_ms, cmd);
}

const struct job_kind trim_copies_kind = {
    .name = kind,
    .make = make,
    .fits = fits,
    .next = next,
};
