#include "proxy/jobs/scrub_job.h"

#include <string.h>

#include "cluster/settings.h"
#include "common/buf.h"
#include "common/mem.h"
#include "common/rng.h"

bool scrub_job_is(const struct job *job)
{
    return strcmp(job->kind, "scrub") == 0;
}

static const struct job *last_of(const struct jobs *jobs)
{
    const struct job *last = NULL;
    for (size_t i = 0; i < jobs->count; i++) {
        const struct job *job = jobs->jobs[i];
        if (scrub_job_is(job) && (last == NULL || job->created_ms >= last->created_ms))
            last = job;
    }
    return last;
}

bool scrub_job_is_last(const struct jobs *jobs, const struct job *job)
{
    return last_of(jobs) == job;
}

/* Also those in maintenance, which have objects still. */
static void add_targets(const struct cluster_state *s, struct job *job, struct buf *left_out)
{
    job->participants = xcalloc(s->smap.count, sizeof *job->participants);
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->role != NODE_TARGET)
            continue;
        if (n->state == NODE_UNREACHABLE)
            buf_printf(left_out, "%s%s", left_out->len > 0 ? ", " : "without ", n->id);
        else
            job->participants[job->participant_count++] = xstrdup(n->id);
    }
}

int scrub_job_make(const struct cluster_state *s, int64_t wall_ms, struct job **out,
                   struct error *err)
{
    char id[4 + 11];
    _cleanup_(buf_done)
    struct buf left_out = BUF_INIT;
    const struct job *last = last_of(&s->jobs);
    if (last != NULL && !job_ended(last->state))
        return error_set(err, E_JOB_STATE, "job '%s' is a scrub that has not ended", last->id);
    random_id("scr-", id);
    struct job *job = job_new(id, "scrub");
    job->state = JOB_QUEUED;
    job->created_ms = wall_ms;
    job->spec = json_object();
    job->plan = json_object();
    add_targets(s, job, &left_out);
    job->description = xstrdup(buf_str(&left_out));
    if (job->participant_count > 0) {
        *out = job;
        return 0;
    }
    job_unref(job);
    return error_set(err, E_NO_TARGETS, "the cluster has no target that answers");
}

int scrub_job_fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    for (size_t i = 0; i < job->participant_count; i++) {
        if (smap_node(&s->smap, job->participants[i]) == NULL)
            return error_set(err, E_STALE_MAP, "target '%s' is gone; the next scrub is without it",
                             job->participants[i]);
    }
    return 0;
}

static bool oldest_bucket(const struct cluster_state *s, int64_t *created_ms)
{
    for (size_t i = 0; i < s->bmd.count; i++) {
        if (i == 0 || s->bmd.buckets[i].created_ms < *created_ms)
            *created_ms = s->bmd.buckets[i].created_ms;
    }
    return s->bmd.count > 0;
}

static bool is_due(const struct cluster_state *s, int64_t wall_ms)
{
    struct cluster_settings settings;
    int64_t since_ms;
    const struct job *last = last_of(&s->jobs);
    cluster_settings_get(&s->config, &settings);
    if (settings.scrub_interval == 0 || (last != NULL && !job_ended(last->state)))
        return false;
    if (last != NULL && last->state == JOB_FAILED && wall_ms - last->ended_ms >= SCRUB_RETRY_MS)
        return true;
    if (last != NULL)
        since_ms = last->created_ms;
    else if (!oldest_bucket(s, &since_ms))
        return false;
    return wall_ms - since_ms >= (int64_t)settings.scrub_interval;
}

int64_t scrub_age_ms(const struct cluster_state *s, int64_t wall_ms)
{
    const struct job *newest = NULL;
    int64_t since_ms;
    for (size_t i = 0; i < s->jobs.count; i++) {
        const struct job *job = s->jobs.jobs[i];
        bool counts = scrub_job_is(job) && (job->state == JOB_FINISHED || !job_ended(job->state));
        if (counts && (newest == NULL || job->created_ms >= newest->created_ms))
            newest = job;
    }
    if (newest != NULL)
        since_ms = newest->created_ms;
    else if (!oldest_bucket(s, &since_ms))
        return 0;
    return wall_ms > since_ms ? wall_ms - since_ms : 0;
}

bool scrub_next(const struct cluster_state *s, int64_t wall_ms, struct command *cmd)
{
    struct job *job;
    *cmd = (struct command){.wall_ms = wall_ms};
    if (!is_due(s, wall_ms) || scrub_job_make(s, wall_ms, &job, NULL) != 0)
        return false;
    cmd->kind = CMD_JOB_CREATE;
    cmd->name = job->id;
    cmd->job = job;
    return true;
}
