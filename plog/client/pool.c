/* The keeper looks at all handles several times in the refresh time; a session is refreshed when
 * its time has passed.  If a writer met the bound, the keeper stores what idle handles hold: they
 * would leave the others no room but for tiny segments.  While the keeper calls the cluster it has
 * a use of the handle, and not the pool's lock.
 *
 * Order of locks: a handle's, then the pool's. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "api/failure.h"
#include "common/mem.h"
#include "plog/client/dfc_plog_parts.h"
#include "plog/client/sender.h"

enum { MEMORY_BYTES = 512 << 20, REFRESH_MS = 20000, LOOKS = 4 };

struct dfc_plog_pool {
    struct dfc_plog_pool_options options;
    pthread_mutex_t lock;
    pthread_cond_t news;
    pthread_t keeper;
    bool is_over;
    uint64_t held;  /* bytes of all handles */
    bool was_above; /* the bound, since the keeper's last look */
    size_t count;
    struct dfc_plog *first;
};

/* True: all handles hold more than they may. */
static bool count_held(struct dfc_plog *p)
{
    struct dfc_plog_pool *pool = p->pool;
    const uint64_t held = plog_file_held(p->file) + sender_bytes(p->sender);
    pthread_mutex_lock(&pool->lock);
    pool->held += held - p->held;
    p->held = held;
    const bool is_above = pool->held > pool->options.memory_bytes;
    pool->was_above |= is_above;
    pthread_mutex_unlock(&pool->lock);
    return is_above;
}

/* --- the keeper ------------------------------------------------------------------------------- */

/* Has the handle held the same since the last look? */
static bool is_idle(struct dfc_plog *p)
{
    pthread_mutex_lock(&p->pool->lock);
    const bool is_same = p->held == p->looked;
    p->looked = p->held;
    pthread_mutex_unlock(&p->pool->lock);
    return is_same;
}

/* A store that failed is called again by the next look, and by the writer's sync, which tells. */
static void look_at(struct dfc_plog *p, bool was_above)
{
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&p->lock);
    if (p->file != NULL && p->sender != NULL) {
        (void)plog_file_refresh(p->file, &err);
        count_held(p);
        if (is_idle(p) && was_above)
            (void)plog_file_push(p->file, &err);
    }
    pthread_mutex_unlock(&p->lock);
}

static void leave_locked(struct dfc_plog *p)
{
    if (--p->uses == 0)
        plog_free(p);
}

/* With the pool's lock, which is free in between. */
static void look_at_all(struct dfc_plog_pool *pool)
{
    size_t count = 0;
    const bool was_above = pool->was_above;
    pool->was_above = false;
    struct dfc_plog **all = xcalloc(pool->count + 1, sizeof *all);
    for (struct dfc_plog *p = pool->first; p != NULL; p = p->next) {
        p->uses++;
        all[count++] = p;
    }
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < count; i++)
        look_at(all[i], was_above);
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < count; i++)
        leave_locked(all[i]);
    free(all);
}

static void *keep(void *ctx)
{
    struct dfc_plog_pool *pool = ctx;
    const uint64_t pause_ms = pool->options.refresh_ms / LOOKS + 1;
    pthread_mutex_lock(&pool->lock);
    while (!pool->is_over) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += (time_t)(pause_ms / 1000);
        until.tv_nsec += (long)(pause_ms % 1000 * 1000000);
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&pool->news, &pool->lock, &until) == ETIMEDOUT)
            look_at_all(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* --- the pool --------------------------------------------------------------------------------- */

int dfc_plog_pool_open(const struct dfc_plog_pool_options *o, struct dfc_plog_pool **out,
                       struct dfc_error *err)
{
    sigset_t all, before;
    pthread_condattr_t attr;
    struct dfc_plog_pool *pool = xcalloc(1, sizeof *pool);
    pool->options = *o;
    pool->options.memory_bytes = o->memory_bytes > 0 ? o->memory_bytes : MEMORY_BYTES;
    pool->options.refresh_ms = o->refresh_ms > 0 ? o->refresh_ms : REFRESH_MS;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->news, &attr);
    pthread_condattr_destroy(&attr);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int errnum = pthread_create(&pool->keeper, NULL, keep, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errnum == 0) {
        *out = pool;
        return DFC_OK;
    }
    pthread_cond_destroy(&pool->news);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
    return failure_errno(err, errnum, "start a thread");
}

void dfc_plog_pool_close(struct dfc_plog_pool *pool)
{
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->is_over = true;
    pthread_cond_signal(&pool->news);
    pthread_mutex_unlock(&pool->lock);
    pthread_join(pool->keeper, NULL);
    pthread_cond_destroy(&pool->news);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

uint64_t pool_refresh_ms(const struct dfc_plog_pool *pool)
{
    return pool != NULL ? pool->options.refresh_ms : 0;
}

/* --- handles ---------------------------------------------------------------------------------- */

void pool_enter(struct dfc_plog_pool *pool, struct dfc_plog *p)
{
    p->uses = 1;
    p->pool = pool;
    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    p->next = pool->first;
    pool->first = p;
    pool->count++;
    pthread_mutex_unlock(&pool->lock);
}

void pool_leave(struct dfc_plog *p)
{
    struct dfc_plog_pool *pool = p->pool;
    if (pool == NULL) {
        plog_free(p);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    struct dfc_plog **at = &pool->first;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    pool->count--;
    pool->held -= p->held;
    leave_locked(p);
    pthread_mutex_unlock(&pool->lock);
}

void pool_count(struct dfc_plog *p)
{
    if (p->pool != NULL && p->sender != NULL)
        count_held(p);
}

int pool_bound(struct dfc_plog *p, struct error *err)
{
    if (p->pool == NULL || p->sender == NULL || !count_held(p))
        return 0;
    int code = plog_file_push(p->file, err);
    if (code == 0)
        code = sender_flush(p->sender, err);
    count_held(p);
    return code;
}
