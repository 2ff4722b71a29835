#include "target/disk/crash_state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"
#include "io/file.h"

enum { FORMAT = 1, FILE_MODE = 0640, BYTES_MAX = 4096, BOOT_MAX = 128 };

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U /* Linux 6.8; before, an id may be used again after umount */
#endif

struct crash_state {
    char *path;
    int root_fd;
    char boot[BOOT_MAX]; /* this one */
    bool power_lost;
    atomic_bool checked; /* whatever that may have torn */
    atomic_ullong floor;

    pthread_mutex_t lock; /* of what stands on the disk, and who writes it */
    bool begun;
    int64_t flushed_ms;  /* as it stands there */
    bool flush_failed;   /* once: from then on nobody knows what has reached the disk */
    atomic_bool settled; /* the disk says what is in force */

    pthread_rwlock_t naming; /* held by async commits; the name's lock and `lock` come after it */
    int64_t time_ms;         /* not before this: what is named from now on */
    atomic_bool unflushed;   /* something was named since the last flush */
};

/* --- the file --------------------------------------------------------------------------------- */

/* As long as this stays the same, what was written is in memory or on the disk.  Fault point
 * life.boot (skip): as if the machine had been started anew. */
static int read_boot(int fd, char out[static BOOT_MAX], struct error *err)
{
    _cleanup_buf_ struct buf text = BUF_INIT;
    struct statx sx;
    if (fault_skips("life.boot")) {
        random_id("boot-", out);
        return 0;
    }
    int code = file_read_all("/proc/sys/kernel/random/boot_id", BOOT_MAX, &text, err);
    if (code != 0)
        return code;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID | STATX_MNT_ID_UNIQUE, &sx) != 0)
        return error_errno(err, errno, "ask which mount this is");
    snprintf(out, BOOT_MAX, "%.*s %u:%u %llu", (int)strcspn(buf_str(&text), "\n"), buf_str(&text),
             sx.stx_dev_major, sx.stx_dev_minor, (unsigned long long)sx.stx_mnt_id);
    return 0;
}

/* Is there something of which nobody knows whether it has reached the disk whole? */
static bool is_suspect(const struct crash_state *l)
{
    return l->flush_failed || (l->power_lost && !atomic_load(&l->checked));
}

/* A suspect one gets a boot that is nobody's, so that the next start looks again. */
static int write_down(struct crash_state *l, bool open, int64_t flushed_ms, struct error *err)
{
    const char *boot = is_suspect(l) ? "suspect" : open ? l->boot : "";
    if (is_suspect(l))
        flushed_ms = l->flushed_ms;
    _cleanup_json_ json_t *doc =
        json_pack("{si ss sI sI}", "format", FORMAT, "boot", boot, "floor",
                  (json_int_t)atomic_load(&l->floor), "flushed", (json_int_t)flushed_ms);
    _cleanup_free_ char *text = json_text(doc);
    int code = file_replace(l->path, text, strlen(text), FILE_MODE, err);
    atomic_store(&l->settled, code == 0);
    if (code == 0)
        l->flushed_ms = flushed_ms;
    return code;
}

/* What it says, with the boot that it has; nothing of it is known after E_NOT_FOUND and E_JSON. */
static int read_down(struct crash_state *l, char boot[static BOOT_MAX], struct error *err)
{
    uint64_t format, floor;
    const char *text_boot;
    _cleanup_buf_ struct buf text = BUF_INIT;
    _cleanup_json_ json_t *doc = NULL;
    int code = file_read_all(l->path, BYTES_MAX, &text, err);
    if (code != 0 || (code = json_parse(text.data, text.len, &doc, err)) != 0 ||
        (code = json_need_u64(doc, "", "format", &format, err)) != 0)
        return code;
    if (format != FORMAT)
        return error_set(err, E_UNSUPPORTED, "'%s' has format %llu, this release knows %d", l->path,
                         (unsigned long long)format, FORMAT);
    if ((code = json_need_str(doc, "", "boot", &text_boot, err)) != 0 ||
        (code = json_need_u64(doc, "", "floor", &floor, err)) != 0 ||
        (code = json_get_i64(doc, "", "flushed", &l->flushed_ms, err)) != 0)
        return code;
    if (l->flushed_ms < 0 || l->flushed_ms > INT64_MAX / 2)
        return error_set(err, E_JSON, "field 'flushed' of '%s' is no time", l->path);
    atomic_store(&l->floor, floor);
    snprintf(boot, BOOT_MAX, "%s", text_boot);
    return 0;
}

/* No floor is known: one that steps every minute is above all that rise when power is lost. */
static void know_nothing(struct crash_state *l)
{
    enum { MINUTE_MS = 60000 };
    l->power_lost = true;
    l->flushed_ms = 0;
    atomic_store(&l->floor, (uint64_t)(clock_wall_ms() / MINUTE_MS) * VERSION_FLOOR_STEP);
}

static int take_in(struct crash_state *l, bool has_objects, struct error *err)
{
    char boot[BOOT_MAX];
    struct error why = ERROR_INIT;
    int code = read_down(l, boot, &why);
    if (code == 0) {
        l->power_lost = *boot != '\0' && strcmp(boot, l->boot) != 0;
    } else if (code == E_JSON || (code == E_NOT_FOUND && has_objects)) {
        log_warn("crash state of the mountpath unknown", lstr("path", l->path), lerr(&why));
        know_nothing(l);
    } else if (code != E_NOT_FOUND) {
        return error_set(err, code, "%s", why.message);
    }
    return 0;
}

int crash_state_open(const char *root, bool has_objects, struct crash_state **out,
                     struct error *err)
{
    struct crash_state *l = xcalloc(1, sizeof *l);
    l->path = xprintf("%s/life.json", root);
    pthread_mutex_init(&l->lock, NULL);
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr); /* a flush gets its turn however many write */
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&l->naming, &attr);
    pthread_rwlockattr_destroy(&attr);
    l->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = l->root_fd >= 0 ? read_boot(l->root_fd, l->boot, err)
                               : error_errno(err, errno, "open '%s'", root);
    if (code == 0)
        code = take_in(l, has_objects, err);
    if (code != 0) {
        crash_state_close(l);
        return code;
    }
    *out = l;
    return 0;
}

bool crash_state_power_lost(const struct crash_state *l)
{
    return l->power_lost;
}

void crash_state_set_checked(struct crash_state *l)
{
    atomic_store(&l->checked, true);
}

bool crash_state_suspects(const struct crash_state *l, int64_t modified_ms)
{
    return l->power_lost && modified_ms >= l->flushed_ms;
}

/* --- the floor -------------------------------------------------------------------------------- */

static void version_floor_raise_to(struct crash_state *l, uint64_t floor)
{
    unsigned long long old = atomic_load(&l->floor);
    while (old < floor && !atomic_compare_exchange_weak(&l->floor, &old, floor))
        ;
}

static int settle_locked(struct crash_state *l, struct error *err)
{
    return atomic_load(&l->settled) ? 0 : write_down(l, true, l->flushed_ms, err);
}

static void begin_locked(struct crash_state *l)
{
    if (l->begun)
        return;
    l->begun = true;
    if (l->power_lost && atomic_load(&l->checked))
        l->flushed_ms = clock_wall_ms(); /* what is there is on the disk, and whole */
    l->time_ms = l->flushed_ms;
    atomic_store(&l->unflushed, true); /* by a process before this one, perhaps */
}

int crash_state_settle(struct crash_state *l, struct error *err)
{
    if (atomic_load(&l->settled))
        return 0;
    pthread_mutex_lock(&l->lock);
    begin_locked(l);
    int code = settle_locked(l, err);
    pthread_mutex_unlock(&l->lock);
    return code;
}

int crash_state_begin(struct crash_state *l, uint64_t floor, struct error *err)
{
    pthread_mutex_lock(&l->lock);
    begin_locked(l);
    if (floor > crash_state_floor(l))
        atomic_store(&l->settled, false);
    version_floor_raise_to(l, floor);
    int code = settle_locked(l, err);
    pthread_mutex_unlock(&l->lock);
    return code;
}

uint64_t crash_state_floor(const struct crash_state *l)
{
    return atomic_load(&l->floor);
}

int crash_state_raise(struct crash_state *l, uint64_t floor, struct error *err)
{
    if (floor <= crash_state_floor(l))
        return crash_state_settle(l, err);
    pthread_mutex_lock(&l->lock);
    version_floor_raise_to(l, floor);
    atomic_store(&l->settled, false);
    int code = settle_locked(l, err);
    pthread_mutex_unlock(&l->lock);
    return code;
}

/* --- naming and flushing ---------------------------------------------------------------------- */

void crash_state_enter(struct crash_state *l)
{
    pthread_rwlock_rdlock(&l->naming);
    atomic_store(&l->unflushed, true);
}

int64_t crash_state_time(const struct crash_state *l, int64_t wall_ms)
{
    return wall_ms > l->time_ms ? wall_ms : l->time_ms;
}

void crash_state_leave(struct crash_state *l)
{
    pthread_rwlock_unlock(&l->naming);
}

/* Nobody is inside at the time that it returns; who comes later gets this time or a later one. */
static int64_t take_time(struct crash_state *l)
{
    pthread_rwlock_wrlock(&l->naming);
    int64_t next_ms = clock_wall_ms() + 1; /* what was named just now is before it */
    l->time_ms = next_ms > l->time_ms ? next_ms : l->time_ms + 1;
    int64_t time_ms = l->time_ms;
    atomic_store(&l->unflushed, false);
    pthread_rwlock_unlock(&l->naming);
    return time_ms;
}

static int sync_all(struct crash_state *l, struct error *err)
{
    int errnum = fault_errno("disk.sync");
    if (errnum == 0 && syncfs(l->root_fd) != 0)
        errnum = errno;
    if (errnum == 0)
        return 0;
    l->flush_failed = true;
    return error_errno(err, errnum, "flush the file system of '%s'", l->path);
}

static int flush_locked(struct crash_state *l, int64_t time_ms, struct error *err)
{
    if (is_suspect(l))
        return 0;
    int code = sync_all(l, err);
    return code == 0 ? write_down(l, true, time_ms, err) : code;
}

/* The time is taken before the lock, which those who are inside may want. */
int crash_state_flush(struct crash_state *l, struct error *err)
{
    if (!atomic_load(&l->unflushed))
        return 0;
    int64_t time_ms = take_time(l);
    pthread_mutex_lock(&l->lock);
    int code = flush_locked(l, time_ms, err);
    pthread_mutex_unlock(&l->lock);
    if (code != 0)
        atomic_store(&l->unflushed, true);
    return code;
}

/* --- the end ---------------------------------------------------------------------------------- */

static bool end(struct crash_state *l)
{
    struct error err = ERROR_INIT;
    int64_t time_ms = take_time(l);
    int code = sync_all(l, &err);
    if (code == 0)
        code = write_down(l, false, time_ms, &err);
    else
        (void)write_down(l, false, time_ms, NULL); /* as a suspect, if it can be */
    if (code != 0)
        log_warn("the end of a mountpath is not written down", lstr("path", l->path), lerr(&err));
    return code == 0 && !is_suspect(l);
}

bool crash_state_close(struct crash_state *l)
{
    if (l == NULL)
        return true;
    bool orderly = !l->begun || end(l);
    if (l->root_fd >= 0)
        close(l->root_fd);
    pthread_rwlock_destroy(&l->naming);
    pthread_mutex_destroy(&l->lock);
    free(l->path);
    free(l);
    return orderly;
}
