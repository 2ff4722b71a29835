#include "proxy/jobs/expire_job.h"

#include "cluster/documents/names.h"
#include "cluster/documents/settings.h"
#include "common/jsonx.h"
#include "proxy/jobs/periodic_job.h"
#include "proxy/jobs/standing_job.h"

static const char kind[] = "expire";

static bool takes(const struct node *n)
{
    return n->state == NODE_ACTIVE;
}

static int make(const struct cluster_state *s, int64_t wall_ms, struct job **out, struct error *err)
{
    return periodic_make(s, kind, takes, wall_ms, out, err);
}

static int fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    const char *bucket = json_string_value(json_object_get(job->spec, "bucket"));
    if (bucket != NULL && bmd_bucket(&s->bmd, bucket) == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "bucket '%s' does not exist", bucket);
    return standing_check_targets(job, s, "the next job 'expire' is without it", err);
}

static bool is_wanted(const struct bmd *bmd)
{
    for (size_t i = 0; i < bmd->count; i++) {
        if (bmd->buckets[i].texts.text[BUCKET_LIFECYCLE] != NULL)
            return true;
    }
    return false;
}

static bool next(const struct cluster_state *s, const struct standing_now *now, struct command *cmd)
{
    struct job *job;
    struct cluster_settings settings;
    if (!is_wanted(&s->bmd))
        return false;
    cluster_settings_get(&s->config, &settings);
    const struct periodic expire = {
        .kind = kind, .interval_ms = settings.lifecycle_interval, .retry_ms = EXPIRE_RETRY_MS};
    if (!periodic_is_due(s, &expire, now->wall_ms) || make(s, now->wall_ms, &job, NULL) != 0)
        return false;
    return standing_create(job, now->wall_ms, cmd);
}

/* {"bucket": name}; without, all buckets. */
static int spec(json_t *value, json_t **out, struct error *err)
{
    static const char *const fields[] = {"bucket", NULL};
    const char *bucket = NULL;
    int code = json_only_fields(value, "value", fields, err);
    if (code == 0)
        code = json_get_str(value, "value", "bucket", &bucket, err);
    if (code == 0 && bucket != NULL)
        code = bucket_name_check(bucket, err);
    if (code == 0)
        *out = bucket != NULL ? json_pack("{s:s}", "bucket", bucket) : json_object();
    return code;
}

const struct job_kind expire_kind = {
    .name = kind,
    .load = JOB_BESIDE,
    .outlasts_members = true,
    .make = make,
    .spec = spec,
    .fits = fits,
    .periodic = true,
    .next = next,
};
