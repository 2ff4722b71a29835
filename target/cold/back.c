#include "target/cold/back.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "io/thread.h"
#include "target/cold/scan_stamp.h"
#include "target/cold/back_upload.h"
#include "target/cold/backlog.h"
#include "target/node/call.h"
#include "target/cold/internal.h"
#include "target/index/walk.h"
#include "target/node/thread_classes.h"

enum {
    NAMES_MAX = 65536,
    LOOK_MS = 5000,      /* between looks whether mountpaths have changed */
    NOT_READY_MS = 1000, /* an index that cannot be read yet */
    PUT_OFF_MS = 2000,   /* of a name whose earlier owner is away, say */
};

struct back {
    struct target *target;
    struct pool *uploaders;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t woken;
    struct backlog *backlog;
    size_t running;
    bool stop, changed;
    bool looking;        /* through the indexes, just now */
    bool looks;          /* they are to be looked through … */
    uint64_t look_at_ms; /* … not before */
    struct scan_stamp seen;
};

/* --- looking through the indexes -------------------------------------------------------------- */

static bool note(struct back *k, uint64_t bucket_id, const char *name, int64_t written_ms)
{
    pthread_mutex_lock(&k->lock);
    bool noted = backlog_note(k->backlog, bucket_id, name, written_ms);
    bool goes_on = noted && !k->stop;
    pthread_cond_signal(&k->woken);
    pthread_mutex_unlock(&k->lock);
    return goes_on;
}

struct place {
    struct back *back;
    uint64_t bucket_id;
};

static enum index_answer look_at(void *ctx, const char *name, const struct index_record *rec)
{
    const struct place *p = ctx;
    bool room =
        !rec->pending || rec->job != NULL || note(p->back, p->bucket_id, name, rec->modified_ms);
    return room ? INDEX_PASS : INDEX_END;
}

static int look_at_index(struct back *k, const struct cluster_state *s, struct index *x,
                         struct error *err)
{
    int code = index_check(x, err);
    for (size_t i = 0; i < s->bmd.count && code == 0; i++) {
        const struct bucket *b = &s->bmd.buckets[i];
        struct place place = {.back = k, .bucket_id = b->id};
        struct index_walk w = {.bucket_id = b->id,
                               .more = b->props.backend != NULL &&
                                       backend_is_written(b->props.backend)};
        while (w.more && code == 0)
            code = index_walk(x, &w, look_at, &place, err);
    }
    return code;
}

/* One that cannot be read keeps no other: the first error, when all were. */
static int look(struct back *k, struct error *err)
{
    struct target *t = k->target;
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    int first = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct error why = ERROR_INIT;
        int code = look_at_index(k, s, set->all[i]->index, &why);
        if (code != 0 && first == 0)
            first = error_set(err, code, "%s", why.message);
    }
    return first;
}

static struct scan_stamp see(const struct target *t)
{
    _cleanup_state_ const struct cluster_state *s = state_current(t->state);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(t->mountpaths);
    return scan_stamp_of(s, set->roster->generation, set->settled);
}

/* --- uploading -------------------------------------------------------------------------------- */

struct run {
    struct back *back;
    struct backlog_name *name;
};

static bool is_stopped(struct back *k)
{
    pthread_mutex_lock(&k->lock);
    bool stopped = k->stop;
    pthread_mutex_unlock(&k->lock);
    return stopped;
}

static void run_ended(struct run *r, int code, bool of_backend)
{
    struct back *k = r->back;
    pthread_mutex_lock(&k->lock);
    if (code == 0)
        backlog_over(k->backlog, r->name);
    else if (of_backend)
        backlog_failed(k->backlog, r->name, clock_ms());
    else
        backlog_put_off(k->backlog, r->name, clock_ms());
    k->running--;
    pthread_cond_signal(&k->woken);
    pthread_mutex_unlock(&k->lock);
    free(r);
}

static void run(void *arg)
{
    struct run *r = arg;
    struct error err = ERROR_INIT;
    bool of_backend = false;
    int code = E_NOT_READY;
    if (!is_stopped(r->back)) {
        code = back_upload(r->back->target, backlog_bucket_id(r->name), backlog_text(r->name),
                           backlog_memo(r->name), &of_backend, &err);
        /* What is put off comes again and again. */
        if (code != 0 && (of_backend || !backlog_has_failed(r->name)))
            log_warn("not uploaded yet", lerr(&err));
    }
    run_ended(r, code, of_backend);
}

/* With the lock.  False: none may begin now, for *wait_ms. */
static bool start_one(struct back *k, uint64_t *wait_ms)
{
    *wait_ms = LOOK_MS;
    if (k->running >= k->target->params.cold_writes)
        return false;
    uint64_t until_ms;
    struct backlog_name *n = backlog_take(k->backlog, clock_ms(), &until_ms);
    *wait_ms = until_ms < LOOK_MS ? until_ms : LOOK_MS;
    if (n == NULL)
        return false;
    struct run *r = xcalloc(1, sizeof *r);
    *r = (struct run){.back = k, .name = n};
    k->running++;
    if (pool_submit(k->uploaders, run, r, NULL) == 0) /* its queue has room for all that may run */
        return true;
    k->running--;
    backlog_failed(k->backlog, n, clock_ms());
    free(r);
    return false;
}

/* --- the thread ------------------------------------------------------------------------------- */

/* With the lock, which is given away meanwhile. */
static void look_where_due(struct back *k)
{
    struct error err = ERROR_INIT;
    pthread_mutex_unlock(&k->lock);
    struct scan_stamp now = see(k->target);
    pthread_mutex_lock(&k->lock);
    if (!scan_stamp_is_same(&now, &k->seen) || backlog_has_room(k->backlog))
        k->looks = true;
    k->seen = now;
    if (!k->looks || clock_ms() < k->look_at_ms)
        return;
    k->looks = false;
    backlog_looks(k->backlog);
    k->looking = true;
    pthread_mutex_unlock(&k->lock);
    int code = look(k, &err);
    if (code != 0)
        log_warn("not all of what is to be uploaded is known yet", lerr(&err));
    pthread_mutex_lock(&k->lock);
    k->looking = false;
    k->looks |= code != 0;
    k->look_at_ms = code != 0 ? clock_ms() + NOT_READY_MS : 0;
}

static void wait_locked(struct back *k, uint64_t wait_ms)
{
    uint64_t until_ms = clock_ms() + (k->looks && wait_ms > NOT_READY_MS ? NOT_READY_MS : wait_ms);
    const struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                                   .tv_nsec = (long)(until_ms % 1000) * 1000000};
    pthread_cond_timedwait(&k->woken, &k->lock, &until);
}

static void *back_main(void *arg)
{
    struct back *k = arg;
    uint64_t looked_ms = 0, wait_ms;
    pthread_mutex_lock(&k->lock);
    while (!k->stop) {
        if (k->changed || k->looks || clock_ms() - looked_ms >= LOOK_MS) {
            k->changed = false;
            looked_ms = clock_ms();
            look_where_due(k);
        }
        while (!k->stop && start_one(k, &wait_ms))
            ;
        if (!k->stop && !k->changed)
            wait_locked(k, wait_ms);
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------- */

int back_new(struct target *t, struct back **out, struct error *err)
{
    const struct backlog_rules rules = {.most = NAMES_MAX,
                                        .pause_ms = t->params.backend_backoff,
                                        .pause_max_ms = t->params.backend_backoff_max,
                                        .put_off_ms = PUT_OFF_MS};
    struct back *k = *out = xcalloc(1, sizeof *k);
    k->target = t;
    k->looks = true;
    k->backlog = backlog_new(&rules);
    pthread_mutex_init(&k->lock, NULL);
    condition_init(&k->woken);
    int code = thread_class_new(THREADS_UPLOADER, &t->params, &k->uploaders, err);
    if (code == 0)
        code = thread_start("backlog", back_main, k, &k->thread, err);
    k->started = code == 0;
    return code;
}

void back_stop(struct back *k)
{
    pthread_mutex_lock(&k->lock);
    k->stop = true;
    pthread_cond_signal(&k->woken);
    pthread_mutex_unlock(&k->lock);
    if (k->started)
        pthread_join(k->thread, NULL);
    k->started = false;
    pool_free(steal(k->uploaders));
}

void back_free(struct back *k)
{
    if (k == NULL)
        return;
    backlog_free(k->backlog);
    pthread_cond_destroy(&k->woken);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

/* --- what others say and ask ------------------------------------------------------------------ */

void back_look(struct back *k)
{
    pthread_mutex_lock(&k->lock);
    k->changed = true;
    pthread_cond_signal(&k->woken);
    pthread_mutex_unlock(&k->lock);
}

void back_note(struct back *k, uint64_t bucket_id, const char *name, int64_t written_ms)
{
    (void)note(k, bucket_id, name, written_ms);
}

bool back_is_uploading(struct back *k, uint64_t bucket_id, const char *name)
{
    pthread_mutex_lock(&k->lock);
    bool runs = backlog_runs(k->backlog, bucket_id, name);
    pthread_mutex_unlock(&k->lock);
    return runs;
}

static bool is_anothers(void *ctx, uint64_t bucket_id, const char *name)
{
    const struct target *t = ctx;
    return !t->object_env.owns(t->object_env.ctx, bucket_id, name);
}

bool back_uploads_others(struct back *k)
{
    pthread_mutex_lock(&k->lock);
    bool others = backlog_any_runs(k->backlog, is_anothers, k->target);
    pthread_mutex_unlock(&k->lock);
    return others;
}

struct back_count back_count(struct back *k)
{
    size_t stuck;
    int64_t now_ms = clock_wall_ms(), oldest_ms;
    int64_t before_ms = now_ms - (int64_t)param_live(k->target->params.back_late);
    pthread_mutex_lock(&k->lock);
    size_t waiting = backlog_count(k->backlog, clock_ms(), BACK_STUCK_MS, &stuck);
    size_t late = backlog_late(k->backlog, before_ms, &oldest_ms);
    bool unknown = k->looking || k->looks || k->changed || backlog_overflows(k->backlog);
    pthread_mutex_unlock(&k->lock);
    uint64_t age_ms = oldest_ms < now_ms ? (uint64_t)(now_ms - oldest_ms) : 0;
    return (struct back_count){
        .waiting = waiting + unknown, .stuck = stuck, .late = late, .oldest_ms = age_ms};
}
