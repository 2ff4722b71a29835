#include "target/jobs/delete_queue.h"

#include <semaphore.h>

#include "cluster/documents/bucket_refuse.h"
#include "common/clock.h"
#include "common/mem.h"
#include "target/copies/copies.h"
#include "target/copies/object_copy.h"
#include "target/format/ec_manifest.h"
#include "target/store/renames.h"

enum {
    AT_ONCE = 256,
    TRY_MS = 60000, /* others may be restarting */
};

/* One deletion; freed by its end. */
struct deletion {
    struct delete_queue *queue;
    struct deletion *next;
    char *name;
    bool several;       /* copies … */
    bool doubt;         /* … of which some may have been told already */
    bool wants_turn;    /* the name is being renamed … */
    sem_t *turn;        /* … and this is its turn (renames.h); posted at its end */
    uint64_t failed_ms; /* 0, or when it failed first */
    enum durability durability;
    uint64_t size; /* of what check() saw last */
};

/* --- the work --------------------------------------------------------------------------------- */

/* Under the lock under which the deletion commits: no rename begins in between. */
static int check_renames(struct deletion *x, struct error *err)
{
    const struct job_base *job = x->queue->job;
    x->wants_turn =
        x->turn == NULL && renames_busy(job->target->renames, x->queue->bucket_id, x->name);
    return x->wants_turn ? error_set(err, E_NOT_READY, "object '%s' is being renamed", x->name) : 0;
}

/* By the bucket as it is now: the job may be older than its property. */
static int check_write_once(const struct delete_queue *q, struct error *err)
{
    _cleanup_state_ const struct cluster_state *s = state_current(q->job->target->state);
    const struct bucket *b = bmd_bucket_by_id(&s->bmd, q->bucket_id);
    int code = b != NULL ? bucket_refuse_ring(b, "deletion", err) : 0;
    return code == 0 && b != NULL ? bucket_refuse_removal(b, "deletion", err) : code;
}

static uint64_t size_of(const struct attr *current)
{
    struct attr shown;
    if (current == NULL)
        return 0;
    shown = *current;
    return ec_manifest_show(&shown, NULL) == 0 ? shown.size : 0;
}

static int deletion_check(void *ctx, const struct attr *current, struct error *err)
{
    struct deletion *x = ctx;
    int code = check_renames(x, err);
    x->size = size_of(current);
    if (code == 0)
        code = check_write_once(x->queue, err);
    return code != 0 ? code : x->queue->check(x->queue->ctx, x->name, current, err);
}

/* What a stop has kept from being tried is not counted. */
static void count(const struct deletion *x, const struct error *err)
{
    struct job_tally *tally = x->queue->job->tally;
    if (err->code == E_ABORTED)
        return;
    if (err->code == 0 && x->queue->deleted != NULL)
        x->queue->deleted(x->queue->ctx, x->size);
    if (err->code == 0)
        job_tally_done(tally, x->size);
    else if (err->code == E_OBJECT_NOT_FOUND)
        job_tally_missing(tally);
    else if (err->code == E_PRECONDITION)
        job_tally_skipped(tally);
    else
        job_tally_fail(tally, x->name, err);
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

static void wait_for(struct delete_queue *q, const char *name, const struct error *err)
{
    struct error why = *err;
    error_wrap(&why, "object '%s'", name);
    job_tally_wait(q->job->tally, &why);
}

static void deletion_over(struct deletion *x, const struct error *err)
{
    struct delete_queue *q = x->queue;
    uint64_t now_ms = clock_ms();
    x->failed_ms = x->failed_ms != 0 ? x->failed_ms : now_ms;
    bool again = x->several && may_pass(err->code) && now_ms - x->failed_ms < TRY_MS;
    if (again)
        wait_for(q, x->name, err);
    else
        count(x, x->doubt && err->code == E_OBJECT_NOT_FOUND ? &(struct error){0} : err);
    pthread_mutex_lock(&q->lock);
    if (again) {
        x->doubt = x->doubt || err->code == E_IN_DOUBT;
        x->next = q->again;
        q->again = x;
    }
    q->under_way--;
    pthread_cond_signal(&q->fewer);
    pthread_mutex_unlock(&q->lock);
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
    if (job_base_check(x->queue->job, &stopped) != 0) {
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
    const struct job_base *job = x->queue->job;
    sem_t *turn = steal(x->turn);
    struct error why = *err;
    (void)attr;
    if (why.code != 0 && turn == NULL && x->wants_turn &&
        renames_enter(job->target->renames, x->queue->bucket_id, x->name, run_in_turn, x, &why) ==
            0)
        return;
    deletion_over(x, &why);
    if (turn != NULL)
        sem_post(turn);
}

/* Until at most so many are under way; then there is one more, or none is awaited. */
static void wait_for_others(struct delete_queue *q, unsigned at_most, unsigned more)
{
    pthread_mutex_lock(&q->lock);
    while (q->under_way > at_most)
        pthread_cond_wait(&q->fewer, &q->lock);
    q->under_way += more;
    pthread_mutex_unlock(&q->lock);
}

static struct deletion *deletion_new(struct delete_queue *q, const char *name,
                                     const struct bucket *b)
{
    struct deletion *x = xcalloc(1, sizeof *x);
    *x = (struct deletion){.queue = q,
                           .name = xstrdup(name),
                           .several = bucket_has_copies(b),
                           .durability = b->props.durability};
    return x;
}

static void deletion_run(struct deletion *x)
{
    struct delete_queue *q = x->queue;
    struct target *t = q->job->target;
    const struct object_condition condition = {.check = deletion_check, .ctx = x};
    if (x->several)
        copies_delete(t, q->bucket_id, x->name, &condition, deletion_ended, x);
    else
        object_delete(t->store, q->bucket_id, x->name, x->durability, &condition, NULL,
                      deletion_ended, x);
}

static void deletion_start(struct deletion *x)
{
    wait_for_others(x->queue, AT_ONCE - 1, 1);
    deletion_run(x);
}

static struct deletion *take_again(struct delete_queue *q)
{
    wait_for_others(q, 0, 0);
    return steal(q->again);
}

/* --- the queue -------------------------------------------------------------------------------- */

void delete_queue_init(struct delete_queue *q, struct job_base *job, uint64_t bucket_id,
                       delete_check_fn *check, void *ctx)
{
    *q = (struct delete_queue){.job = job,
                               .bucket_id = bucket_id,
                               .check = check,
                               .ctx = ctx,
                               .lock = PTHREAD_MUTEX_INITIALIZER,
                               .fewer = PTHREAD_COND_INITIALIZER};
}

void delete_queue_done(struct delete_queue *q)
{
    pthread_cond_destroy(&q->fewer);
    pthread_mutex_destroy(&q->lock);
}

void delete_queue_add(struct delete_queue *q, const struct bucket *b, const char *name)
{
    deletion_start(deletion_new(q, name, b));
}

/* Of several copies what may pass is tried again, for TRY_MS. */
void delete_queue_drain(struct delete_queue *q)
{
    unsigned failures = 0;
    for (struct deletion *x; (x = take_again(q)) != NULL;) {
        bool goes_on = job_stop_back_off(&q->job->stop, ++failures);
        for (struct deletion *next; x != NULL; x = next) {
            next = x->next;
            if (goes_on)
                deletion_start(x);
            else
                deletion_free(x);
        }
    }
    job_tally_wait(q->job->tally, NULL);
}
