/* The job `delete` on a target: tombstones for the objects that it means, many at once, so that
 * they share the waits for the disk.  What was written under a later state of the cluster than the
 * job was made from stays.  Doing it again finds what was deleted gone. */
#include <semaphore.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "target/copies/copies.h"
#include "target/copies/object_copy.h"
#include "target/jobs/objects_walk.h"
#include "target/store/renames.h"

enum {
    AT_ONCE = 256,
    TRY_MS = 60000, /* others may be restarting */
};

/* For one run. */
struct deletions {
    struct job_base *job;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t fewer;
    unsigned under_way;
    struct deletion *again; /* that may pass when they are tried again */
};

/* One deletion; freed by its end. */
struct deletion {
    struct deletions *all;
    struct deletion *next;
    char *name;
    bool several;       /* copies … */
    bool doubt;         /* … of which some may have been told already */
    bool wants_turn;    /* the name is being renamed … */
    sem_t *turn;        /* … and this is its turn (renames.h); posted at its end */
    uint64_t failed_ms; /* 0, or when it failed first */
    enum durability durability;
};

/* --- the work --------------------------------------------------------------------------------- */

/* Under the lock under which the deletion commits: no rename begins in between. */
static int check_renames(struct deletion *x, struct error *err)
{
    const struct job_base *job = x->all->job;
    x->wants_turn =
        x->turn == NULL && renames_busy(job->target->renames, job->plan.input_bucket_id, x->name);
    return x->wants_turn ? error_set(err, E_NOT_READY, "object '%s' is being renamed", x->name) : 0;
}

static int check(void *ctx, const struct attr *current, struct error *err)
{
    struct deletion *x = ctx;
    const struct deletions *d = x->all;
    int code = check_renames(x, err);
    if (code != 0)
        return code;
    if (current == NULL) /* it is damaged or lost: there is nothing to be kept */
        return 0;
    if (!version_is_after(&current->version, d->job->plan.term, d->job->plan.version))
        return 0;
    return error_set(err, E_PRECONDITION, "object '%s' was put after the job", current->name);
}

/* What a stop has kept from being tried is not counted. */
static void count(struct deletions *d, const char *name, const struct error *err)
{
    if (err->code == E_ABORTED)
        return;
    if (err->code == 0)
        job_tally_done(d->job->tally, 0);
    else if (err->code == E_OBJECT_NOT_FOUND)
        job_tally_missing(d->job->tally);
    else if (err->code == E_PRECONDITION)
        job_tally_skipped(d->job->tally);
    else
        job_tally_fail(d->job->tally, name, err);
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

static void wait_for(struct deletions *d, const char *name, const struct error *err)
{
    struct error why = *err;
    error_wrap(&why, "object '%s'", name);
    job_tally_wait(d->job->tally, &why);
}

static void deletion_over(struct deletion *x, const struct error *err)
{
    struct deletions *d = x->all;
    uint64_t now_ms = clock_ms();
    x->failed_ms = x->failed_ms != 0 ? x->failed_ms : now_ms;
    bool again = x->several && may_pass(err->code) && now_ms - x->failed_ms < TRY_MS;
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

static void deletion_run(struct deletion *x);

/* The turn lasts until the deletion has ended.  A rename may have kept it from its turn for
 * long. */
static void run_in_turn(void *arg)
{
    struct deletion *x = arg;
    struct error stopped;
    sem_t ended;
    if (job_base_check(x->all->job, &stopped) != 0) {
        deletion_over(x, &stopped);
        return;
    }
    sem_init(&ended, 0, 0);
    x->turn = &ended;
    deletion_run(x);
    while (sem_wait(&ended) != 0)
        ; /* EINTR is the only failure of an initialised semaphore */
    sem_destroy(&ended);
}

static void deletion_ended(void *arg, const struct attr *attr, const struct error *err)
{
    struct deletion *x = arg;
    const struct job_base *job = x->all->job;
    sem_t *turn = steal(x->turn);
    struct error why = *err;
    (void)attr;
    if (why.code != 0 && turn == NULL && x->wants_turn &&
        renames_enter(job->target->renames, job->plan.input_bucket_id, x->name, run_in_turn, x,
                      &why) == 0)
        return;
    deletion_over(x, &why);
    if (turn != NULL)
        sem_post(turn);
}

/* Until at most so many are under way; then there is one more, or none is awaited. */
static void wait_for_others(struct deletions *d, unsigned at_most, unsigned more)
{
    pthread_mutex_lock(&d->lock);
    while (d->under_way > at_most)
        pthread_cond_wait(&d->fewer, &d->lock);
    d->under_way += more;
    pthread_mutex_unlock(&d->lock);
}

static struct deletion *deletion_new(struct deletions *d, const char *name, const struct bucket *b)
{
    struct deletion *x = xcalloc(1, sizeof *x);
    *x = (struct deletion){.all = d,
                           .name = xstrdup(name),
                           .several = bucket_has_copies(b),
                           .durability = b->props.durability};
    return x;
}

static void deletion_run(struct deletion *x)
{
    struct deletions *d = x->all;
    struct target *t = d->job->target;
    uint64_t bucket_id = d->job->plan.input_bucket_id;
    const struct object_condition condition = {.check = check, .ctx = x};
    if (x->several)
        copies_delete(t, bucket_id, x->name, &condition, deletion_ended, x);
    else
        object_delete(t->store, bucket_id, x->name, x->durability, &condition, NULL, deletion_ended,
                      x);
}

static void deletion_start(struct deletion *x)
{
    wait_for_others(x->all, AT_ONCE - 1, 1);
    deletion_run(x);
}

static struct deletion *take_again(struct deletions *d)
{
    wait_for_others(d, 0, 0);
    return steal(d->again);
}

/* Of several copies what may pass is tried again, for TRY_MS. */
static void delete_the_rest(struct deletions *d)
{
    unsigned failures = 0;
    for (struct deletion *x; (x = take_again(d)) != NULL;) {
        bool goes_on = job_stop_back_off(&d->job->stop, ++failures);
        for (struct deletion *next; x != NULL; x = next) {
            next = x->next;
            if (goes_on)
                deletion_start(x);
            else
                deletion_free(x);
        }
    }
    job_tally_wait(d->job->tally, NULL);
}

static int delete_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    struct deletions *d = ctx;
    _cleanup_state_ const struct cluster_state *s = state_current(d->job->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, d->job->plan.input_bucket_id);
    if (b == NULL)
        return error_set(err, E_BUCKET_NOT_FOUND, "the bucket was destroyed while the job ran");
    for (size_t i = 0; i < n && !d->job->stop.wanted; i++)
        deletion_start(deletion_new(d, names[i], b));
    delete_the_rest(d);
    return job_tally_hopeless(d->job->tally) ? job_tally_end(d->job->tally, err) : 0;
}

static int run(void *self, struct error *err)
{
    struct deletions d = {
        .job = self, .lock = PTHREAD_MUTEX_INITIALIZER, .fewer = PTHREAD_COND_INITIALIZER};
    int code = objects_walk(d.job, delete_batch, &d, err);
    pthread_cond_destroy(&d.fewer);
    pthread_mutex_destroy(&d.lock);
    return code;
}

const struct xaction_ops delete_xaction =
    JOB_WORK("delete", .size = sizeof(struct job_base), .done_word = "deleted",
             .over_objects = true, .run = run);
