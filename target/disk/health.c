#include "target/disk/health.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "io/file.h"
#include "io/meter.h"
#include "io/thread.h"

enum { PIECE = 64 * 1024 };

/* --- the test --------------------------------------------------------------------------------- */

static void fill(char *piece, size_t len, struct rng *rng)
{
    for (size_t i = 0; i < len; i += sizeof(uint64_t)) {
        uint64_t word = rng_next(rng);
        memcpy(piece + i, &word, len - i < sizeof word ? len - i : sizeof word);
    }
}

static int write_pattern(int fd, uint64_t bytes, uint64_t seed, struct error *err)
{
    struct rng rng;
    _cleanup_free_ char *piece = xmalloc(PIECE);
    int code = 0;
    rng_seed(&rng, seed);
    for (uint64_t at = 0; at < bytes && code == 0; at += PIECE) {
        size_t len = bytes - at < PIECE ? (size_t)(bytes - at) : PIECE;
        fill(piece, len, &rng);
        code = file_write_all(fd, piece, len, err);
    }
    int errnum = code == 0 ? file_sync(fd, "sync.file") : 0;
    return errnum == 0 ? code : error_errno(err, errnum, "sync");
}

/* From the disk, not from memory. */
static int read_pattern(int fd, uint64_t bytes, uint64_t seed, struct error *err)
{
    struct rng rng;
    _cleanup_free_ char *want = xmalloc(PIECE), *got = xmalloc(PIECE);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    rng_seed(&rng, seed);
    for (uint64_t at = 0; at < bytes; at += PIECE) {
        size_t len = bytes - at < PIECE ? (size_t)(bytes - at) : PIECE;
        int code = file_pread_full(fd, got, len, at, err);
        if (code != 0)
            return code;
        fill(want, len, &rng);
        if (memcmp(want, got, len) != 0)
            return error_set(err, E_CORRUPT, "other bytes are read than were written");
    }
    return 0;
}

static int test_file(int fd, uint64_t bytes, struct error *err)
{
    uint64_t seed;
    random_bytes(&seed, sizeof seed);
    int code = write_pattern(fd, bytes, seed, err);
    return code != 0 ? code : read_pattern(fd, bytes, seed, err);
}

int health_test(struct mountpath *mp, uint64_t bytes, struct error *err)
{
    char name[MOUNTPATH_TMP_NAME];
    mountpath_tmp_name(mp, name);
    _cleanup_close_ int fd = openat(mp->tmp_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EROFS)
        return error_set(err, E_UNSUPPORTED, "'%s' is read-only", mp->path);
    if (fd < 0)
        return error_errno(err, errno, "test '%s'", mp->path);
    int code = test_file(fd, bytes, err);
    if (unlinkat(mp->tmp_fd, name, 0) != 0 && code == 0)
        code = error_errno(err, errno, "remove");
    return code == 0 ? 0 : error_recode(err, code, "test '%s'", mp->path);
}

/* --- trials: tests under way, and closing ----------------------------------------------------- */

struct trial {
    struct trial *next;
    struct health *health;
    const struct mountpath_set *set; /* holds mp open */
    struct mountpath *mp;            /* NULL: what nobody holds is closed */
    pthread_t thread;
    uint64_t began_ms;
    bool given_up; /* it took too long, and was judged by that */
    struct error err;
    atomic_bool ended;
};

struct health {
    struct health_config config;
    pthread_t thread;
    pthread_mutex_t lock; /* of `stop` */
    pthread_cond_t woken;
    bool stop;
    struct trial *trials; /* the thread's */
};

static void *trial_main(void *arg)
{
    struct trial *t = arg;
    if (t->mp == NULL)
        mountpaths_reap(t->health->config.mountpaths);
    else
        (void)health_test(t->mp, t->health->config.test_bytes, &t->err);
    atomic_store(&t->ended, true);
    return NULL;
}

static void trial_free(struct trial *t)
{
    mountpath_set_unref(t->set);
    free(t);
}

static void trial_start(struct health *h, const struct mountpath_set *set, struct mountpath *mp)
{
    struct trial *t = xcalloc(1, sizeof *t);
    struct error err = ERROR_INIT;
    *t = (struct trial){.health = h, .mp = mp, .began_ms = clock_ms(), .err = ERROR_INIT};
    t->set = mp != NULL ? mountpath_set_ref(set) : NULL;
    if (thread_start(mp != NULL ? "health-test" : "closer", trial_main, t, &t->thread, &err) != 0) {
        log_warn("mountpath not tested", lerr(&err));
        trial_free(t);
        return;
    }
    t->next = h->trials;
    h->trials = t;
}

static bool is_tried(const struct health *h, const struct mountpath *mp_or_null)
{
    for (const struct trial *t = h->trials; t != NULL; t = t->next) {
        if (t->mp == mp_or_null)
            return true;
    }
    return false;
}

/* --- verdicts --------------------------------------------------------------------------------- */

static void take_out(struct health *h, struct mountpath *mp, const char *why)
{
    struct error err = ERROR_INIT;
    if (mountpaths_disable(h->config.mountpaths, mountpath_id(mp), why, true, &err) != 0)
        log_error("bad mountpath not disabled", lstr("mountpath", mp->path), lerr(&err));
}

static bool has_too_many_errors(const struct health *h, const struct mountpath *mp)
{
    return mp->health.in_window >= h->config.errors_max;
}

static void judge(struct health *h, const struct trial *t)
{
    struct mountpath *mp = t->mp;
    if (t->err.code == E_IO || t->err.code == E_CORRUPT) {
        take_out(h, mp, t->err.message);
    } else if (t->err.code != 0) {
        log_warn("suspect mountpath not tested", lstr("mountpath", mp->path), lerr(&t->err));
    } else if (has_too_many_errors(h, mp)) {
        _cleanup_free_ char *why =
            xprintf("%llu I/O errors within %llu s", (unsigned long long)mp->health.in_window,
                    (unsigned long long)(h->config.window_ms / 1000));
        take_out(h, mp, why);
    } else {
        log_warn("suspect mountpath passed its test", lstr("mountpath", mp->path),
                 lu64("errors", mp->health.in_window));
    }
}

static void give_up(struct health *h, struct trial *t)
{
    _cleanup_free_ char *why = xprintf("a test has not ended after %llu ms",
                                       (unsigned long long)h->config.test_timeout_ms);
    t->given_up = true;
    take_out(h, t->mp, why);
}

static void look_at_trials(struct health *h)
{
    for (struct trial **at = &h->trials; *at != NULL;) {
        struct trial *t = *at;
        if (!atomic_load(&t->ended)) {
            if (t->mp != NULL && !t->given_up &&
                clock_ms() - t->began_ms > h->config.test_timeout_ms)
                give_up(h, t);
            at = &t->next;
            continue;
        }
        *at = t->next;
        pthread_join(t->thread, NULL);
        if (t->mp != NULL && !t->given_up)
            judge(h, t);
        trial_free(t);
    }
}

/* --- looking ---------------------------------------------------------------------------------- */

/* True where there were errors since the last look. */
static bool count_errors(const struct health *h, struct mountpath *mp)
{
    uint64_t now = clock_ms(), errors = atomic_load(&mp->io_errors);
    uint64_t fresh = errors - mp->health.seen;
    mp->health.seen = errors;
    if (now - mp->health.window_began_ms > h->config.window_ms) {
        mp->health.window_began_ms = now;
        mp->health.in_window = 0;
    }
    mp->health.in_window += fresh;
    return fresh > 0;
}

static void look_at_mountpaths(struct health *h)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set =
        mountpaths_current(h->config.mountpaths);
    for (size_t i = 0; i < set->count; i++) {
        struct mountpath *mp = set->all[i];
        meter_look(mp->meter, clock_ms());
        bool fresh = count_errors(h, mp), suspect = atomic_exchange(&mp->suspect, false);
        if ((fresh || suspect) && h->config.tests && !is_tried(h, mp))
            trial_start(h, set, mp);
    }
}

static bool wait_for_next(struct health *h)
{
    uint64_t at = clock_ms() + h->config.interval_ms;
    struct timespec until = {.tv_sec = (time_t)(at / 1000), .tv_nsec = (long)(at % 1000) * 1000000};
    int rc = 0;
    pthread_mutex_lock(&h->lock);
    while (!h->stop && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&h->woken, &h->lock, &until);
    bool go_on = !h->stop;
    pthread_mutex_unlock(&h->lock);
    return go_on;
}

static void *health_main(void *arg)
{
    struct health *h = arg;
    while (wait_for_next(h)) {
        look_at_trials(h);
        look_at_mountpaths(h);
        if (mountpaths_to_reap(h->config.mountpaths) && !is_tried(h, NULL))
            trial_start(h, NULL, NULL);
    }
    while (h->trials != NULL) {
        struct trial *t = h->trials;
        h->trials = t->next;
        pthread_join(t->thread, NULL);
        trial_free(t);
    }
    return NULL;
}

int health_new(const struct health_config *config, struct health **out, struct error *err)
{
    struct health *h = xcalloc(1, sizeof *h);
    h->config = *config;
    pthread_mutex_init(&h->lock, NULL);
    condition_init(&h->woken);
    int code = thread_start("health", health_main, h, &h->thread, err);
    if (code == 0) {
        *out = h;
        return 0;
    }
    pthread_cond_destroy(&h->woken);
    pthread_mutex_destroy(&h->lock);
    free(h);
    return code;
}

void health_free(struct health *h)
{
    if (h == NULL)
        return;
    pthread_mutex_lock(&h->lock);
    h->stop = true;
    pthread_cond_signal(&h->woken);
    pthread_mutex_unlock(&h->lock);
    pthread_join(h->thread, NULL);
    pthread_cond_destroy(&h->woken);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
