/* What a mount does by itself: commits, heartbeats, cleaning. */
#include <errno.h>
#include <stdatomic.h>

#include "common/clock.h"
#include "common/log.h"
#include "mount/volfs/compact.h"
#include "mount/volfs/garbage.h"
#include "mount/volfs/volfs_parts.h"
#include "mount/volume/trees/trees.h"

enum { TICK_MS = 1000, LEASES_IN_CLEANING = 3 };

/* True: the mount ends. */
static bool wait_ms(struct volfs *v, uint64_t ms)
{
    const struct timespec until = clock_after(ms);
    pthread_mutex_lock(&v->lock);
    while (!v->ends && pthread_cond_timedwait(&v->news, &v->lock, &until) == 0)
        continue;
    bool ends = v->ends;
    pthread_mutex_unlock(&v->lock);
    return ends;
}

static bool ends(void *context)
{
    struct volfs *v = context;
    pthread_mutex_lock(&v->lock);
    bool ends = v->ends;
    pthread_mutex_unlock(&v->lock);
    return ends;
}

static void clean_trash(struct volfs *v, uint64_t lease_ms)
{
    const struct volume_caller cleaner = {.uid = 0, .stops = ends, .context = v};
    int rc = volume_trash_clean(v->volume, &cleaner, lease_ms);
    if (rc != 0 && rc != -EINTR)
        log_warn("the trash is not emptied", lstr("volume", volume_format(v->volume)->name),
                 li64("error", -rc));
}

/* One mount at a time; what fails is tried again by the next cleaning. */
static void clean(struct volfs *v)
{
    struct garbage_tally removed;
    const uint64_t lease_ms = LEASES_IN_CLEANING * v->options.clean_ms;
    bool held, more = true;
    int rc = volume_lease(v->volume, lease_ms, &held);
    if (rc != 0 || !held)
        return;
    clean_trash(v, lease_ms);
    while (rc == 0 && more)
        rc = volume_clean(v->volume, &more);
    if (rc != 0)
        log_warn("removed files are not freed", lstr("volume", volume_format(v->volume)->name),
                 li64("error", -rc));
    atomic_store(&v->cleans_from, volume_next_slice(v->volume));
    compact_due(v);
    atomic_store(&v->cleans_from, UINT64_MAX);
    rc = garbage_remove(v->volume, &v->pendings.store, &removed);
    if (rc != 0)
        log_warn("cleaning failed", lstr("volume", volume_format(v->volume)->name),
                 li64("error", -rc));
}

/* Of slices that the cleaner takes, the least one is set before. */
static int settle(struct volfs *v)
{
    uint64_t pending = pendings_settled(&v->pendings);
    uint64_t cleans = atomic_load(&v->cleans_from);
    return volume_settled(v->volume, pending < cleans ? pending : cleans);
}

static uint64_t beat_ms(const struct volfs *v)
{
    return volume_format(v->volume)->session_ms / BEATS_IN_SESSION;
}

/* It waits for the metadata alone: a store that does not answer ends no session. */
void *volfs_heart(void *arg)
{
    struct volfs *v = arg;
    uint64_t pause_ms = beat_ms(v);
    while (!wait_ms(v, pause_ms))
        pause_ms = volume_beat(v->volume) == 0 ? beat_ms(v) : TICK_MS;
    return NULL;
}

void *volfs_upkeep(void *arg)
{
    struct volfs *v = arg;
    uint64_t settled = clock_ms();
    while (!wait_ms(v, TICK_MS)) {
        const uint64_t now = clock_ms();
        if (now > v->options.flush_ms) /* since the machine's start */
            pendings_commit(&v->pendings, now - v->options.flush_ms);
        if (now - settled >= beat_ms(v) && settle(v) == 0)
            settled = now;
    }
    return NULL;
}

/* It may move many bytes, and heartbeats do not wait for it. */
void *volfs_cleaner(void *arg)
{
    struct volfs *v = arg;
    while (!wait_ms(v, v->options.clean_ms))
        clean(v);
    return NULL;
}
