/* Validation and scrub as background jobs: target/scrub/validate.h does both.
 *
 *   validate   {"checksums": bool, "rate_bytes_s": n}
 *   scrub      {"rate_bytes_s": n}: or without, as the cluster's setting scrub_rate says, also when
 *              it is changed meanwhile */
#include "cluster/documents/settings.h"
#include "common/jsonx.h"
#include "target/copies/repair_wanted.h"
#include "target/format/ec_manifest.h"
#include "target/jobs/job_base.h"
#include "target/scrub/validate.h"

struct validate_job {
    struct job_base base;
    struct validate_report *report;
    bool scrub;
    bool checksums;
    bool rate_is_given;
    uint64_t rate_bytes_s;
};

static int validate_begin(void *self, struct error *err)
{
    struct validate_job *v = self;
    json_t *spec = v->base.job->spec;
    v->report = validate_report_new();
    v->checksums = v->scrub;
    v->rate_is_given = !v->scrub || json_object_get(spec, "rate_bytes_s") != NULL;
    int code = json_get_bool(spec, "spec", "checksums", &v->checksums, err);
    return code != 0 ? code : json_get_u64(spec, "spec", "rate_bytes_s", &v->rate_bytes_s, err);
}

static int scrub_begin(void *self, struct error *err)
{
    struct validate_job *v = self;
    v->scrub = true;
    return validate_begin(self, err);
}

static void end(void *self)
{
    struct validate_job *v = self;
    validate_report_free(v->report);
}

/* Before its directories go the state has it no more. */
static bool bucket_lives(void *ctx, uint64_t bucket_id)
{
    const struct validate_job *v = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(v->base.target->state);
    return bmd_bucket_by_id(&s->bmd, ec_bucket_of_slices(bucket_id)) != NULL;
}

static uint64_t rate_of(void *ctx)
{
    const struct validate_job *v = ctx;
    struct cluster_settings settings;
    if (v->rate_is_given)
        return v->rate_bytes_s;
    _cleanup_state_ const struct cluster_state *s = state_current(v->base.target->state);
    cluster_settings_get(&s->config, &settings);
    return settings.scrub_rate;
}

static void want_repair(void *ctx, uint64_t bucket_id, const char *name)
{
    const struct validate_job *v = ctx;
    repair_wanted(v->base.target, bucket_id, name);
}

static int run(void *self, struct error *err)
{
    struct validate_job *v = self;
    const struct validate_scrub scrub = {.job_id = v->base.job->id,
                                         .save_ms = v->base.target->params.scrub_save_interval,
                                         .repair_wanted = want_repair};
    const struct validate_config config = {.store = v->base.target->store,
                                           .bucket_lives = bucket_lives,
                                           .rate_bytes_s = rate_of,
                                           .ctx = v,
                                           .checksums = v->checksums,
                                           .scrub = v->scrub ? &scrub : NULL};
    return validate_run(&config, &v->base.stop, v->report, err);
}

static json_t *status(void *self)
{
    const struct validate_job *v = self;
    return validate_report_status(v->report);
}

const struct xaction_ops validate_xaction =
    JOB_WORK("validate", .size = sizeof(struct validate_job), .begin = validate_begin, .run = run,
             .status = status, .end = end);

const struct xaction_ops scrub_xaction =
    JOB_WORK("scrub", .size = sizeof(struct validate_job), .begin = scrub_begin, .run = run,
             .status = status, .end = end);
