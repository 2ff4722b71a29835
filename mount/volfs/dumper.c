#include "mount/volfs/dumper.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "mount/volfs/dump_file.h"
#include "mount/volume/dump.h"

#define DIRECTORY "/var/tmp" /* without $TMPDIR */

enum {
    TICK_MIN_MS = 1000,
    TICK_MOST_MS = 60000,
    TICKS = 10, /* in `every` */
    RETRY_MOST_MS = 600000,
    LEASE_MORE_MS = 600000, /* beyond `every`: its holder makes the next dump, too */
};

struct dumper {
    struct dumper_options options;
    struct volume *volume;
    struct meta *meta;
    struct dumper_store store;
    int64_t next_ms; /* nothing to do before; by the engine's clock */
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t news;
    bool ends;
};

/* ---- names ---- */

char *dumper_prefix(const char *volume)
{
    return xprintf("%s/meta/", volume);
}

char *dumper_key(const char *volume, int64_t unix_s)
{
    char text[32];
    struct tm tm;
    const time_t at = (time_t)unix_s;
    gmtime_r(&at, &tm);
    strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &tm);
    return xprintf("%s/meta/%s.jsonl.gz", volume, text);
}

bool dumper_time(const char *volume, const char *key, int64_t *unix_s)
{
    struct tm tm = {0};
    _cleanup_free_ char *prefix = dumper_prefix(volume);
    const size_t head = strlen(prefix);
    if (strncmp(key, prefix, head) != 0)
        return false;
    const char *end = strptime(key + head, "%Y%m%dT%H%M%SZ", &tm);
    *unix_s = end != NULL ? (int64_t)timegm(&tm) : 0;
    _cleanup_free_ char *same = dumper_key(volume, *unix_s);
    return end != NULL && strcmp(same, key) == 0;
}

/* ---- the dumps of the bucket ---- */

struct dumps {
    const char *volume;
    int64_t *times; /* s; the oldest first */
    size_t count, room;
};

static void add_dump(void *to, const char *key)
{
    struct dumps *d = to;
    int64_t unix_s;
    if (!dumper_time(d->volume, key, &unix_s))
        return;
    if (d->count == d->room) {
        d->room = 2 * d->room + 64;
        d->times = xrealloc(d->times, d->room * sizeof *d->times);
    }
    d->times[d->count++] = unix_s;
}

static int compare_times(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static const char *volume_of(const struct dumper *d)
{
    return volume_format(d->volume)->name;
}

/* dumps->times must be freed in any case. */
static int list_dumps(const struct dumper *d, struct dumps *dumps, struct error *err)
{
    *dumps = (struct dumps){.volume = volume_of(d)};
    _cleanup_free_ char *prefix = dumper_prefix(dumps->volume);
    int rc = d->store.list(d->store.context, prefix, add_dump, dumps, err);
    if (rc == 0 && dumps->count > 0) {
        qsort(dumps->times, dumps->count, sizeof *dumps->times, compare_times);
        metric_set(metric_get(M_mount_dump_newest_seconds, NULL), dumps->times[dumps->count - 1]);
    }
    return rc;
}

/* When the next one is due: 0 if there is none. */
static int find_due(const struct dumper *d, int64_t *due_ms, struct error *err)
{
    struct dumps dumps;
    int rc = list_dumps(d, &dumps, err);
    *due_ms = rc == 0 && dumps.count > 0
                  ? dumps.times[dumps.count - 1] * 1000 + (int64_t)d->options.every_ms
                  : 0;
    free(dumps.times);
    return rc;
}

static int delete_oldest(const struct dumper *d, struct error *err)
{
    struct dumps dumps;
    int rc = list_dumps(d, &dumps, err);
    for (size_t i = 0; rc == 0 && i + d->options.keep < dumps.count; i++) {
        _cleanup_free_ char *key = dumper_key(dumps.volume, dumps.times[i]);
        rc = d->store.remove(d->store.context, key, err);
    }
    free(dumps.times);
    return rc;
}

/* ---- a dump ---- */

static bool ends(void *dumper)
{
    struct dumper *d = dumper;
    pthread_mutex_lock(&d->lock);
    bool ends = d->ends;
    pthread_mutex_unlock(&d->lock);
    return ends;
}

/* Without a name: nothing of it is left if the process dies. */
static int make_file(struct error *err)
{
    const char *tmp = getenv("TMPDIR");
    _cleanup_free_ char *path =
        xprintf("%s/dfc-dump-XXXXXX", tmp != NULL && tmp[0] == '/' ? tmp : DIRECTORY);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return error_errno(err, errno, "make '%s' (set TMPDIR to another directory)", path);
    unlink(path);
    return fd;
}

static int write_file(struct dumper *d, int fd, struct dump_tally *tally, struct error *err)
{
    FILE *to = dump_file_write(fd, ends, d);
    if (to == NULL)
        return error_errno(err, errno, "write the dump");
    int rc = dump_save(d->meta, to, tally, err);
    if (fclose(to) != 0 && rc == 0)
        rc = error_errno(err, errno, "write the dump");
    return rc;
}

static int make_dump(struct dumper *d, int64_t now_ms, struct error *err)
{
    struct dump_tally tally;
    _cleanup_free_ char *key = dumper_key(volume_of(d), now_ms / 1000);
    _cleanup_close_ int fd = make_file(err);
    if (fd < 0)
        return err->code;
    int rc = write_file(d, fd, &tally, err);
    if (rc == 0)
        rc = d->store.put(d->store.context, key, fd, err);
    if (rc != 0)
        return rc;
    metric_add(metric_get(M_mount_dumps_total, NULL), 1);
    log_info("the metadata are dumped", lstr("object", key), lu64("keys", tally.keys));
    return delete_oldest(d, err);
}

/* ---- the thread ---- */

/* Another mount may have made one between the look and the lease. */
static int dump_with_lease(struct dumper *d, int64_t now_ms, struct error *err)
{
    int rc = find_due(d, &d->next_ms, err);
    if (rc != 0 || d->next_ms > now_ms)
        return rc;
    d->next_ms = now_ms + (int64_t)d->options.every_ms;
    return make_dump(d, now_ms, err);
}

/* What fails here may not fail on another mount.  Where it fails everywhere, all mounts together
 * try twice in the time of a retry. */
static void shorten_lease(struct dumper *d)
{
    bool held;
    if (volume_dump_lease(d->volume, d->options.retry_ms / 2, &held) != 0)
        log_warn("the lease of dumps is not shortened", lstr("volume", volume_of(d)));
}

static int dump_if_due(struct dumper *d, int64_t now_ms, struct error *err)
{
    bool held = false;
    int rc = find_due(d, &d->next_ms, err);
    if (rc != 0 || d->next_ms > now_ms)
        return rc;
    int errnum = volume_dump_lease(d->volume, d->options.every_ms + LEASE_MORE_MS, &held);
    if (errnum != 0)
        return error_errno(err, -errnum, "take the lease");
    if (!held)
        return 0;
    rc = dump_with_lease(d, now_ms, err);
    if (rc != 0 && !ends(d))
        shorten_lease(d);
    return rc;
}

static void look(struct dumper *d)
{
    int64_t now_ms = 0;
    struct error err = ERROR_INIT;
    int rc = d->meta->ops->now(d->meta, &now_ms, &err);
    if (rc == 0 && now_ms >= d->next_ms)
        rc = dump_if_due(d, now_ms, &err);
    if (rc == 0 || ends(d))
        return;
    d->next_ms = now_ms + (int64_t)d->options.retry_ms;
    metric_add(metric_get(M_mount_dump_errors_total, NULL), 1);
    log_warn("the metadata are not dumped", lstr("volume", volume_of(d)), lerr(&err));
}

static void *run(void *dumper)
{
    struct dumper *d = dumper;
    bool over = false;
    while (!over) {
        const struct timespec until = clock_after(d->options.tick_ms);
        pthread_mutex_lock(&d->lock);
        while (!d->ends && pthread_cond_timedwait(&d->news, &d->lock, &until) == 0)
            continue;
        over = d->ends;
        pthread_mutex_unlock(&d->lock);
        if (!over)
            look(d);
    }
    return NULL;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int dumper_start(const struct dumper_options *options, struct volume *volume, struct meta *meta,
                 const struct dumper_store *store, struct dumper **out, struct error *err)
{
    struct dumper *d = xcalloc(1, sizeof *d);
    const uint64_t tick_ms = least(options->every_ms / TICKS, TICK_MOST_MS);
    *d = (struct dumper){.options = *options, .volume = volume, .meta = meta, .store = *store};
    if (options->tick_ms == 0)
        d->options.tick_ms = tick_ms > TICK_MIN_MS ? tick_ms : TICK_MIN_MS;
    if (options->retry_ms == 0)
        d->options.retry_ms = least(options->every_ms, RETRY_MOST_MS);
    pthread_mutex_init(&d->lock, NULL);
    condition_init(&d->news);
    int errnum = pthread_create(&d->thread, NULL, run, d);
    if (errnum != 0) {
        pthread_cond_destroy(&d->news);
        pthread_mutex_destroy(&d->lock);
        free(d);
        return error_errno(err, errnum, "start the thread of dumps");
    }
    *out = d;
    return 0;
}

void dumper_end(struct dumper *d)
{
    if (d == NULL)
        return;
    pthread_mutex_lock(&d->lock);
    d->ends = true;
    pthread_cond_broadcast(&d->news);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    pthread_cond_destroy(&d->news);
    pthread_mutex_destroy(&d->lock);
    free(d);
}
