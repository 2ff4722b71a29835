#include "target/jobs/delete_job.h"

#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "target/copies/copies.h"
#include "target/copies/object_copy.h"
#include "target/jobs/objects_job.h"

enum {
    AT_ONCE = 256,
    TRY_MS = 60000, /* others may be restarting */
};

struct delete_job {
    struct objects_job base; /* the first: objects_job_status() */
    pthread_mutex_t lock;    /* of what follows */
    pthread_cond_t fewer;
    unsigned under_way;
    struct deletion *again; /* that may pass when they are tried again */
};

/* One deletion; freed by its end. */
struct deletion {
    struct delete_job *job;
    struct deletion *next;
    char *name;
    bool several;       /* copies … */
    bool doubt;         /* … of which some may have been told already */
    uint64_t failed_ms; /* 0, or when it failed first */
    enum durability durability;
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

/* --- the work --------------------------------------------------------------------------------- */

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

static void deletion_free(struct deletion *x)
{
    free(x->name);
    free(x);
}

/* Another owner may be away for the moment. */
static bool may_pass(int code)
{
    return code == E_IN_DOUBT || object_copy_may_pass(code);
}

static void wait_for(struct delete_job *d, const char *name, const struct error *err)
{
    struct error why = *err;
    error_wrap(&why, "object '%s'", name);
    job_tally_wait(d->base.tally, &why);
}

static void deletion_ended(void *arg, const struct attr *attr, const struct error *err)
{
    struct deletion *x = arg;
    struct delete_job *d = x->job;
    uint64_t now_ms = clock_ms();
    x->failed_ms = x->failed_ms != 0 ? x->failed_ms : now_ms;
    bool again = x->several && may_pass(err->code) && now_ms - x->failed_ms < TRY_MS;
    (void)attr;
    if (again)
        wait_for(d, x->name, err);
    else
        count(d, x->name, x->doubt && err->code == E_OBJECT_NOT_FOUND ? &(struct error){0} : err);
    pthread_mutex_lock(&d->lock);
    if (again) {
        x->doubt = x->doubt || err->code == E_IN_DOUBT;
        x->next = d->again;
        d->again = x;
    }
    d->under_way--;
    pthread_cond_signal(&d->fewer);
    pthread_mutex_unlock(&d->lock);
    if (!again)
        deletion_free(x);
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

static struct deletion *deletion_new(struct delete_job *d, const char *name, const struct bucket *b)
{
    struct deletion *x = xcalloc(1, sizeof *x);
    *x = (struct deletion){.job = d,
                           .name = xstrdup(name),
                           .several = copies_are_several(b),
                           .durability = b->props.durability};
    return x;
}

static void deletion_start(struct deletion *x)
{
    struct delete_job *d = x->job;
    struct target *t = d->base.target;
    uint64_t bucket_id = d->base.plan.input_bucket_id;
    const struct object_condition condition = {.check = check_age, .ctx = d};
    wait_for_others(d, AT_ONCE - 1, 1);
    if (x->several)
        copies_delete(t, bucket_id, x->name, &condition, deletion_ended, x);
    else
        object_delete(t->store, bucket_id, x->name, x->durability, &condition, NULL, deletion_ended,
                      x);
}

static struct deletion *take_again(struct delete_job *d)
{
    wait_for_others(d, 0, 0);
    return steal(d->again);
}

/* Of several copies what may pass is tried again, for TRY_MS. */
static void delete_the_rest(struct delete_job *d)
{
    unsigned failures = 0;
    for (struct deletion *x; (x = take_again(d)) != NULL;) {
        bool goes_on = job_stop_back_off(&d->base.stop, ++failures);
        for (struct deletion *next; x != NULL; x = next) {
            next = x->next;
            if (goes_on)
                deletion_start(x);
            else
                deletion_free(x);
        }
    }
    job_tally_wait(d->base.tally, NULL);
}

static int delete_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    struct delete_job *d = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(d->base.target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, d->base.plan.input_bucket_id);
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed while the job ran");
    for (size_t i = 0; i < n && !d->base.stop.wanted; i++)
        deletion_start(deletion_new(d, names[i], b));
    delete_the_rest(d);
    return job_tally_hopeless(d->base.tally) ? job_tally_end(d->base.tally, err) : 0;
}

static int job_run(void *self, struct error *err)
{
    struct delete_job *d = self;
    return objects_job_run(&d->base, delete_batch, d, err);
}

const struct xaction_ops delete_xaction =
    XACTION_WORK("delete", job_open, job_run, objects_job_stop, objects_job_status, job_free);
