#include "proxy/mirror_job.h"

#include <string.h>

#include "cluster/lower.h"
#include "proxy/job_make.h"

static uint64_t number_of(const struct job *job, const char *field)
{
    return (uint64_t)json_integer_value(json_object_get(job->spec, field));
}

/* Is it of the present fence? */
static bool is_present(const struct job *job, const struct cluster_state *s)
{
    return number_of(job, "lagged") == s->smap.lagged &&
           number_of(job, "placed") == s->smap.placed &&
           number_of(job, "lowered") == lower_fence(&s->bmd);
}

static const struct job *last_of_present(const struct cluster_state *s,
                                         const struct job **unfinished)
{
    const struct job *last = NULL;
    *unfinished = NULL;
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        if (strcmp(job->kind, "mirror") != 0)
            continue;
        if (!job_ended(job->state))
            *unfinished = job;
        if (is_present(job, s))
            last = job;
    }
    return last;
}

static const struct bucket *find_lowered(const struct cluster_state *s)
{
    for (size_t i = 0; i < s->bmd.count; i++) {
        if (lower_may_end(s, &s->bmd.buckets[i]))
            return &s->bmd.buckets[i];
    }
    return NULL;
}

int mirror_job_make(const struct cluster_state *s, int64_t wall_ms, struct job **out,
                    struct error *err)
{
    const struct job *unfinished;
    (void)last_of_present(s, &unfinished);
    if (unfinished != NULL)
        return error_set(err, E_JOB_STATE, "job '%s' is a mirror that has not ended",
                         unfinished->id);
    if (lower_fence(&s->bmd) == 0)
        return error_set(err, E_INVALID,
                         "no bucket's copies were lowered: there is nothing to be removed");
    if (find_lowered(s) == NULL)
        return error_set(err, E_NODE_STATE,
                         "a target is away, or to be repaired first, or objects are being moved or "
                         "copied to their owners");
    int code = job_make(s, "mirror", wall_ms, out, err);
    if (code != 0)
        return code;
    json_decref((*out)->spec);
    (*out)->spec =
        json_pack("{s:I, s:I, s:I}", "lagged", (json_int_t)s->smap.lagged, "placed",
                  (json_int_t)s->smap.placed, "lowered", (json_int_t)lower_fence(&s->bmd));
    return 0;
}

int mirror_job_fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    if (is_present(job, s))
        return 0;
    return error_set(err, E_ABORTED,
                     "a target has fallen behind or come back meanwhile, or owners or copies have "
                     "changed; another one follows");
}

/* Not after one for this fence was aborted by hand; after a failed one when some time has passed.
 */
static bool is_wanted(const struct job *last, int64_t wall_ms)
{
    if (last == NULL || last->state != JOB_FAILED)
        return last == NULL;
    /* One that ended later than now did so by the clock of another primary. */
    int64_t age_ms = wall_ms - last->ended_ms;
    return age_ms < 0 || age_ms >= MIRROR_RETRY_MS;
}

bool mirror_next(const struct cluster_state *s, int64_t wall_ms, struct command *cmd)
{
    const struct job *unfinished;
    struct job *job;
    *cmd = (struct command){.wall_ms = wall_ms,
                            .lagged = s->smap.lagged,
                            .placed = s->smap.placed,
                            .lowered = lower_fence(&s->bmd)};
    if (find_lowered(s) == NULL)
        return false;
    const struct job *last = last_of_present(s, &unfinished);
    if (last != NULL && last->state == JOB_FINISHED) {
        cmd->kind = CMD_COPIES_LOWERED;
        return true;
    }
    if (unfinished != NULL || !is_wanted(last, wall_ms) ||
        mirror_job_make(s, wall_ms, &job, NULL) != 0)
        return false;
    cmd->kind = CMD_JOB_CREATE;
    cmd->name = job->id;
    cmd->job = job;
    return true;
}
