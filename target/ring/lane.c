#include "target/ring/lane.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"
#include "io/file.h"
#include "ring/segment.h"
#include "target/ring/lane_internal.h"

enum { DIR_MODE = 0755, FILE_MODE = 0644, NUMBER_BYTES = 8 };

static void sync_parent(void *ctx, const char *path)
{
    struct error *first = ctx;
    struct error err = ERROR_INIT;
    if (file_fsync_parent(path, &err) != 0 && first->code == 0)
        *first = err;
}

int lane_make(const struct lane_place *place, struct lane **out, struct error *err)
{
    unsigned char number[NUMBER_BYTES];
    char dir[2 * NUMBER_BYTES + 1];
    struct error failed = ERROR_INIT;
    random_bytes(number, sizeof number);
    format_hex(number, sizeof number, dir);
    struct lane *l = lane_new(place, dir);
    int code = file_mkdirs_each(l->dir, DIR_MODE, sync_parent, &failed, err);
    if (code == 0 && failed.code != 0) {
        *err = failed;
        code = failed.code;
    }
    if (mountpath_failed(l->mp, code) != 0) {
        lane_unref(l);
        return code;
    }
    *out = l;
    return 0;
}

struct lane *lane_ref(struct lane *l)
{
    pthread_mutex_lock(&l->lock);
    l->refs++;
    pthread_mutex_unlock(&l->lock);
    return l;
}

void lane_unref(struct lane *l)
{
    pthread_mutex_lock(&l->lock);
    const bool last = --l->refs == 0;
    pthread_mutex_unlock(&l->lock);
    if (!last)
        return;
    for (size_t i = 0; i < l->segments_count; i++)
        free(l->segments[i].offsets);
    free(l->holes);
    if (l->fd >= 0)
        close(l->fd);
    mountpath_set_unref(l->set);
    pthread_cond_destroy(&l->synced);
    pthread_mutex_destroy(&l->lock);
    pthread_mutex_destroy(&l->append);
    free(l->segments);
    free(l->dir);
    free(l);
}

const char *lane_name(const struct lane *l)
{
    return l->name;
}

struct mountpath *lane_mountpath(const struct lane *l)
{
    return l->mp;
}

void lane_keep_set(struct lane *l, const struct mountpath_set *set)
{
    pthread_mutex_lock(&l->lock);
    const struct mountpath_set *old = l->set;
    l->set = mountpath_set_ref(set);
    pthread_mutex_unlock(&l->lock);
    mountpath_set_unref(old);
}

/* --- segments; with the lock ------------------------------------------------------------------ */

static struct segment *last_segment(struct lane *l)
{
    return l->segments_count > 0 ? &l->segments[l->segments_count - 1] : NULL;
}

static void drop_segment(struct lane *l, size_t at)
{
    free(l->segments[at].offsets);
    l->segments_count--;
    memmove(&l->segments[at], &l->segments[at + 1], (l->segments_count - at) * sizeof *l->segments);
}

/* --- appending -------------------------------------------------------------------------------- */

static int sync_file(int fd, struct error *err)
{
    int errnum = file_sync(fd, "sync.ring");
    return errnum == 0 ? 0 : error_errno(err, errnum, "fdatasync");
}

/* With `append`.  A sync has failed: what was not acknowledged goes, and nothing comes after it. */
static void give_up(struct lane *l)
{
    pthread_mutex_lock(&l->lock);
    struct segment *s = last_segment(l);
    l->closed = l->failed = true;
    if (s != NULL && l->written > l->count && l->fd >= 0) {
        const size_t keep = l->count > s->first ? l->count - s->first : 0;
        if (keep < s->count) {
            s->size = s->offsets[keep];
            s->count = keep;
        }
        if (ftruncate(l->fd, (off_t)s->size) != 0)
            log_error("a segment of a ring cannot be cut", lstr("lane", l->name));
        l->written = l->count;
    }
    pthread_cond_broadcast(&l->synced);
    pthread_mutex_unlock(&l->lock);
}

/* With the lock.  The sync that is under way ends.  After one that has failed the next one would
 * say that all is well. */
static int await_sync(struct lane *l, struct error *err)
{
    while (l->syncing)
        pthread_cond_wait(&l->synced, &l->lock);
    return l->failed ? error_set(err, E_IO, "a sync of lane '%s' has failed", l->name) : 0;
}

/* With `append`.  What was written is on the disk, unless a sync that began meanwhile failed. */
static int begin_segment(struct lane *l, int fd, uint64_t first, struct error *err)
{
    pthread_mutex_lock(&l->lock);
    int code = await_sync(l, err);
    if (code == 0) {
        l->fd = fd;
        l->count = l->on_disk = first;
        pthread_cond_broadcast(&l->synced);
        lane_add_segment(l, first);
    }
    pthread_mutex_unlock(&l->lock);
    return code;
}

/* With `append`.  No other sync of the file runs meanwhile: the kernel tells a failure to one of
 * them alone. */
static int sync_last(struct lane *l, int *fd, uint64_t *first, struct error *err)
{
    pthread_mutex_lock(&l->lock);
    int code = await_sync(l, err);
    *fd = l->fd;
    *first = l->written;
    l->syncing = code == 0 && l->fd >= 0;
    const bool syncs = l->syncing;
    pthread_mutex_unlock(&l->lock);
    if (!syncs)
        return code; /* whose sync has failed gives the lane up */
    code = sync_file(*fd, err);
    pthread_mutex_lock(&l->lock);
    l->syncing = false;
    l->failed |= code != 0;
    pthread_cond_broadcast(&l->synced);
    pthread_mutex_unlock(&l->lock);
    if (code != 0)
        give_up(l);
    return code;
}

/* With `append`: the last segment is on the disk, and another one begins. */
static int next_segment(struct lane *l, struct error *err)
{
    uint64_t first;
    int old, code = sync_last(l, &old, &first, err);
    if (code != 0)
        return code;
    _cleanup_free_ char *path = lane_segment_path(l, first);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return error_errno(err, errno, "create '%s'", path);
    code = file_fsync_dir(l->dir, err);
    if (code == 0)
        code = begin_segment(l, fd, first, err);
    if (code != 0) {
        close(fd);
        (void)unlink(path);
        return code;
    }
    if (old >= 0)
        close(old);
    return 0;
}

static void stamp_all(const struct lane_push *push, uint64_t first)
{
    struct frame f;
    uint64_t ordinal = first;
    for (size_t at = 0; at < push->len; at += f.total) {
        const int code = frame_peek(push->frames + at, &f, NULL);
        assert(code == 0); /* the push was checked */
        (void)code;
        f.ordinal = ordinal++;
        f.producer = push->producer;
        f.sequence = push->sequence;
        f.flags = at + f.total == push->len ? FRAME_ENDS : 0;
        frame_stamp(push->frames + at, &f);
    }
}

/* With the lock: the push is in the last segment. */
static void note_push(struct lane *l, const struct lane_push *push)
{
    struct segment *s = last_segment(l);
    struct frame f;
    for (size_t at = 0; at < push->len; at += f.total) {
        (void)frame_peek(push->frames + at, &f, NULL);
        segment_add_sample(s, s->size + at);
    }
    s->size += push->len;
    l->written += push->count;
    if (!push->sync)
        l->count = l->written;
}

/* With `append`. */
static int write_push(struct lane *l, const struct lane_push *push, struct error *err)
{
    pthread_mutex_lock(&l->lock);
    const struct segment *s = last_segment(l);
    const bool is_full = l->fd < 0 || s->size >= push->segment_bytes;
    const uint64_t end = is_full ? 0 : s->size;
    pthread_mutex_unlock(&l->lock);
    int code = is_full ? next_segment(l, err) : 0;
    if (code != 0)
        return code;
    stamp_all(push, l->written);
    code = file_pwrite_all(l->fd, push->frames, push->len, end, err);
    if (code != 0) {
        if (ftruncate(l->fd, (off_t)end) != 0) /* a later run would take it for a push */
            lane_close(l);
        return code;
    }
    pthread_mutex_lock(&l->lock);
    note_push(l, push);
    pthread_mutex_unlock(&l->lock);
    return 0;
}

/* One thread syncs for all that wait.  When a sync has failed, on_disk does not grow any more. */
static int sync_to(struct lane *l, uint64_t end, struct error *err)
{
    int code = 0;
    bool has_failed = false;
    pthread_mutex_lock(&l->lock);
    while (l->on_disk < end && !l->failed) {
        if (l->syncing) {
            pthread_cond_wait(&l->synced, &l->lock);
            continue;
        }
        const uint64_t goal = l->written;
        l->syncing = true;
        pthread_mutex_unlock(&l->lock);
        code = sync_file(l->fd, err);
        pthread_mutex_lock(&l->lock);
        l->syncing = false;
        if (code == 0 && !l->failed)
            l->count = l->on_disk = goal;
        else
            l->failed = has_failed = true;
        pthread_cond_broadcast(&l->synced);
    }
    const bool is_there = l->on_disk >= end;
    pthread_mutex_unlock(&l->lock);
    if (has_failed) {
        pthread_mutex_lock(&l->append);
        give_up(l);
        pthread_mutex_unlock(&l->append);
    }
    if (!is_there && code == 0)
        code = error_set(err, E_IO, "a sync of lane '%s' has failed", l->name);
    return code;
}

/* It holds the set that it began with: a mountpath that is leaving waits for it. */
int lane_append(struct lane *l, const struct lane_push *push, uint64_t *first, struct error *err)
{
    pthread_mutex_lock(&l->append);
    pthread_mutex_lock(&l->lock);
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpath_set_ref(l->set);
    (void)set;
    *first = l->written;
    pthread_mutex_unlock(&l->lock);
    int code = lane_is_closed(l) ? error_set(err, E_CANCELLED, "lane '%s' is closed", l->name)
                                 : write_push(l, push, err);
    pthread_mutex_unlock(&l->append);
    if (code == 0 && push->sync)
        code = sync_to(l, *first + push->count, err);
    return code == E_CANCELLED ? code : mountpath_failed(l->mp, code);
}

void lane_close(struct lane *l)
{
    pthread_mutex_lock(&l->lock);
    l->closed = true;
    pthread_mutex_unlock(&l->lock);
}

bool lane_is_closed(struct lane *l)
{
    pthread_mutex_lock(&l->lock);
    const bool is_closed = l->closed;
    pthread_mutex_unlock(&l->lock);
    return is_closed;
}

/* --- what there is ---------------------------------------------------------------------------- */

/* With the lock.  Of more holes than a report has room for, the first ones: the samples behind them
 * are reported when these were released. */
static void report_holes(const struct lane *l, struct ring_report *out)
{
    for (size_t i = 0; i < l->holes_count; i++) {
        const struct ring_range *h = &l->holes[i];
        if (h->to <= l->released)
            continue;
        if (out->holes_count == RING_HOLES_MAX) {
            out->count = h->from;
            return;
        }
        out->holes[out->holes_count++] = *h;
    }
}

/* With the lock.  A push that is under way may bring a file. */
static bool is_drained(struct lane *l)
{
    if (!l->closed || l->segments_count > 0 || pthread_mutex_trylock(&l->append) != 0)
        return false;
    pthread_mutex_unlock(&l->append);
    return true;
}

void lane_report(struct lane *l, struct ring_report *out)
{
    pthread_mutex_lock(&l->lock);
    *out = (struct ring_report){.first = l->segments_count > 0 ? l->segments[0].first : l->count,
                                .count = l->count,
                                .closed = l->closed && l->written == l->count,
                                .drained = is_drained(l)};
    report_holes(l, out);
    pthread_mutex_unlock(&l->lock);
    snprintf(out->lane, sizeof out->lane, "%s", l->name);
}

uint64_t lane_bytes(struct lane *l)
{
    uint64_t bytes = 0;
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->segments_count; i++)
        bytes += l->segments[i].size;
    pthread_mutex_unlock(&l->lock);
    return bytes;
}

uint64_t lane_bytes_staying(struct lane *l)
{
    uint64_t bytes = 0;
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->segments_count; i++)
        bytes += l->segments[i].released_ms == 0 ? l->segments[i].size : 0;
    pthread_mutex_unlock(&l->lock);
    return bytes;
}

/* The end of those that stand behind `ordinal` without damage, at most `to`. */
static uint64_t run_end(const struct segment *s, uint64_t ordinal, uint64_t to)
{
    uint64_t end = ordinal + 1;
    while (end < to && (s->offsets[end - s->first] & DAMAGED) == 0)
        end++;
    return end;
}

static bool find_range(const struct lane *l, uint64_t ordinal, uint64_t count, uint64_t *first,
                       struct lane_range *out)
{
    for (size_t i = 0; i < l->segments_count; i++) {
        const struct segment *s = &l->segments[i];
        uint64_t to = s->first + s->count < l->count ? s->first + s->count : l->count;
        if (ordinal < s->first || ordinal >= to || (s->offsets[ordinal - s->first] & DAMAGED) != 0)
            continue;
        to = run_end(s, ordinal, to - ordinal < count ? to : ordinal + count);
        const uint64_t end =
            to - s->first < s->count ? s->offsets[to - s->first] & ~DAMAGED : s->size;
        *first = s->first;
        out->offset = s->offsets[ordinal - s->first];
        out->length = end - out->offset;
        out->count = to - ordinal;
        return true;
    }
    return false;
}

/* With the lock.  Samples that the lane has had; whether anybody needs them is not known. */
static int say_missing(const struct lane *l, uint64_t ordinal, struct lane_range *out,
                       struct error *err)
{
    for (size_t i = 0; i < l->holes_count; i++) {
        const struct ring_range *h = &l->holes[i];
        if (ordinal < l->released || ordinal < h->from || ordinal >= h->to)
            continue;
        out->count = h->to - ordinal;
        return error_set(err, E_GENERATION_GONE,
                         "samples %llu to %llu of lane '%s' are damaged: read those behind them",
                         (unsigned long long)ordinal, (unsigned long long)h->to - 1, l->name);
    }
    out->count = 0;
    return error_set(err, E_GENERATION_GONE, "lane '%s' has no sample %llu: read the head again",
                     l->name, (unsigned long long)ordinal);
}

int lane_find(struct lane *l, uint64_t ordinal, uint64_t count, struct lane_range *out,
              struct error *err)
{
    uint64_t first = 0;
    pthread_mutex_lock(&l->lock);
    const bool is_there = find_range(l, ordinal, count, &first, out);
    int code = is_there ? 0 : say_missing(l, ordinal, out, err);
    pthread_mutex_unlock(&l->lock);
    if (code != 0)
        return code;
    _cleanup_free_ char *path = lane_segment_path(l, first);
    out->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (out->fd >= 0)
        return 0;
    out->count = 0;
    return errno == ENOENT ? error_set(err, E_GENERATION_GONE,
                                       "lane '%s' has dropped sample %llu: read the head again",
                                       l->name, (unsigned long long)ordinal)
                           : error_errno(err, errno, "open '%s'", path);
}

/* --- what is dropped -------------------------------------------------------------------------- */

static bool is_over(const struct lane *l, const struct segment *s, uint64_t release)
{
    return (s->count > 0 || l->closed) && s->first + s->count <= release;
}

/* Nothing is appended to it any more; false: it is busy.  Else idle lanes would fill the ring. */
static bool retire(struct lane *l, size_t at)
{
    if (l->fd < 0 || at + 1 < l->segments_count)
        return true; /* a push that is under way when a lane is closed still counts */
    if (pthread_mutex_trylock(&l->append) != 0)
        return false;
    const bool is_idle = !l->syncing;
    if (is_idle) {
        close(l->fd);
        l->fd = -1;
        l->count = l->on_disk = l->written;
        pthread_cond_broadcast(&l->synced);
    }
    pthread_mutex_unlock(&l->append);
    return is_idle;
}

/* With the lock. */
static bool remove_segment(struct lane *l, size_t at)
{
    if (!retire(l, at))
        return false;
    _cleanup_free_ char *path = lane_segment_path(l, l->segments[at].first);
    if (unlink(path) != 0 && errno != ENOENT) {
        log_warn("a segment of a ring cannot be removed", lstr("file", path), li64("errno", errno));
        return false;
    }
    drop_segment(l, at);
    return true;
}

void lane_release(struct lane *l, uint64_t release, uint64_t now_ms, uint64_t grace_ms)
{
    pthread_mutex_lock(&l->lock);
    l->released = release > l->released ? release : l->released;
    for (size_t i = 0; i < l->segments_count;) {
        struct segment *s = &l->segments[i];
        if (!is_over(l, s, release)) {
            s->released_ms = 0;
            break;
        }
        if (s->released_ms == 0)
            s->released_ms = now_ms;
        if (now_ms - s->released_ms < grace_ms)
            i++;
        else if (!remove_segment(l, i))
            break;
    }
    pthread_mutex_unlock(&l->lock);
}

void lane_drop(struct lane *l, uint64_t sealed, uint64_t taken)
{
    pthread_mutex_lock(&l->lock);
    l->taken = taken > l->taken ? taken : l->taken;
    for (size_t i = 0; i < l->segments_count;) {
        const struct segment *s = &l->segments[i];
        if (s->count == 0 || s->first < sealed || s->first + s->count > taken ||
            !remove_segment(l, i))
            i++;
    }
    pthread_mutex_unlock(&l->lock);
}

uint64_t lane_drop_to(struct lane *l, uint64_t *bytes)
{
    uint64_t to = 0;
    *bytes = 0;
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->segments_count && to == 0; i++) {
        const struct segment *s = &l->segments[i];
        if (s->count > 0 && s->first >= l->taken && s->first + s->count <= l->count) {
            to = s->first + s->count;
            *bytes = s->size;
        }
    }
    pthread_mutex_unlock(&l->lock);
    return to;
}

int lane_remove(struct lane *l, struct error *err)
{
    return rmdir(l->dir) == 0 || errno == ENOENT ? 0
                                                 : error_errno(err, errno, "remove '%s'", l->dir);
}
