#include "target/delete_job.h"

#include <string.h>

#include "common/mem.h"
#include "target/job_names.h"
#include "target/job_stop.h"
#include "target/job_tally.h"
#include "target/target.h"

enum { AT_ONCE = 256 };

struct delete_job {
    struct target *target;
    struct job *job;
    struct objects_spec *spec;
    struct objects_plan plan;
    struct job_tally *tally;
    struct job_stop stop;
    pthread_mutex_t lock; /* of `under_way` */
    pthread_cond_t fewer;
    unsigned under_way;
};

/* One deletion; freed by its end. */
struct deletion {
    struct delete_job *job;
    char *name;
};

static void job_free(void *self)
{
    struct delete_job *d = self;
    job_tally_free(d->tally);
    objects_spec_free(d->spec);
    job_unref(d->job);
    job_stop_done(&d->stop);
    pthread_cond_destroy(&d->fewer);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    struct delete_job *d = xcalloc(1, sizeof *d);
    d->target = host;
    d->job = job_ref(job);
    d->tally = job_tally_new("deleted");
    job_stop_init(&d->stop);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->fewer, NULL);
    int code = objects_spec_parse(job->kind, job->spec, &d->spec, err);
    if (code == 0)
        code = objects_plan_parse(job->plan, &d->plan, err);
    if (code != 0) {
        job_free(d);
        return error_wrap(err, "job '%s'", job->id);
    }
    *self = d;
    return 0;
}

/* --- the work -----------------------------------------------------------------------------------
 */

static int check_age(void *ctx, const struct attr *current, struct error *err)
{
    const struct delete_job *d = ctx;
    if (!version_is_after(&current->version, d->plan.term, d->plan.version))
        return 0;
    return error_set(err, E_PRECONDITION, "object '%s' was put after the job", current->name);
}

static void count(struct delete_job *d, const char *name, const struct error *err)
{
    if (err->code == 0)
        job_tally_done(d->tally, 0);
    else if (err->code == E_OBJECT_NOT_FOUND)
        job_tally_missing(d->tally);
    else if (err->code == E_PRECONDITION)
        job_tally_skipped(d->tally);
    else
        job_tally_fail(d->tally, name, err);
}

static void deletion_ended(void *arg, const struct attr *attr, const struct error *err)
{
    struct deletion *x = arg;
    struct delete_job *d = x->job;
    (void)attr;
    count(d, x->name, err);
    free(x->name);
    free(x);
    pthread_mutex_lock(&d->lock);
    d->under_way--;
    pthread_cond_signal(&d->fewer);
    pthread_mutex_unlock(&d->lock);
}

/* Until at most so many are under way; then there is one more, or none is awaited. */
static void wait_for_others(struct delete_job *d, unsigned at_most, unsigned more)
{
    pthread_mutex_lock(&d->lock);
    while (d->under_way > at_most)
        pthread_cond_wait(&d->fewer, &d->lock);
    d->under_way += more;
    pthread_mutex_unlock(&d->lock);
}

static int durability_of(const struct delete_job *d, enum durability *out, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(d->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, d->plan.input_bucket_id);
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed while the job ran");
    *out = b->props.durability;
    return 0;
}

static int delete_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    struct delete_job *d = ctx;
    const struct object_condition condition = {.check = check_age, .ctx = d};
    enum durability durability = DURABILITY_SYNC;
    int code = durability_of(d, &durability, err);
    for (size_t i = 0; i < n && code == 0 && !d->stop.wanted; i++) {
        struct deletion *x = xcalloc(1, sizeof *x);
        *x = (struct deletion){.job = d, .name = xstrdup(names[i])};
        wait_for_others(d, AT_ONCE - 1, 1);
        object_delete(d->target->store, d->plan.input_bucket_id, x->name, durability, &condition,
                      deletion_ended, x);
    }
    wait_for_others(d, 0, 0);
    if (code == 0 && job_tally_hopeless(d->tally))
        code = job_tally_end(d->tally, err);
    return code;
}

static int job_run(void *self, struct error *err)
{
    struct delete_job *d = self;
    const struct job_names names = {.store = d->target->store,
                                    .state = d->target->state,
                                    .self = d->target->id,
                                    .spec = d->spec,
                                    .bucket_id = d->plan.input_bucket_id,
                                    .job_id = d->job->id,
                                    .stop = &d->stop.wanted};
    uint64_t total;
    int code = job_names_count(&names, &total, err);
    if (code != 0)
        return code;
    job_tally_expect(d->tally, total);
    code = job_names_each(&names, delete_batch, d, err);
    return code != 0 ? code : job_tally_end(d->tally, err);
}

static void job_stop(void *self)
{
    struct delete_job *d = self;
    job_stop_now(&d->stop);
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
    const struct delete_job *d = self;
    return job_tally_status(d->tally);
}

const struct xaction_ops delete_xaction = {
    .kind = "delete",
    .open = job_open,
    .prepare = nothing,
    .run = job_run,
    .stop = job_stop,
    .commit = nothing,
    .undo = nothing,
    .status = job_status,
    .free = job_free,
};
