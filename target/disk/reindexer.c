#include "target/disk/reindexer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/thread.h"

enum { NICE = 10 }; /* requests go first */

struct reindexer {
    struct mountpath *mp;
    pthread_t thread;
    atomic_bool stop;
    struct reindex_report report; /* the thread's, of the present run; others read looked_at */
    uint64_t changes;             /* the thread's: at its last look, */
    uint64_t idle_ms;             /* and for how long they have been as many */
    uint64_t verify_ms;           /* the thread's: when all is to be compared again */
    uint64_t retry_ms;            /* the thread's: a stale index is left alone until then */
    pthread_mutex_t lock;         /* of the fields below */
    pthread_cond_t woken;
    bool wanted;
    bool running;
    uint64_t runs, ms;
    struct error failed;
};

static void run(struct reindexer *r)
{
    struct error err = ERROR_INIT;
    atomic_store(&r->report.looked_at, 0);
    r->report.objects = r->report.lost = r->report.unreadable = 0;
    int code = reindex_online(r->mp, &r->stop, &r->report, &err);
    if (code == 0)
        log_info("index rebuilt", lstr("mountpath", r->mp->path), lstr("why", "while serving"),
                 lu64("objects", r->report.objects), lu64("unreadable", r->report.unreadable),
                 lu64("ms", r->report.ms));
    else if (code != E_CANCELLED)
        log_error("index not rebuilt", lstr("mountpath", r->mp->path), lerr(&err));
    r->retry_ms = clock_ms() + (code == 0 ? 0 : REINDEXER_RETRY_MS);
    pthread_mutex_lock(&r->lock);
    r->running = false;
    r->runs++;
    r->ms = r->report.ms;
    r->failed = err;
    pthread_mutex_unlock(&r->lock);
}

static void verify(struct reindexer *r)
{
    struct error err = ERROR_INIT;
    int code = index_verify(r->mp->index, r->changes, &r->stop, &err);
    if (code == 0)
        r->verify_ms = clock_ms() + REINDEXER_VERIFY_MS;
    else if (code != E_CANCELLED)
        log_error("index damaged", lstr("mountpath", r->mp->path), lerr(&err));
}

static void checkpoint_if_idle(struct reindexer *r)
{
    bool idle;
    struct error err = ERROR_INIT;
    uint64_t before = r->changes;
    r->changes = index_changes(r->mp->index, &idle);
    r->idle_ms = idle && r->changes == before ? r->idle_ms + REINDEXER_LOOK_MS : 0;
    if (r->idle_ms < REINDEXER_IDLE_MS)
        return;
    if (index_checkpoint(r->mp->index, &err) != 0)
        log_warn("index not brought to the disk", lstr("mountpath", r->mp->path), lerr(&err));
    if (clock_ms() >= r->verify_ms && index_check(r->mp->index, NULL) == 0)
        verify(r);
}

/* True: it is to be rebuilt, which the status says from here on. */
static bool wait_for_work(struct reindexer *r)
{
    struct timespec until;
    uint64_t until_ms = clock_ms() + REINDEXER_LOOK_MS;
    until = (struct timespec){.tv_sec = (time_t)(until_ms / 1000),
                              .tv_nsec = (long)(until_ms % 1000) * 1000000};
    int rc = 0;
    pthread_mutex_lock(&r->lock);
    while (!r->wanted && !r->stop && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&r->woken, &r->lock, &until);
    bool stale = index_check(r->mp->index, NULL) == E_IO && clock_ms() >= r->retry_ms;
    r->running = (r->wanted || stale) && !r->stop;
    r->wanted = false;
    bool work = r->running;
    pthread_mutex_unlock(&r->lock);
    return work;
}

static void *reindexer_main(void *arg)
{
    struct reindexer *r = arg;
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); /* where it may not, it goes on as it is */
    while (!r->stop) {
        if (wait_for_work(r))
            run(r);
        else if (!r->stop)
            checkpoint_if_idle(r);
    }
    return NULL;
}

int reindexer_new(struct mountpath *mp, struct reindexer **out, struct error *err)
{
    struct reindexer *r = xcalloc(1, sizeof *r);
    r->mp = mp;
    r->changes = UINT64_MAX;
    pthread_mutex_init(&r->lock, NULL);
    condition_init(&r->woken);
    int code = thread_start("index", reindexer_main, r, &r->thread, err);
    if (code != 0) {
        pthread_cond_destroy(&r->woken);
        pthread_mutex_destroy(&r->lock);
        free(r);
        return code;
    }
    *out = r;
    return 0;
}

void reindexer_free(struct reindexer *r)
{
    if (r == NULL)
        return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->woken);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    pthread_cond_destroy(&r->woken);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

int reindexer_ask(struct reindexer *r, struct error *err)
{
    pthread_mutex_lock(&r->lock);
    bool busy = r->wanted || r->running;
    r->wanted = !r->running;
    pthread_cond_signal(&r->woken);
    pthread_mutex_unlock(&r->lock);
    return busy
               ? error_set(err, E_EXISTS, "the index of '%s' is being rebuilt already", r->mp->path)
               : 0;
}

void reindexer_status(struct reindexer *r, struct reindexer_status *out)
{
    pthread_mutex_lock(&r->lock);
    *out = (struct reindexer_status){.running = r->wanted || r->running,
                                     .looked_at = r->report.looked_at,
                                     .runs = r->runs,
                                     .ms = r->ms,
                                     .failed = r->failed};
    pthread_mutex_unlock(&r->lock);
}
