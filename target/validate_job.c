#include "target/validate_job.h"

#include "common/jsonx.h"
#include "common/mem.h"
#include "target/target.h"
#include "target/validate.h"

struct validate_job {
    struct target *target;
    struct validate_report *report;
    struct job_stop stop;
    bool checksums;
    uint64_t rate_bytes_s;
};

static void job_free(void *self)
{
    struct validate_job *v = self;
    validate_report_free(v->report);
    job_stop_done(&v->stop);
    free(v);
}

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    struct validate_job *v = xcalloc(1, sizeof *v);
    v->target = host;
    v->report = validate_report_new();
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

/* Before its directories go the state has it no more. */
static bool bucket_lives(void *ctx, uint64_t bucket_id)
{
    const struct target *t = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    return bmd_bucket_by_id(&s->bmd, bucket_id) != NULL;
}

static int job_run(void *self, struct error *err)
{
    struct validate_job *v = self;
    const struct validate_config config = {.store = v->target->store,
                                           .bucket_lives = bucket_lives,
                                           .ctx = v->target,
                                           .checksums = v->checksums,
                                           .rate_bytes_s = v->rate_bytes_s};
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

const struct xaction_ops validate_xaction = {
    .kind = "validate",
    .open = job_open,
    .prepare = xaction_nothing,
    .run = job_run,
    .stop = job_stop,
    .commit = xaction_nothing,
    .undo = xaction_nothing,
    .status = job_status,
    .free = job_free,
};
