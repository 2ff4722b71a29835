#include "target/store/evict.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "cluster/documents/state_holder.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/thread.h"
#include "target/index/walk.h"
#include "target/store/lru_pick.h"

enum { PICKED_MAX = 65536 };

struct evictor {
    struct evictor_config config;
    pthread_t thread;
    pthread_mutex_t turn; /* of who evicts; above the next */
    pthread_mutex_t lock;
    pthread_cond_t woken;
    atomic_bool stop;
    metric_t *objects, *bytes;
};

/* One look at one mountpath. */
struct look {
    struct evictor *e;
    const struct cluster_state *state;
    struct mountpath *mp;
    const atomic_bool *stop; /* of the job, or the evictor's own */
    struct lru_pick *pick;
    struct evict_count *count;
    int64_t now_s;
};

static bool is_stopped(const struct look *l)
{
    return atomic_load(l->stop) || atomic_load(&l->e->stop);
}

/* --- what could go ---------------------------------------------------------------------------- */

/* The bucket whose names are walked. */
struct place {
    const struct look *look;
    const struct bucket *bucket;
};

static enum index_answer consider(void *ctx, const char *name, const struct index_record *rec)
{
    const struct place *p = ctx;
    const struct look *l = p->look;
    int64_t used_s;
    if (is_stopped(l))
        return INDEX_END;
    if (rec->tombstone || rec->pending || rec->job != NULL ||
        !object_used_at(l->mp, p->bucket->id, name, &used_s))
        return INDEX_PASS;
    int64_t min_age_s = (int64_t)(p->bucket->props.lru_min_age_ms / 1000);
    if (l->now_s - used_s >= min_age_s)
        lru_pick_add(l->pick, used_s, rec->size, p->bucket->id, name);
    return INDEX_PASS;
}

static int walk_buckets(const struct look *l, struct error *err)
{
    int code = index_check(l->mp->index, err);
    for (size_t i = 0; i < l->state->bmd.count && code == 0; i++) {
        const struct bucket *b = &l->state->bmd.buckets[i];
        struct place place = {.look = l, .bucket = b};
        struct index_walk w = {.bucket_id = b->id,
                               .stop = l->stop,
                               .more = b->props.backend != NULL && !b->props.lru_off};
        while (w.more && code == 0)
            code = index_walk(l->mp->index, &w, consider, &place, err);
    }
    return code;
}

/* --- one mountpath ---------------------------------------------------------------------------- */

/* One that cannot go, and comes first every time, keeps no other: the first error. */
static int evict_picked(const struct look *l, struct error *err)
{
    size_t count;
    int first = 0;
    const struct lru_item *items = lru_pick_finish(l->pick, &count);
    for (size_t i = 0; i < count && !is_stopped(l); i++) {
        bool gone = false;
        struct error why = ERROR_INIT;
        int code = object_evict(l->e->config.store, items[i].bucket_id, items[i].name,
                                items[i].used_s, &gone, &why);
        if (code != 0 && first == 0)
            first = error_set(err, code, "%s", why.message);
        l->count->objects += gone;
        l->count->bytes += gone ? items[i].size : 0;
        metric_add(l->e->objects, gone);
        metric_add(l->e->bytes, gone ? items[i].size : 0);
    }
    return first;
}

/* By sizes rather than by what the file system says meanwhile, which may free later. */
static int evict_bytes(struct look *l, uint64_t need, struct error *err)
{
    struct evict_count before = *l->count;
    l->pick = lru_pick_new(need, PICKED_MAX);
    int code = walk_buckets(l, err);
    if (code == 0)
        code = evict_picked(l, err);
    lru_pick_free(l->pick);
    if (l->count->objects > before.objects)
        log_info("objects evicted", lstr("mountpath", l->mp->path),
                 lu64("objects", l->count->objects - before.objects),
                 lu64("bytes", l->count->bytes - before.bytes));
    return code;
}

int evictor_make_room(struct evictor *e, struct mountpath *mp, uint64_t need_bytes,
                      const atomic_bool *stop, struct evict_count *count, struct error *err)
{
    _cleanup_state_ const struct cluster_state *state = state_current(e->config.state);
    struct look l = {.e = e,
                     .state = state,
                     .mp = mp,
                     .stop = stop,
                     .count = count,
                     .now_s = clock_wall_ms() / 1000};
    return evict_bytes(&l, need_bytes, err);
}

static int evict_mountpath(struct evictor *e, struct mountpath *mp, bool from_low,
                           const atomic_bool *stop, struct evict_count *count, struct error *err)
{
    const struct space_limits *limits = e->config.limits;
    struct space s;
    int code = mountpath_capacity(mp, &s.total, &s.available, err);
    if (code != 0)
        return code;
    if (!from_low && space_state(limits, &s, SPACE_FINE) == SPACE_FINE)
        return 0;
    uint64_t used = s.total - s.available, keep = s.total / 100 * limits->low;
    return used > keep ? evictor_make_room(e, mp, used - keep, stop, count, err) : 0;
}

static int evict_all(struct evictor *e, bool from_low, const atomic_bool *stop,
                     struct evict_count *count, struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(object_store_mountpaths(e->config.store));
    int first = 0;
    pthread_mutex_lock(&e->turn);
    last_use_write(e->config.last_use);
    for (size_t i = 0; i < set->count && set->settled && !e->stop && !*stop; i++) {
        struct error why = ERROR_INIT;
        int code = evict_mountpath(e, set->all[i], from_low, stop, count, &why);
        if (code != 0 && first == 0)
            first = error_set(err, code, "evict from '%s': %s", set->all[i]->path, why.message);
    }
    pthread_mutex_unlock(&e->turn);
    return first;
}

int evictor_run(struct evictor *e, const atomic_bool *stop, struct evict_count *count,
                struct error *err)
{
    return evict_all(e, true, stop, count, err);
}

/* --- the thread ------------------------------------------------------------------------------- */

static void evictor_wait(struct evictor *e)
{
    uint64_t until_ms = clock_ms() + e->config.interval_ms;
    const struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                                   .tv_nsec = (long)(until_ms % 1000) * 1000000};
    int rc = 0;
    pthread_mutex_lock(&e->lock);
    while (!e->stop && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&e->woken, &e->lock, &until);
    pthread_mutex_unlock(&e->lock);
}

static void *evictor_main(void *arg)
{
    struct evictor *e = arg;
    while (!e->stop) {
        struct evict_count count = {0};
        struct error err = ERROR_INIT;
        evictor_wait(e);
        if (!e->stop && evict_all(e, false, &e->stop, &count, &err) != 0)
            log_warn("eviction failed", lerr(&err));
    }
    return NULL;
}

static void evictor_destroy(struct evictor *e)
{
    pthread_cond_destroy(&e->woken);
    pthread_mutex_destroy(&e->lock);
    pthread_mutex_destroy(&e->turn);
    free(e);
}

int evictor_new(const struct evictor_config *config, struct evictor **out, struct error *err)
{
    struct evictor *e = xcalloc(1, sizeof *e);
    e->config = *config;
    e->objects = metric_get(M_evicted_total, NULL);
    e->bytes = metric_get(M_evicted_bytes_total, NULL);
    pthread_mutex_init(&e->turn, NULL);
    pthread_mutex_init(&e->lock, NULL);
    condition_init(&e->woken);
    int code = thread_start("evictor", evictor_main, e, &e->thread, err);
    if (code != 0) {
        evictor_destroy(e);
        return code;
    }
    *out = e;
    return 0;
}

void evictor_free(struct evictor *e)
{
    if (e == NULL)
        return;
    pthread_mutex_lock(&e->lock);
    e->stop = true;
    pthread_cond_signal(&e->woken);
    pthread_mutex_unlock(&e->lock);
    pthread_join(e->thread, NULL);
    evictor_destroy(e);
}
