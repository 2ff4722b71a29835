#include "target/jobs/validate_job.h"

#include "cluster/documents/settings.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "target/format/ec_manifest.h"
#include "target/copies/repair_wanted.h"
#include "target/node/target.h"
#include "target/scrub/validate.h"

struct validate_job {
    struct target *target;
    struct validate_report *report;
    struct job_stop stop;
    char *scrub_id; /* NULL: it is a validation */
    bool checksums;
    bool rate_is_given;
    uint64_t rate_bytes_s;
};

static void job_free(void *self)
{
    struct validate_job *v = self;
    validate_report_free(v->report);
    job_stop_done(&v->stop);
    free(v->scrub_id);
    free(v);
}

static int open_it(void *host, const struct job *job, bool scrub, void **self, struct error *err)
{
    struct validate_job *v = xcalloc(1, sizeof *v);
    v->target = host;
    v->report = validate_report_new();
    v->scrub_id = scrub ? xstrdup(job->id) : NULL;
    v->checksums = scrub;
    v->rate_is_given = !scrub || json_object_get(job->spec, "rate_bytes_s") != NULL;
    job_stop_init(&v->stop);
    int code = json_get_bool(job->spec, "spec", "checksums", &v->checksums, err);
    if (code == 0)
        code = json_get_u64(job->spec, "spec", "rate_bytes_s", &v->rate_bytes_s, err);
    if (code == 0)
        *self = v;
    else
        job_free(v);
    return code;
}

static int validate_open(void *host, const struct job *job, void **self, struct error *err)
{
    return open_it(host, job, false, self, err);
}

static int scrub_open(void *host, const struct job *job, void **self, struct error *err)
{
    return open_it(host, job, true, self, err);
}

/* Before its directories go the state has it no more. */
static bool bucket_lives(void *ctx, uint64_t bucket_id)
{
    const struct validate_job *v = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(v->target->state);
    return bmd_bucket_by_id(&s->bmd, ec_bucket_of_slices(bucket_id)) != NULL;
}

static uint64_t rate_of(void *ctx)
{
    const struct validate_job *v = ctx;
    struct cluster_settings settings;
    if (v->rate_is_given)
        return v->rate_bytes_s;
    _cleanup_state_ const struct cluster_state *s = state_current(v->target->state);
    cluster_settings_get(&s->config, &settings);
    return settings.scrub_rate;
}

static void want_repair(void *ctx, uint64_t bucket_id, const char *name)
{
    const struct validate_job *v = ctx;
    repair_wanted(v->target, bucket_id, name);
}

static int job_run(void *self, struct error *err)
{
    struct validate_job *v = self;
    const struct validate_scrub scrub = {.job_id = v->scrub_id,
                                         .save_ms = v->target->params.scrub_save_interval,
                                         .repair_wanted = want_repair};
    const struct validate_config config = {.store = v->target->store,
                                           .bucket_lives = bucket_lives,
                                           .rate_bytes_s = rate_of,
                                           .ctx = v,
                                           .checksums = v->checksums,
                                           .scrub = v->scrub_id != NULL ? &scrub : NULL};
    return validate_run(&config, &v->stop, v->report, err);
}

static void job_stop(void *self)
{
    struct validate_job *v = self;
    job_stop_now(&v->stop);
}

static json_t *job_status(void *self)
{
    const struct validate_job *v = self;
    return validate_report_status(v->report);
}

const struct xaction_ops validate_xaction =
    XACTION_WORK("validate", validate_open, job_run, job_stop, job_status, job_free);

const struct xaction_ops scrub_xaction =
    XACTION_WORK("scrub", scrub_open, job_run, job_stop, job_status, job_free);
