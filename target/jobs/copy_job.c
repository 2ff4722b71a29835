/* The job `copy` on a target: each object that it means and that is here goes to the owner of its
 * new name (object_copy.h), several at once.  What has the same bytes already is passed over, so
 * that doing it again costs little; an owner that does not answer is waited for. */
#include "common/mem.h"
#include "target/cold/names.h"
#include "target/copies/object_bytes.h"
#include "target/copies/object_copy.h"
#include "target/jobs/job_source.h"
#include "target/jobs/objects_walk.h"

/* --- one object ------------------------------------------------------------------------------- */

struct copying {
    struct job_base *job;
    const char *new_name;
    uint64_t bytes;
};

static int copy_open(void *ctx, const struct object *o, struct error *err)
{
    struct copying *c = ctx;
    struct job_base *j = c->job;
    struct attr shown = {0};
    const struct object_copy copy = {.from = o,
                                     .from_bucket_id = j->plan.input_bucket_id,
                                     .bucket_id = j->plan.output_bucket_id,
                                     .name = c->new_name,
                                     .has_rule = true,
                                     .term = j->plan.term,
                                     .version = j->plan.version};
    int code = object_bytes_attr(o, &shown, err);
    c->bytes = shown.size;
    return code != 0 ? code : object_copy(j->copier, &copy, err);
}

static void count(struct job_base *j, const char *name, uint64_t bytes, const struct error *err)
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
        job_tally_missed(j->tally, name, "it does not exist");
        break;
    case E_CHECKSUM:
        metric_add(metric_get(M_checksum_errors_total, NULL), 1);
        job_tally_fail(j->tally, name, err);
        break;
    default:
        job_tally_fail(j->tally, name, err);
    }
}

static void copy_one(void *ctx, const char *name)
{
    struct job_base *j = ctx;
    _cleanup_free_ char *new_name = xprintf("%s%s", j->spec->prepend, name);
    struct copying c = {.job = j, .new_name = new_name};
    struct error err = ERROR_INIT;
    if (job_source_work(j, name, copy_open, &c, &err) != E_ABORTED)
        count(j, name, c.bytes, &err);
}

/* --- all of them ------------------------------------------------------------------------------ */

static int copy_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    struct job_base *j = ctx;
    unsigned width = (unsigned)param_live(j->target->params.copy_parallel);
    return objects_walk_batch(j, width, names, n, copy_one, j, err);
}

static int run(void *self, struct error *err)
{
    struct job_base *j = self;
    if (j->spec->which == OBJECTS_PREFIX && cold_names_can(j->target, j->plan.input_bucket_id))
        return objects_walk_listed(j, false, copy_batch, j, err);
    return objects_walk(j, copy_batch, j, err);
}

const struct xaction_ops copy_xaction =
    JOB_WORK("copy", .size = sizeof(struct job_base), .done_word = "copied", .over_objects = true,
             .sends = true, .run = run);
