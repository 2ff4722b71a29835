#include "proxy/jobs/scrub_job.h"

#include "cluster/documents/settings.h"
#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/jobs/job_make.h"
#include "proxy/jobs/standing_job.h"

static const char kind[] = "scrub";

static const struct job *last_of(const struct jobs *jobs)
{
    const struct job *last = NULL;
    for (size_t i = 0; i < jobs->count; i++) {
        const struct job *job = jobs->jobs[i];
        if (standing_is(job, kind) && (last == NULL || job->created_ms >= last->created_ms))
            last = job;
    }
    return last;
}

bool scrub_job_is_last(const struct jobs *jobs, const struct job *job)
{
    return last_of(jobs) == job;
}

/* Also those in maintenance, which have objects still. */
static bool takes(const struct node *n)
{
    return n->state != NODE_UNREACHABLE;
}

static char *describe(const struct cluster_state *s)
{
    _cleanup_(buf_done)
    struct buf left_out = BUF_INIT;
    for (size_t i = 0; i < s->smap.count; i++) {
        const struct node *n = &s->smap.nodes[i];
        if (n->role == NODE_TARGET && !takes(n))
            buf_printf(&left_out, "%s%s", left_out.len > 0 ? ", " : "without ", n->id);
    }
    return xstrdup(buf_str(&left_out));
}

static int make(const struct cluster_state *s, int64_t wall_ms, struct job **out, struct error *err)
{
    int code = standing_check_none(s, kind, err);
    if (code != 0)
        return code;
    struct job *job = standing_new(kind, wall_ms, json_object());
    standing_take(s, takes, job);
    job->description = describe(s);
    if (job->participant_count > 0) {
        *out = job;
        return 0;
    }
    job_unref(job);
    return error_set(err, E_NO_TARGETS, "the cluster has no target that answers");
}

static int fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    return standing_check_targets(job, s, "the next scrub is without it", err);
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
        bool counts =
            standing_is(job, kind) && (job->state == JOB_FINISHED || !job_ended(job->state));
        if (counts && (newest == NULL || job->created_ms >= newest->created_ms))
            newest = job;
    }
    if (newest != NULL)
        since_ms = newest->created_ms;
    else if (!oldest_bucket(s, &since_ms))
        return 0;
    return wall_ms > since_ms ? wall_ms - since_ms : 0;
}

static bool next(const struct cluster_state *s, const struct standing_now *now, struct command *cmd)
{
    struct job *job;
    if (!is_due(s, now->wall_ms) || make(s, now->wall_ms, &job, NULL) != 0)
        return false;
    return standing_create(job, now->wall_ms, cmd);
}

/* {"rate": bytes a second at each mountpath, 0: no limit}; without, the setting scrub_rate is in
 * force. */
static int spec(json_t *value, json_t **out, struct error *err)
{
    static const char *const fields[] = {"rate", NULL};
    uint64_t rate = 0;
    const json_t *asked = json_object_get(value, "rate");
    bool given = asked != NULL && !json_is_null(asked);
    int code = json_only_fields(value, "value", fields, err);
    if (code == 0)
        code = job_make_rate(value, &rate, err);
    if (code == 0)
        *out = given ? json_pack("{s:I}", "rate_bytes_s", (json_int_t)rate) : json_object();
    return code;
}

const struct job_kind scrub_kind = {
    .name = kind,
    .load = JOB_BESIDE,
    .outlasts_members = true,
    .make = make,
    .spec = spec,
    .fits = fits,
    .next = next,
};
