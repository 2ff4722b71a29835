#include "proxy/jobs/scrub_job.h"

#include "cluster/documents/settings.h"
#include "common/jsonx.h"
#include "proxy/jobs/job_make.h"
#include "proxy/jobs/periodic_job.h"
#include "proxy/jobs/standing_job.h"

static const char kind[] = "scrub";

/* Also those in maintenance, which have objects still. */
static bool takes(const struct node *n)
{
    return n->state != NODE_UNREACHABLE;
}

static int make(const struct cluster_state *s, int64_t wall_ms, struct job **out, struct error *err)
{
    return periodic_make(s, kind, takes, wall_ms, out, err);
}

static int fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    return standing_check_targets(job, s, "the next scrub is without it", err);
}

static bool is_due(const struct cluster_state *s, int64_t wall_ms)
{
    struct cluster_settings settings;
    cluster_settings_get(&s->config, &settings);
    const struct periodic scrub = {
        .kind = kind, .interval_ms = settings.scrub_interval, .retry_ms = SCRUB_RETRY_MS};
    return periodic_is_due(s, &scrub, wall_ms);
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
    else if (!periodic_first_bucket(s, &since_ms))
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
    .periodic = true,
    .make = make,
    .spec = spec,
    .fits = fits,
    .next = next,
};
