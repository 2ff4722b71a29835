#include "target/store/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "cluster/placement/lag.h"
#include "cluster/documents/state_holder.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "io/thread.h"
#include "target/format/ec_manifest.h"
#include "target/index/walk.h"

enum { DROP_AT_ONCE = 1000 };

/* One look of one kind: fn() on every mountpath, whatever fails on others; the first error. */
struct look {
    struct object_store *store;
    const struct cluster_state *state;
    int64_t older_than_ms;
    const struct sweep_keeps *keeps; /* of tombstones */
    const atomic_bool *stop;
    struct sweep_count *count;
};

static int first_of(int first, int code, struct error *err, const struct error *why)
{
    if (first == 0 && code != 0 && err != NULL)
        *err = *why;
    return first != 0 ? first : code;
}

static int on_each(const struct look *look,
                   int (*fn)(const struct look *look, struct mountpath *mp, struct error *err),
                   struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *all =
        mountpaths_current(object_store_mountpaths(look->store));
    int first = 0;
    for (size_t i = 0; i < all->count && !*look->stop; i++) {
        struct error why = ERROR_INIT;
        first = first_of(first, fn(look, all->all[i], &why), err, &why);
    }
    return first;
}

/* --- dead buckets ----------------------------------------------------------------------------- */

static bool is_dead(const struct cluster_state *s, uint64_t bucket_id)
{
    return state_bucket_is_gone(s, ec_bucket_of_slices(bucket_id));
}

static int drop_from_index(struct index *x, uint64_t bucket_id, const atomic_bool *stop,
                           struct error *err)
{
    int code = 0;
    for (bool done = false; code == 0 && !done && !*stop;)
        code = index_drop_some(x, bucket_id, DROP_AT_ONCE, &done, err);
    return code;
}

static int trash_dead_directories(const struct look *look, struct mountpath *mp, struct error *err)
{
    _cleanup_free_ uint64_t *ids = NULL;
    size_t count;
    int code = mountpath_buckets(mp, &ids, &count, err);
    for (size_t i = 0; i < count && code == 0; i++) {
        if (!is_dead(look->state, ids[i]))
            continue;
        code = mountpath_trash_bucket(mp, ids[i], err);
        look->count->buckets += code == 0;
        log_info("bucket removed", lstr("mountpath", mp->path), lu64("id", ids[i]));
    }
    return code;
}

static int drop_dead_entries(struct mountpath *mp, const struct cluster_state *s,
                             const atomic_bool *stop, struct error *err)
{
    uint64_t id = 0;
    int found;
    while ((found = index_next_bucket(mp->index, id, &id, err)) == 1 && !*stop) {
        int code = is_dead(s, id) ? drop_from_index(mp->index, id, stop, err) : 0;
        if (code != 0)
            return code;
    }
    return found < 0 ? found : 0;
}

static int remove_dead(const struct look *look, struct mountpath *mp, struct error *err)
{
    int code = trash_dead_directories(look, mp, err);
    if (code == 0)
        code = drop_dead_entries(mp, look->state, look->stop, err);
    return code != 0 ? code : mountpath_empty_trash(mp, look->stop, err);
}

int sweep_dead_buckets(struct object_store *store, const struct cluster_state *s,
                       const atomic_bool *stop, struct sweep_count *count, struct error *err)
{
    const struct look look = {.store = store, .state = s, .stop = stop, .count = count};
    return on_each(&look, remove_dead, err);
}

/* --- old tombstones --------------------------------------------------------------------------- */

static bool is_old_tombstone(const void *ctx, const char *name, const struct index_record *rec)
{
    const struct look *look = ctx;
    (void)name;
    return rec->tombstone && !rec->pending && rec->modified_ms < look->older_than_ms;
}

/* What has come since it was collected is younger, or took the place of a tombstone alone. */
static bool is_kept(const struct look *look, uint64_t bucket_id, const char *name)
{
    const struct sweep_keeps *k = look->keeps;
    return k->name != NULL && k->name(k->arg, bucket_id, name);
}

/* What is wrong with one name is not with the next; what is with the disk, is. */
static int forget_batch(const struct look *look, const struct index_batch *b, struct error *err)
{
    int first = 0;
    for (size_t i = 0; i < b->count && first != E_IO && first != E_NO_SPACE && !*look->stop; i++) {
        struct error why = ERROR_INIT;
        if (is_kept(look, b->walk.bucket_id, b->names[i]))
            continue;
        int code = object_forget_tombstone(look->store, b->walk.bucket_id, b->names[i],
                                           look->older_than_ms, &why);
        look->count->tombstones += code == 0;
        first = first_of(first, code, err, &why);
    }
    return first;
}

static int sweep_bucket(const struct look *look, struct index *x, uint64_t bucket_id,
                        struct error *err)
{
    _cleanup_(index_batch_freep)
    struct index_batch *b = index_batch_new(bucket_id, look->stop, is_old_tombstone, look);
    int code = 0, first = 0;
    while (code == 0 && b->walk.more) {
        struct error why = ERROR_INIT;
        code = index_batch_fill(b, x, &why);
        first = first_of(first, code, err, &why);
        if (code == 0)
            first = first_of(first, forget_batch(look, b, &why), err, &why);
    }
    return first;
}

static int remove_tombstones(const struct look *look, struct mountpath *mp, struct error *err)
{
    struct error why = ERROR_INIT;
    uint64_t id = 0;
    int found = 1, first = 0;
    while (!*look->stop && (found = index_next_bucket(mp->index, id, &id, &why)) == 1)
        first = first_of(first, sweep_bucket(look, mp->index, id, &why), err, &why);
    return first_of(first, found < 0 ? found : 0, err, &why);
}

/* While the set is not settled a tombstone may hide an older copy elsewhere: all stay. */
int sweep_tombstones(struct object_store *store, int64_t older_than_ms,
                     const struct sweep_keeps *keeps, const atomic_bool *stop,
                     struct sweep_count *count, struct error *err)
{
    _cleanup_mountpath_set_ const struct mountpath_set *all =
        mountpaths_current(object_store_mountpaths(store));
    const struct look look = {.store = store,
                              .older_than_ms = older_than_ms,
                              .keeps = keeps,
                              .stop = stop,
                              .count = count};
    return all->settled ? on_each(&look, remove_tombstones, err) : 0;
}

/* --- abandoned files -------------------------------------------------------------------------- */

/* What stands in tmp/ is being written, or its removal failed.  The time of its last change tells:
 * an upload that moves no byte is cut after idle_timeout.  One that is removed all the same fails
 * at its rename, and its client is told. */
static int remove_if_old(const struct look *look, const struct mountpath *mp, const char *name,
                         struct error *err)
{
    struct stat st;
    _cleanup_free_ char *path = xprintf("%s/.dfc/tmp/%s", mp->path, name);
    if (fstatat(mp->tmp_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : error_errno(err, errno, "look at '%s'", path);
    if ((int64_t)st.st_mtim.tv_sec * 1000 >= look->older_than_ms)
        return 0;
    int code = file_remove_tree(path, err);
    look->count->files += code == 0;
    return code;
}

static int remove_abandoned(const struct look *look, struct mountpath *mp, struct error *err)
{
    _cleanup_free_ char *path = xprintf("%s/.dfc/tmp", mp->path);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return error_errno(err, errno, "open '%s'", path);
    int first = 0;
    for (const struct dirent *e; !*look->stop && (e = readdir(dir)) != NULL;) {
        struct error why = ERROR_INIT;
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            first = first_of(first, remove_if_old(look, mp, e->d_name, &why), err, &why);
    }
    closedir(dir);
    return first;
}

int sweep_abandoned(struct object_store *store, int64_t older_than_ms, const atomic_bool *stop,
                    struct sweep_count *count, struct error *err)
{
    const struct look look = {
        .store = store, .older_than_ms = older_than_ms, .stop = stop, .count = count};
    return on_each(&look, remove_abandoned, err);
}

/* --- flushing --------------------------------------------------------------------------------- */

static int flush_one(const struct look *look, struct mountpath *mp, struct error *err)
{
    (void)look;
    return mountpath_failed(mp, crash_state_flush(mp->crash_state, err));
}

int sweep_flush(struct object_store *store, const atomic_bool *stop, struct error *err)
{
    const struct look look = {.store = store, .stop = stop};
    return on_each(&look, flush_one, err);
}

/* --- the thread ------------------------------------------------------------------------------- */

struct sweeper {
    struct sweeper_config config;
    pthread_t thread;
    atomic_bool stop;
    pthread_mutex_t turn; /* held by who removes; nothing else is locked before it */
    pthread_mutex_t lock; /* of the fields below */
    pthread_cond_t woken;
    bool wanted;
};

typedef int look_fn(const struct sweeper *s, const atomic_bool *stop, struct sweep_count *count,
                    struct error *err);

static int buckets(const struct sweeper *s, const atomic_bool *stop, struct sweep_count *count,
                   struct error *err)
{
    _cleanup_state_ const struct cluster_state *state = state_current(s->config.state);
    return sweep_dead_buckets(s->config.store, state, stop, count, err);
}

/* A tombstone may stand against an older copy elsewhere. */
static int tombstones(const struct sweeper *s, const atomic_bool *stop, struct sweep_count *count,
                      struct error *err)
{
    _cleanup_state_ const struct cluster_state *now = state_current(s->config.state);
    const struct sweep_keeps *keeps = &s->config.keeps;
    if (!lag_lets_forget(now))
        return 0;
    if (keeps->all != NULL && keeps->all(keeps->arg, now))
        return 0;
    int64_t older_than = clock_wall_ms() - (int64_t)s->config.tombstone_ttl_ms;
    return sweep_tombstones(s->config.store, older_than, keeps, stop, count, err);
}

static int abandoned(const struct sweeper *s, const atomic_bool *stop, struct sweep_count *count,
                     struct error *err)
{
    int64_t older_than = clock_wall_ms() - (int64_t)s->config.abandoned_ms;
    return sweep_abandoned(s->config.store, older_than, stop, count, err);
}

/* Buckets come last: a PUT may be late, and make one anew. */
static const struct {
    look_fn *look;
    const char *what;
} looks[] = {
    {tombstones, "removing old tombstones"},
    {abandoned, "removing abandoned files"},
    {buckets, "removing destroyed buckets"},
};
enum { LOOKS = sizeof looks / sizeof *looks };

static void look_for_buckets(struct sweeper *s)
{
    struct error err = ERROR_INIT;
    struct sweep_count count = {0};
    pthread_mutex_lock(&s->turn);
    if (buckets(s, &s->stop, &count, &err) != 0)
        log_warn("removing destroyed buckets", lerr(&err));
    pthread_mutex_unlock(&s->turn);
}

/* One that fails does not keep the others. */
static void look_for_all(struct sweeper *s)
{
    struct sweep_count count = {0};
    pthread_mutex_lock(&s->turn);
    for (size_t i = 0; i < LOOKS; i++) {
        struct error err = ERROR_INIT;
        if (looks[i].look(s, &s->stop, &count, &err) != 0)
            log_warn(looks[i].what, lerr(&err));
    }
    pthread_mutex_unlock(&s->turn);
}

int sweeper_clean(struct sweeper *s, const atomic_bool *stop, struct sweep_count *count,
                  struct error *err)
{
    int first = 0;
    pthread_mutex_lock(&s->turn);
    for (size_t i = 0; i < LOOKS && !*stop; i++) {
        struct error why = ERROR_INIT;
        int code = looks[i].look(s, stop, count, &why);
        if (code != 0 && first == 0)
            first = error_set(err, code, "%s: %s", looks[i].what, why.message);
    }
    pthread_mutex_unlock(&s->turn);
    return first;
}

static void flush(struct sweeper *s)
{
    struct error err = ERROR_INIT;
    if (sweep_flush(s->config.store, &s->stop, &err) != 0)
        log_warn("flushing what was written without sync", lerr(&err));
}

/* True: woken; false: the time has come. */
static bool sweeper_wait(struct sweeper *s, uint64_t until_ms)
{
    struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                             .tv_nsec = (long)(until_ms % 1000) * 1000000};
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    while (!s->wanted && !s->stop && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&s->woken, &s->lock, &until);
    bool woken = s->wanted;
    s->wanted = false;
    pthread_mutex_unlock(&s->lock);
    return woken;
}

/* Has *at_ms come?  Then it is the next time. */
static bool is_time(const struct sweeper *s, uint64_t *at_ms, uint64_t interval_ms)
{
    uint64_t now_ms = clock_ms();
    if (now_ms < *at_ms || s->stop)
        return false;
    *at_ms = now_ms + interval_ms;
    return true;
}

static void *sweeper_main(void *arg)
{
    struct sweeper *s = arg;
    uint64_t next_ms = clock_ms() + s->config.interval_ms;
    uint64_t flush_ms = clock_ms() + s->config.flush_ms;
    look_for_buckets(s);
    while (!s->stop) {
        if (sweeper_wait(s, next_ms < flush_ms ? next_ms : flush_ms))
            look_for_buckets(s);
        if (is_time(s, &flush_ms, s->config.flush_ms))
            flush(s);
        if (is_time(s, &next_ms, s->config.interval_ms))
            look_for_all(s);
    }
    return NULL;
}

int sweeper_new(const struct sweeper_config *config, struct sweeper **out, struct error *err)
{
    struct sweeper *s = xcalloc(1, sizeof *s);
    s->config = *config;
    pthread_mutex_init(&s->turn, NULL);
    pthread_mutex_init(&s->lock, NULL);
    condition_init(&s->woken);
    int code = thread_start("sweeper", sweeper_main, s, &s->thread, err);
    if (code != 0) {
        pthread_cond_destroy(&s->woken);
        pthread_mutex_destroy(&s->lock);
        pthread_mutex_destroy(&s->turn);
        free(s);
        return code;
    }
    *out = s;
    return 0;
}

void sweeper_wake(struct sweeper *s)
{
    pthread_mutex_lock(&s->lock);
    s->wanted = true;
    pthread_cond_signal(&s->woken);
    pthread_mutex_unlock(&s->lock);
}

void sweeper_free(struct sweeper *s)
{
    if (s == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->woken);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->woken);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->turn);
    free(s);
}
