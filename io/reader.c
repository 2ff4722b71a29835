/* How the kernel is asked:
 *
 *   an open      openat2(RESOLVE_CACHED), Linux 5.12
 *   bytes        preadv2(RWF_NOWAIT): what is in the page cache and valid
 *   a piece      cachestat(), Linux 6.5, counts its pages in one call; pages that are still on
 * their way from the disk count, too, so the last byte is read with RWF_NOWAIT as well: reads come
 *                in order, mostly.  Without cachestat() one byte of every 64 KiB is read like that.
 *
 * Where a call is missing (an older kernel, a container's filter) that is noted once: opens then
 * wait where they did before, pieces are looked at byte by byte. */
#include "io/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/mem.h"
#include "io/meter.h"
#include "io/pool.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* the same number on all machines */
#endif

enum { SAMPLE_BYTES = 64 * 1024, SCRAP_BYTES = 64 * 1024 };

struct reader {
    atomic_uint refs;
    char *path;
    struct meter *meter;  /* or NULL */
    bool in_memory;       /* the file system itself */
    pthread_mutex_t lock; /* guards what follows; held while a job is queued */
    struct pool *pool;    /* NULL once closed */
};

/* What this kernel has turned out to lack. */
static atomic_bool no_cached_open;
static atomic_bool no_cachestat;

/* --- life ------------------------------------------------------------------------------------- */

static int reader_look(const char *path, bool *in_memory, struct error *err)
{
    struct statfs st;
    if (statfs(path, &st) != 0)
        return error_errno(err, errno, "look at the file system of '%s'", path);
    *in_memory = st.f_type == TMPFS_MAGIC || st.f_type == RAMFS_MAGIC;
    return 0;
}

int reader_new(const char *path, unsigned threads, size_t queue_max, struct reader **out,
               struct error *err)
{
    bool in_memory = false;
    struct pool *pool = NULL;
    int rc = reader_look(path, &in_memory, err);
    if (rc == 0)
        rc = pool_new("reader", threads, queue_max, &pool, err);
    if (rc != 0)
        return rc;
    struct reader *r = xcalloc(1, sizeof *r);
    atomic_init(&r->refs, 1);
    r->path = xstrdup(path);
    r->in_memory = in_memory;
    r->pool = pool;
    pthread_mutex_init(&r->lock, NULL);
    *out = r;
    return 0;
}

struct reader *reader_ref(struct reader *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

void reader_unref(struct reader *r)
{
    if (r == NULL || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&r->lock);
    meter_unref(r->meter);
    free(r->path);
    free(r);
}

void reader_close(struct reader *r)
{
    if (r == NULL)
        return;
    pthread_mutex_lock(&r->lock);
    struct pool *pool = steal(r->pool);
    pthread_mutex_unlock(&r->lock);
    pool_free(pool);
    reader_unref(r);
}

void reader_measure(struct reader *r, struct meter *m)
{
    r->meter = meter_ref(m);
}

struct meter *reader_meter(const struct reader *r)
{
    return r->meter;
}

/* --- without waiting -------------------------------------------------------------------------- */

static bool reader_is_cold(const struct reader *r)
{
    return fault_errno_at("disk.cold", r->path) != 0;
}

static bool is_lacking(int errnum)
{
    return errnum == ENOSYS || errnum == EPERM || errnum == EINVAL;
}

int reader_open_now(struct reader *r, int dir_fd, const char *path)
{
    if (reader_is_cold(r)) {
        errno = EAGAIN;
        return -1;
    }
    if (!r->in_memory && !atomic_load_explicit(&no_cached_open, memory_order_relaxed)) {
        const struct open_how how = {.flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_CACHED};
        long fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
        if (fd >= 0 || !is_lacking(errno))
            return (int)fd;
        atomic_store(&no_cached_open, true);
    }
    return openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
}

static ssize_t pread_now(int fd, void *out, size_t len, uint64_t offset)
{
    const struct iovec part = {.iov_base = out, .iov_len = len};
    return preadv2(fd, &part, 1, (off_t)offset, RWF_NOWAIT);
}

size_t reader_pread_now(struct reader *r, int fd, void *out, size_t len, uint64_t offset)
{
    if (reader_is_cold(r))
        return 0;
    ssize_t n = r->in_memory ? pread(fd, out, len, (off_t)offset) : pread_now(fd, out, len, offset);
    return n > 0 ? (size_t)n : 0;
}

static bool byte_is_there(int fd, uint64_t at)
{
    char byte;
    return pread_now(fd, &byte, 1, at) == 1;
}

/* 1: all pages are there; 0: not all; -1: there is no saying. */
static int pages_are_there(int fd, uint64_t offset, size_t len)
{
    static _Atomic long page_bytes;
    struct {
        uint64_t offset, len;
    } range = {offset, len};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently_evicted;
    } stat;
    if (atomic_load_explicit(&no_cachestat, memory_order_relaxed))
        return -1;
    if (syscall(SYS_cachestat, fd, &range, &stat, 0) != 0) {
        atomic_store(&no_cachestat, true);
        return -1;
    }
    long page = atomic_load_explicit(&page_bytes, memory_order_relaxed);
    if (page == 0)
        atomic_store(&page_bytes, page = sysconf(_SC_PAGESIZE));
    uint64_t pages = (offset + len - 1) / (uint64_t)page - offset / (uint64_t)page + 1;
    return stat.cached >= pages;
}

static bool samples_are_there(int fd, uint64_t offset, size_t len)
{
    for (size_t at = 0; at < len; at += SAMPLE_BYTES) {
        if (!byte_is_there(fd, offset + at))
            return false;
    }
    return true;
}

bool reader_has(struct reader *r, int fd, uint64_t offset, size_t len)
{
    if (reader_is_cold(r))
        return false;
    if (r->in_memory || len == 0)
        return true;
    if (!byte_is_there(fd, offset + len - 1))
        return false;
    int all = pages_are_there(fd, offset, len);
    return all >= 0 ? all : samples_are_there(fd, offset, len);
}

/* --- waiting ---------------------------------------------------------------------------------- */

struct reader_job {
    void (*fn)(void *arg);
    void *arg;
    struct meter *meter;
};

static _Thread_local bool in_reader;

static void reader_run(void *arg)
{
    struct reader_job job = *(struct reader_job *)arg;
    free(arg);
    in_reader = true;
    job.fn(job.arg);
    in_reader = false;
    meter_leave(job.meter);
    meter_unref(job.meter);
}

bool reader_may_wait(void)
{
    return in_reader;
}

int reader_submit(struct reader *r, void (*fn)(void *arg), void *arg, struct error *err)
{
    struct reader_job *job = xmalloc(sizeof *job);
    *job = (struct reader_job){.fn = fn, .arg = arg, .meter = meter_ref(r->meter)};
    meter_enter(r->meter);
    pthread_mutex_lock(&r->lock);
    int rc = r->pool != NULL ? pool_submit(r->pool, reader_run, job, err)
                             : error_set(err, E_CANCELLED, "'%s' is being closed", r->path);
    pthread_mutex_unlock(&r->lock);
    if (rc != 0) {
        meter_leave(r->meter);
        meter_unref(job->meter);
        free(job);
    }
    return rc;
}

static int read_all(const struct reader *r, int fd, void *out, size_t len, uint64_t offset,
                    struct error *err)
{
    char *at = out;
    while (len > 0) {
        int errnum = fault_errno_at("disk.read", r->path);
        ssize_t n = errnum == 0 ? pread(fd, at, len, (off_t)offset) : -1;
        if (n < 0 && errnum == 0)
            errnum = errno;
        if (n < 0 && errnum == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errnum, "read %zu bytes at %llu on '%s'", len,
                               (unsigned long long)offset, r->path);
        if (n == 0)
            return error_set(err, E_LENGTH, "the file ends at %llu, %zu bytes before it should",
                             (unsigned long long)offset, len);
        at += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

/* Who is not a reader reads what is in memory: that is no work for the disk. */
int reader_pread(struct reader *r, int fd, void *out, size_t len, uint64_t offset,
                 struct error *err)
{
    uint64_t began_us = in_reader ? clock_us() : 0;
    int rc = read_all(r, fd, out, len, offset, err);
    if (in_reader)
        meter_count(r->meter, METER_READ, began_us, len);
    return rc;
}

/* The reads themselves only wait: the kernel was told of all of it before the first. */
int reader_fetch(struct reader *r, int fd, uint64_t offset, size_t len, struct error *err)
{
    char scrap[SCRAP_BYTES];
    int rc = 0;
    uint64_t began_us = clock_us();
    posix_fadvise(fd, (off_t)offset, (off_t)len, POSIX_FADV_WILLNEED);
    for (size_t at = 0, n; at < len && rc == 0; at += n) {
        n = len - at < sizeof scrap ? len - at : sizeof scrap;
        rc = read_all(r, fd, scrap, n, offset + at, err);
    }
    meter_count(r->meter, METER_READ, began_us, len);
    if (rc == 0)
        posix_fadvise(fd, (off_t)(offset + len), READER_PIECE_BYTES, POSIX_FADV_WILLNEED);
    return rc;
}
