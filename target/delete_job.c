#include "target/delete_job.h"

#include <string.h>

#include "common/mem.h"
#include "target/objects_job.h"

enum { AT_ONCE = 256 };

struct delete_job {
    struct objects_job base; /* the first: objects_job_status() */
    pthread_mutex_t lock;    /* of `under_way` */
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
    objects_job_done(&d->base);
    pthread_cond_destroy(&d->fewer);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static int job_open(void *host, const struct job *job, void **self, struct error *err)
{
    struct delete_job *d = xcalloc(1, sizeof *d);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->fewer, NULL);
    int code = objects_job_init(&d->base, host, job, "deleted", err);
    if (code == 0)
        *self = d;
    else
        job_free(d);
    return code;
}

/* --- the work -----------------------------------------------------------------------------------
 */

static int check_age(void *ctx, const struct attr *current, struct error *err)
{
    const struct delete_job *d = ctx;
    if (current == NULL) /* it is damaged or lost: there is nothing to be kept */
        return 0;
    if (!version_is_after(&current->version, d->base.plan.term, d->base.plan.version))
        return 0;
    return error_set(err, E_PRECONDITION, "object '%s' was put after the job", current->name);
}

static void count(struct delete_job *d, const char *name, const struct error *err)
{
    if (err->code == 0)
        job_tally_done(d->base.tally, 0);
    else if (err->code == E_OBJECT_NOT_FOUND)
        job_tally_missing(d->base.tally);
    else if (err->code == E_PRECONDITION)
        job_tally_skipped(d->base.tally);
    else
        job_tally_fail(d->base.tally, name, err);
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
    _cleanup_state_ const struct cluster_state *s = state_current(d->base.target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, d->base.plan.input_bucket_id);
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
    for (size_t i = 0; i < n && code == 0 && !d->base.stop.wanted; i++) {
        struct deletion *x = xcalloc(1, sizeof *x);
        *x = (struct deletion){.job = d, .name = xstrdup(names[i])};
        wait_for_others(d, AT_ONCE - 1, 1);
        object_delete(d->base.target->store, d->base.plan.input_bucket_id, x->name, durability,
                      &condition, NULL, deletion_ended, x);
    }
    wait_for_others(d, 0, 0);
    if (code == 0 && job_tally_hopeless(d->base.tally))
        code = job_tally_end(d->base.tally, err);
    return code;
}

static int job_run(void *self, struct error *err)
{
    struct delete_job *d = self;
    return objects_job_run(&d->base, delete_batch, d, err);
}

const struct xaction_ops delete_xaction =
    XACTION_WORK("delete", job_open, job_run, objects_job_stop, objects_job_status, job_free);
