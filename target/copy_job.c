#include "target/copy_job.h"

#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "io/pool.h"
#include "target/job_names.h"
#include "target/job_stop.h"
#include "target/job_tally.h"
#include "target/object_copy.h"
#include "target/target.h"

enum { PAUSE_FIRST_MS = 50, PAUSE_MAX_MS = 2000 };

struct copy_job {
    struct target *target;
    struct job *job;
    struct objects_spec *spec;
    struct objects_plan plan;
    struct job_tally *tally;
    struct object_copier *copier;
    struct job_stop stop;
};

static void job_free(void *self)
{
    struct copy_job *j = self;
    object_copier_free(j->copier);
    job_tally_free(j->tally);
    objects_spec_free(j->spec);
    job_unref(j->job);
    job_stop_done(&j->stop);
    free(j);
}

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    struct copy_job *j = xcalloc(1, sizeof *j);
    j->target = host;
    j->job = job_ref(job);
    j->tally = job_tally_new("copied");
    j->copier = object_copier_new(host);
    job_stop_init(&j->stop);
    int code = objects_spec_parse(job->kind, job->spec, &j->spec, err);
    if (code == 0)
        code = objects_plan_parse(job->plan, &j->plan, err);
    if (code != 0) {
        job_free(j);
        return error_wrap(err, "job '%s'", job->id);
    }
    *self = j;
    return 0;
}

/* --- one object ---------------------------------------------------------------------------------
 */

/* Within one bucket, what came after the job may be a copy of its own. */
static bool is_meant(const struct copy_job *j, const struct attr *a)
{
    return j->plan.input_bucket_id != j->plan.output_bucket_id ||
           !version_is_after(&a->version, j->plan.term, j->plan.version);
}

static int try_copy(struct copy_job *j, const char *name, const char *new_name, uint64_t *bytes,
                    struct error *err)
{
    struct object o;
    int code = object_open(j->target->store, j->plan.input_bucket_id, name, &o, err);
    if (code != 0)
        return code;
    const struct object_copy copy = {.from = &o,
                                     .bucket_id = j->plan.output_bucket_id,
                                     .name = new_name,
                                     .has_rule = true,
                                     .term = j->plan.term,
                                     .version = j->plan.version};
    *bytes = o.attr.size;
    if (is_meant(j, &o.attr))
        code = object_copy(j->copier, &copy, err);
    else
        code = error_set(err, E_PRECONDITION, "it came after the job");
    close(o.fd);
    return code;
}

static void count(struct copy_job *j, const char *name, uint64_t bytes, const struct error *err)
{
    switch (err->code) {
    case 0:
        job_tally_done(j->tally, bytes);
        break;
    case E_NOT_MODIFIED:
    case E_PRECONDITION:
        job_tally_skipped(j->tally);
        break;
    case E_OBJECT_NOT_FOUND:
        job_tally_missing(j->tally);
        break;
    case E_CHECKSUM:
        metric_add(metric_get(M_checksum_errors_total, NULL), 1);
        job_tally_fail(j->tally, name, err);
        break;
    default:
        job_tally_fail(j->tally, name, err);
    }
}

/* Until it is done, or was refused for good, or the job ends. */
static void copy_one(struct copy_job *j, const char *name)
{
    _cleanup_free_ char *new_name = xprintf("%s%s", j->spec->prepend, name);
    uint64_t bytes = 0;
    uint64_t pause_ms = PAUSE_FIRST_MS;
    for (;;) {
        struct error err = ERROR_INIT;
        int code = try_copy(j, name, new_name, &bytes, &err);
        if (j->stop.wanted && code != 0)
            return;
        if (!object_copy_may_pass(code)) {
            count(j, name, bytes, &err);
            return;
        }
        job_tally_wait(j->tally, &err);
        if (!job_stop_pause(&j->stop, pause_ms))
            return;
        job_tally_wait(j->tally, NULL);
        pause_ms = 2 * pause_ms < PAUSE_MAX_MS ? 2 * pause_ms : PAUSE_MAX_MS;
    }
}

/* --- all of them --------------------------------------------------------------------------------
 */

struct batch {
    struct copy_job *job;
    const char *const *names;
};

static int copy_nth(void *ctx, size_t i, struct error *err)
{
    const struct batch *b = ctx;
    struct copy_job *j = b->job;
    if (j->stop.wanted)
        return error_set(err, E_ABORTED, "job '%s' was stopped", j->job->id);
    copy_one(j, b->names[i]);
    return job_tally_hopeless(j->tally) ? job_tally_end(j->tally, err) : 0;
}

static int copy_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    struct copy_job *j = ctx;
    struct batch b = {.job = j, .names = names};
    return parallel_for("copy", (unsigned)j->target->params.copy_parallel, n, copy_nth, &b, err);
}

static int job_run(void *self, struct error *err)
{
    struct copy_job *j = self;
    const struct job_names names = {.store = j->target->store,
                                    .state = j->target->state,
                                    .self = j->target->id,
                                    .spec = j->spec,
                                    .bucket_id = j->plan.input_bucket_id,
                                    .job_id = j->job->id,
                                    .stop = &j->stop.wanted};
    uint64_t total;
    int code = job_names_count(&names, &total, err);
    if (code != 0)
        return code;
    job_tally_expect(j->tally, total);
    code = job_names_each(&names, copy_batch, j, err);
    return code != 0 ? code : job_tally_end(j->tally, err);
}

static void job_stop(void *self)
{
    struct copy_job *j = self;
    job_stop_now(&j->stop);
    object_copier_stop(j->copier);
}

/* --- the rest: there is nothing to prepare, to make visible or to undo --------------------------
 */

static int nothing(void *self, struct error *err)
{
    (void)self;
    (void)err;
    return 0;
}

static json_t *job_status(void *self)
{
    const struct copy_job *j = self;
    return job_tally_status(j->tally);
}

const struct xaction_ops copy_xaction = {
    .kind = "copy",
    .open = job_open,
    .prepare = nothing,
    .run = job_run,
    .stop = job_stop,
    .commit = nothing,
    .undo = nothing,
    .status = job_status,
    .free = job_free,
};
