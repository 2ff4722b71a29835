/* Threads on demand.  A thread is busy (runs a job), idle (sleeps on the stack of idle threads), or
 * on its way to the queue (just started, or woken).  For each queued job there is a thread on its
 * way, unless all threads that may exist are busy: those look at the queue when their job ends.
 * That is why no job is forgotten.
 *
 * Each thread joins the one that ended before it, and pool_free() joins the last. */
#include "io/pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/thread.h"

struct pool_job {
    void (*fn)(void *arg);
    void *arg;
};

/* An idle thread, on its own stack. */
struct sleeper {
    pthread_cond_t wake;
    bool called; /* taken off the stack of idle threads by the waker */
    struct sleeper *next;
};

struct pool {
    pthread_mutex_t lock; /* guards everything below; never held while a job runs */
    pthread_cond_t gone;  /* the last thread has ended */
    const char *thread_name;
    bool ending;
    uint64_t idle_ms;
    int nicer;
    size_t first; /* ring of jobs */
    size_t count;
    size_t max;
    struct pool_job *jobs;
    unsigned limit;
    unsigned kept; /* of the threads, so many stay however long they are idle */
    unsigned threads;
    unsigned busy;
    struct sleeper *idle; /* the one that became idle last is the first */
    bool any_ended;
    pthread_t ended; /* the last that ended, not yet joined */
};

bool pool_wants_thread(const struct pool_load *load)
{
    return load->threads < load->limit && load->queued > load->threads - load->busy;
}

bool pool_thread_ends(uint64_t idle_since_ms, uint64_t now_ms, uint64_t idle_ms)
{
    return now_ms >= idle_since_ms && now_ms - idle_since_ms >= idle_ms;
}

/* --- threads; all with the lock held -----------------------------------------------------------
 * */

static void wake_one(struct pool *p)
{
    struct sleeper *s = p->idle;
    if (s == NULL)
        return;
    p->idle = s->next;
    s->called = true;
    pthread_cond_signal(&s->wake);
}

static void sleeper_remove(struct pool *p, const struct sleeper *s)
{
    struct sleeper **at = &p->idle;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
}

/* Sleeps until the thread is called.  False after the idle time, where more threads exist than
 * stay: the thread is off the stack. */
static bool sleep_until_called(struct pool *p)
{
    struct sleeper s = {.next = p->idle};
    condition_init(&s.wake);
    p->idle = &s;
    uint64_t idle_ms = p->idle_ms;
    uint64_t since_ms = clock_ms();
    struct timespec until = clock_after(idle_ms);
    while (!s.called) {
        if (p->threads <= p->kept)
            pthread_cond_wait(&s.wake, &p->lock);
        else if (pool_thread_ends(since_ms, clock_ms(), idle_ms))
            break;
        else
            pthread_cond_timedwait(&s.wake, &p->lock, &until);
    }
    if (!s.called)
        sleeper_remove(p, &s);
    pthread_cond_destroy(&s.wake);
    return s.called;
}

/* The next job, or false when this thread ends. */
static bool next_job(struct pool *p, struct pool_job *out)
{
    while (p->count == 0)
        if (p->ending || !sleep_until_called(p))
            return false;
    *out = p->jobs[p->first];
    p->first = (p->first + 1) % p->max;
    p->count--;
    return true;
}

/* Linux has a nice value for each thread.  -1 may be the new value. */
static void be_nicer(int by)
{
    errno = 0;
    if (by != 0 && nice(by) == -1 && errno != 0)
        log_warn("a background thread runs like all others", li64("errno", errno));
}

static void *pool_main(void *arg)
{
    struct pool *p = arg;
    struct pool_job job;
    pthread_mutex_lock(&p->lock);
    be_nicer(p->nicer);
    while (next_job(p, &job)) {
        p->busy++;
        pthread_mutex_unlock(&p->lock);
        (void)fault_errno_at("pool.job", p->thread_name); /* a job may be held, but cannot fail */
        job.fn(job.arg);
        pthread_mutex_lock(&p->lock);
        p->busy--;
    }
    bool any_before = p->any_ended;
    pthread_t before = p->ended;
    p->any_ended = true;
    p->ended = pthread_self();
    if (--p->threads == 0)
        pthread_cond_signal(&p->gone);
    pthread_mutex_unlock(&p->lock);
    if (any_before)
        pthread_join(before, NULL);
    return NULL;
}

static int add_thread(struct pool *p, struct error *err)
{
    pthread_t thread;
    int code = thread_start(p->thread_name, pool_main, p, &thread, err);
    if (code == 0)
        p->threads++;
    return code;
}

/* A thread for the job that comes, if one is wanted.  Fails only where no thread exists. */
static int ensure_thread(struct pool *p, struct error *err)
{
    const struct pool_load load = {
        .limit = p->limit, .threads = p->threads, .busy = p->busy, .queued = p->count + 1};
    if (!pool_wants_thread(&load))
        return 0;
    struct error refused = ERROR_INIT;
    int code = add_thread(p, &refused);
    if (code == 0 || p->threads > 0)
        return 0;
    if (err != NULL)
        *err = refused;
    return code;
}

/* --- interface ---------------------------------------------------------------------------------
 * */

int pool_new(const char *thread_name, unsigned threads, size_t queue_max, struct pool **out,
             struct error *err)
{
    (void)err;
    assert(threads > 0 && queue_max > 0);
    struct pool *p = xcalloc(1, sizeof *p);
    p->thread_name = thread_name;
    p->idle_ms = POOL_IDLE_MS;
    p->limit = threads;
    p->jobs = xcalloc(queue_max, sizeof p->jobs[0]);
    p->max = queue_max;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->gone, NULL);
    *out = p;
    return 0;
}

int pool_keep(struct pool *p, unsigned threads, struct error *err)
{
    assert(threads <= p->limit);
    int code = 0;
    pthread_mutex_lock(&p->lock);
    p->kept = threads;
    while (code == 0 && p->threads < threads)
        code = add_thread(p, err);
    if (code != 0)
        p->kept = 0;
    pthread_mutex_unlock(&p->lock);
    return code;
}

void pool_set_idle(struct pool *p, uint64_t idle_ms)
{
    pthread_mutex_lock(&p->lock);
    p->idle_ms = idle_ms;
    pthread_mutex_unlock(&p->lock);
}

void pool_set_nicer(struct pool *p, int by)
{
    pthread_mutex_lock(&p->lock);
    p->nicer = by;
    pthread_mutex_unlock(&p->lock);
}

unsigned pool_threads(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    unsigned threads = p->threads;
    pthread_mutex_unlock(&p->lock);
    return threads;
}

int pool_submit(struct pool *p, void (*fn)(void *arg), void *arg, struct error *err)
{
    pthread_mutex_lock(&p->lock);
    int code = 0;
    if (p->count == p->max)
        code = error_set(err, E_OVERLOAD, "the work queue is full (%zu)", p->max);
    if (code == 0)
        code = ensure_thread(p, err);
    if (code == 0) {
        p->jobs[(p->first + p->count) % p->max] = (struct pool_job){.fn = fn, .arg = arg};
        p->count++;
        wake_one(p);
    }
    pthread_mutex_unlock(&p->lock);
    return code;
}

void pool_free(struct pool *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    while (p->idle != NULL)
        wake_one(p);
    while (p->threads > 0)
        pthread_cond_wait(&p->gone, &p->lock);
    bool any = p->any_ended;
    pthread_mutex_unlock(&p->lock);
    if (any)
        pthread_join(p->ended, NULL);
    pthread_cond_destroy(&p->gone);
    pthread_mutex_destroy(&p->lock);
    free(p->jobs);
    free(p);
}
