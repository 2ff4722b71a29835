#include "target/scrub/validate_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/mem.h"
#include "io/reader.h"

enum { PAUSE_MS = 500 }; /* at once */

/* --- pace ------------------------------------------------------------------------------------- */

/* Not faster than the rate of now. */
static void keep_to_rate(struct walk *w, size_t bytes)
{
    const struct validate_config *c = w->config;
    uint64_t wait_ms;
    validate_part_read(w->part, bytes);
    if (w->scrub != NULL)
        metric_add(metric_get(M_scrub_bytes_total, NULL), bytes);
    do {
        w->pace.rate_bytes_s = c->rate_bytes_s != NULL ? c->rate_bytes_s(c->ctx) : 0;
        wait_ms = pace_take(&w->pace, bytes, clock_ms());
        bytes = 0;
        if (wait_ms > 0)
            (void)job_stop_pause(w->stop, wait_ms < PAUSE_MS ? wait_ms : PAUSE_MS);
    } while (wait_ms > 0 && !walk_shall_end(w));
}

/* --- checksums -------------------------------------------------------------------------------- */

/* What was not in memory does not stay there: clients' objects do. */
static int sum_file(struct walk *w, int fd, const struct attr *a, struct checksum_value *sum,
                    struct error *err)
{
    _cleanup_free_ char *piece = xmalloc(WALK_PIECE);
    struct checksum *running = checksum_new(a->checksum.type);
    int code = 0;
    for (uint64_t at = 0; at < a->size && code == 0 && !walk_shall_end(w);) {
        size_t len = a->size - at < WALK_PIECE ? (size_t)(a->size - at) : WALK_PIECE;
        walk_yield(w, len);
        bool cold = !reader_has(w->mp->reader, fd, at, len);
        code = reader_pread(w->mp->reader, fd, piece, len, at, err);
        if (cold)
            posix_fadvise(fd, (off_t)at, (off_t)len, POSIX_FADV_DONTNEED);
        if (code == 0)
            checksum_update(running, piece, len);
        at += len;
        keep_to_rate(w, len);
    }
    checksum_final(running, sum);
    checksum_free(running);
    return code;
}

/* Is this the object still?  Another one may have taken its name while it was read. */
static bool is_still(const char *path, const struct stat *st)
{
    struct stat now;
    return stat(path, &now) == 0 && now.st_ino == st->st_ino && now.st_dev == st->st_dev;
}

static void report_bytes(const struct walk *w, const char *path, struct file *f)
{
    _cleanup_place_ struct object_place p = {0};
    if (walk_lock_name(w, &p, f->attr.name, NULL) != 0)
        return;
    if (is_still(path, &f->st) && walk_bucket_lives(w))
        walk_report(w, path, f);
    object_unlock(&p);
}

/* False: the work ended before the file did. */
bool walk_check_bytes(struct walk *w, const char *path, struct file *f)
{
    const struct attr *a = &f->attr;
    struct checksum_value sum;
    struct stat st;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_ino != f->st.st_ino)
        return true; /* it has changed: whoever looks next time sees it */
    f->why = ERROR_INIT;
    int code = sum_file(w, fd, a, &sum, &f->why);
    if (walk_shall_end(w))
        return false;
    if (code == 0 && checksum_equal(&sum, &a->checksum))
        return true;
    f->what = code != 0 ? VALIDATE_unreadable : VALIDATE_checksum_differs;
    if (code != 0) {
        mountpath_failed(w->mp, code);
    } else {
        char wants[2 * CHECKSUM_MAX + 1], has[2 * CHECKSUM_MAX + 1];
        checksum_hex(&a->checksum, wants);
        checksum_hex(&sum, has);
        error_set(&f->why, E_CORRUPT, "%s is %s, not %s", checksum_name(sum.type), has, wants);
        metric_add(metric_get(M_checksum_errors_total, NULL), 1);
    }
    report_bytes(w, path, f);
    return true;
}
