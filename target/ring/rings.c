#include "target/ring/rings.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "io/file.h"
#include "io/pool.h"
#include "io/thread.h"
#include "target/node/target.h"
#include "target/node/thread_classes.h"
#include "target/ring/keep.h"
#include "target/ring/ring.h"
#include "target/ring/status.h"
#include "target/ring/waits.h"

struct rings {
    struct target *target;
    struct pool *keepers, *lanes;
    struct ring_waits *waits;
    pthread_t ticker;
    bool has_ticker;
    pthread_mutex_t lock; /* of what follows, and of the rings' last fields */
    pthread_cond_t woken;
    bool stop, wanted;
    uint64_t memory;                               /* of pushes under way */
    uint64_t swept_version, map_version, shown_ms; /* the ticker's */
    struct ring *first;
};

/* --- references ------------------------------------------------------------------------------- */

static struct ring *ref(struct ring *r)
{
    struct rings *all = r->target->rings;
    pthread_mutex_lock(&all->lock);
    r->refs++;
    pthread_mutex_unlock(&all->lock);
    return r;
}

void rings_unref(struct ring *r)
{
    struct rings *all = r->target->rings;
    pthread_mutex_lock(&all->lock);
    const bool last = --r->refs == 0;
    pthread_mutex_unlock(&all->lock);
    if (last)
        ring_free(r);
}

/* With the lock. */
static struct ring *find(struct rings *all, uint64_t id)
{
    struct ring *r = all->first;
    while (r != NULL && r->bucket_id != id)
        r = r->next;
    return r;
}

int rings_get(struct rings *all, const struct cluster_state *s, const struct bucket *b,
              struct ring **out, struct error *err)
{
    if (b->props.ring_cap == 0)
        return error_set(err, E_RING, "bucket '%s' is no ring: create one with --ring cap=N",
                         b->name);
    if (state_bucket_is_closed(s, b))
        return error_set(err, E_NOT_READY, "ring '%s' is being destroyed", b->name);
    pthread_mutex_lock(&all->lock);
    struct ring *r = find(all, b->id);
    if (r == NULL) {
        r = ring_new(all->target, b->id);
        r->refs = 1; /* of the list */
        r->next = all->first;
        all->first = r;
    }
    r->refs++;
    pthread_mutex_unlock(&all->lock);
    *out = r;
    return 0;
}

bool rings_take_memory(struct rings *all, uint64_t bytes)
{
    pthread_mutex_lock(&all->lock);
    const bool is_free = all->memory == 0 || all->memory + bytes <= all->target->params.ring_memory;
    all->memory += is_free ? bytes : 0;
    pthread_mutex_unlock(&all->lock);
    return is_free;
}

void rings_give_memory(struct rings *all, uint64_t bytes)
{
    pthread_mutex_lock(&all->lock);
    all->memory -= bytes;
    pthread_mutex_unlock(&all->lock);
}

/* --- calls that wait -------------------------------------------------------------------------- */

static void serve_waits(struct rings *all)
{
    struct ring_wait *wait;
    while ((wait = ring_waits_take(all->waits, clock_ms())) != NULL) {
        if (pool_submit(all->lanes, wait->reply, wait->arg, NULL) != 0)
            wait->reply(wait->arg);
    }
}

int rings_wait(struct rings *all, struct ring_wait *wait, struct error *err)
{
    struct ring *r = ref(wait->ring);
    int code = ring_waits_add(all->waits, wait, err); /* it may be taken, and gone, from here on */
    if (code == 0)
        rings_wake(r); /* it may be due by now; and the ring may not have had a step */
    rings_unref(r);
    return code;
}

/* --- steps ------------------------------------------------------------------------------------ */

void rings_wake(struct ring *r)
{
    struct rings *all = r->target->rings;
    pthread_mutex_lock(&all->lock);
    ring_pace_wake(&r->pace);
    all->wanted = true;
    pthread_cond_signal(&all->woken);
    pthread_mutex_unlock(&all->lock);
}

void rings_state_changed(struct rings *all)
{
    pthread_mutex_lock(&all->lock);
    all->wanted = true;
    pthread_cond_signal(&all->woken);
    pthread_mutex_unlock(&all->lock);
}

static void step_in_thread(void *arg)
{
    struct ring *r = arg;
    struct rings *all = r->target->rings;
    bool more;
    const int code = ring_step(r, &more);
    pthread_mutex_lock(&all->lock);
    r->running = false;
    ring_pace_end(&r->pace, code != 0, more || (code != 0 && code != E_BUCKET_NOT_FOUND));
    all->wanted = true; /* for calls that wait for a generation */
    pthread_cond_signal(&all->woken);
    pthread_mutex_unlock(&all->lock);
    rings_unref(r);
}

/* When the ring's next step is due; with the lock. */
static uint64_t due_ms(const struct rings *all, const struct ring *r)
{
    const struct target_params *p = &all->target->params;
    return ring_pace_due_ms(&r->pace, p->ring_interval, p->ring_heartbeat);
}

/* With the lock.  When the next one is due. */
static uint64_t start_due(struct rings *all, uint64_t now_ms)
{
    uint64_t next_ms = now_ms + all->target->params.ring_heartbeat;
    for (struct ring *r = all->first; r != NULL; r = r->next) {
        if (!r->running && due_ms(all, r) <= now_ms) {
            r->running = true;
            ring_pace_begin(&r->pace, now_ms);
            r->refs++;
            if (pool_submit(all->keepers, step_in_thread, r, NULL) != 0) {
                r->running = false; /* all threads are busy: it has its next turn */
                r->refs--;
            }
        }
        if (!r->running && due_ms(all, r) < next_ms)
            next_ms = due_ms(all, r);
    }
    return next_ms;
}

/* --- the rings that there are ----------------------------------------------------------------- */

static void add_all(struct rings *all, const struct cluster_state *s)
{
    for (size_t i = 0; i < s->bmd.count; i++) {
        struct ring *r;
        if (rings_get(all, s, &s->bmd.buckets[i], &r, NULL) == 0)
            rings_unref(r);
    }
}

/* Takes out one whose bucket is gone: the list's reference is the caller's. */
static struct ring *take_gone(struct rings *all, const struct cluster_state *s)
{
    struct ring **at = &all->first;
    pthread_mutex_lock(&all->lock);
    while (*at != NULL && !state_bucket_is_gone(s, (*at)->bucket_id))
        at = &(*at)->next;
    struct ring *r = *at;
    if (r != NULL)
        *at = r->next;
    pthread_mutex_unlock(&all->lock);
    return r;
}

struct sweep {
    const struct cluster_state *state;
    struct mountpath *mp;
};

/* What was destroyed while the target was away. */
static int sweep_dir(void *ctx, const char *dir, struct error *err)
{
    const struct sweep *s = ctx;
    uint64_t id;
    if (parse_u64(dir, &id, NULL) != 0 || !state_bucket_is_gone(s->state, id))
        return 0;
    _cleanup_free_ char *path = lanes_dir(s->mp, id);
    return mountpath_failed(s->mp, file_remove_tree(path, err));
}

static void sweep_all(const struct rings *all, const struct cluster_state *s)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(all->target->mountpaths);
    for (size_t i = 0; i < set->count; i++) {
        struct error err = ERROR_INIT;
        struct sweep sweep = {.state = s, .mp = set->all[i]};
        if (lanes_each(set->all[i], 0, sweep_dir, &sweep, &err) != 0)
            log_warn("what is left of a destroyed ring cannot be removed", lerr(&err));
    }
}

static void report_all(struct rings *all)
{
    pthread_mutex_lock(&all->lock);
    for (struct ring *r = all->first; r != NULL; r = r->next)
        ring_pace_map_changed(&r->pace);
    pthread_mutex_unlock(&all->lock);
}

static void follow_state(struct rings *all)
{
    struct ring *gone;
    _cleanup_state_ const struct cluster_state *s = state_current(all->target->state);
    if (s->version == all->swept_version)
        return;
    add_all(all, s);
    while ((gone = take_gone(all, s)) != NULL) {
        struct error err = ERROR_INIT;
        if (ring_remove(gone, &err) != 0)
            log_warn("a destroyed ring cannot be removed", lerr(&err));
        rings_unref(gone);
    }
    sweep_all(all, s);
    if (s->smap.version != all->map_version)
        report_all(all);
    all->swept_version = s->version;
    all->map_version = s->smap.version;
}

/* Of all rings, once in ring_heartbeat. */
static void show_totals(struct rings *all)
{
    struct ring_totals sum = {.rings = 0};
    const uint64_t now_ms = clock_ms();
    if (now_ms - all->shown_ms < all->target->params.ring_heartbeat)
        return;
    _cleanup_state_ const struct cluster_state *s = state_current(all->target->state);
    for (size_t i = 0; i < s->bmd.count; i++) {
        struct ring *r = NULL;
        const struct bucket *b = &s->bmd.buckets[i];
        if (b->props.ring_cap == 0 || rings_get(all, s, b, &r, NULL) != 0)
            continue;
        ring_add_totals(r, b, &sum);
        rings_unref(r);
    }
    ring_totals_show(&sum);
    all->shown_ms = now_ms;
}

static void *ticker_main(void *arg)
{
    struct rings *all = arg;
    pthread_mutex_lock(&all->lock);
    while (!all->stop) {
        all->wanted = false;
        pthread_mutex_unlock(&all->lock);
        follow_state(all);
        serve_waits(all);
        show_totals(all);
        const uint64_t latest_ms =
            ring_waits_next_ms(all->waits, clock_ms() + all->target->params.ring_heartbeat);
        pthread_mutex_lock(&all->lock);
        if (all->stop)
            break;
        const uint64_t now_ms = clock_ms(), due_ms = start_due(all, now_ms);
        const uint64_t next_ms = due_ms < latest_ms ? due_ms : latest_ms;
        const struct timespec until = clock_after(next_ms > now_ms ? next_ms - now_ms : 0);
        int rc = 0;
        while (!all->stop && !all->wanted && rc != ETIMEDOUT)
            rc = pthread_cond_timedwait(&all->woken, &all->lock, &until);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* --- their life ------------------------------------------------------------------------------- */

int rings_new(struct target *t, struct rings **out, struct error *err)
{
    struct rings *all = xcalloc(1, sizeof *all);
    all->target = t;
    all->waits = ring_waits_new(t->params.ring_waits_max);
    pthread_mutex_init(&all->lock, NULL);
    condition_init(&all->woken);
    *out = all;
    int code = thread_class_new(THREADS_RING_KEEPER, &t->params, &all->keepers, err);
    if (code == 0)
        code = thread_class_new(THREADS_RING_LANE, &t->params, &all->lanes, err);
    if (code == 0)
        code = thread_start("rings", ticker_main, all, &all->ticker, err);
    all->has_ticker = code == 0;
    return code;
}

void rings_stop(struct rings *all)
{
    if (all == NULL)
        return;
    pthread_mutex_lock(&all->lock);
    all->stop = true;
    pthread_cond_signal(&all->woken);
    pthread_mutex_unlock(&all->lock);
    if (all->has_ticker)
        pthread_join(all->ticker, NULL);
    all->has_ticker = false;
    ring_waits_stop(all->waits);
    serve_waits(all);
}

void rings_free(struct rings *all)
{
    if (all == NULL)
        return;
    rings_stop(all);
    pool_free(all->keepers);
    pool_free(all->lanes);
    while (all->first != NULL) {
        struct ring *r = all->first;
        all->first = r->next;
        rings_unref(r);
    }
    ring_waits_free(all->waits);
    pthread_cond_destroy(&all->woken);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

int rings_run(struct rings *all, void (*fn)(void *arg), void *arg, struct error *err)
{
    return pool_submit(all->lanes, fn, arg, err);
}

int rings_run_long(struct rings *all, void (*fn)(void *arg), void *arg, struct error *err)
{
    return pool_submit(all->keepers, fn, arg, err);
}
