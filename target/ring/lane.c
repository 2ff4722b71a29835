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

enum { DIR_MODE = 0755, FILE_MODE = 0644, NUMBER_BYTES = 8 };

struct segment {
    uint64_t first, size;
    size_t count, room;
    uint64_t *offsets;    /* where each sample begins */
    uint64_t released_ms; /* since when nobody needs it; 0: somebody may */
};

struct lane {
    char name[RING_LANE_MAX];
    char *dir;
    struct mountpath *mp;
    pthread_mutex_t append;
    pthread_mutex_t lock;
    pthread_cond_t synced; /* of `syncing` */
    unsigned refs;
    const struct mountpath_set *set;
    int fd; /* of the last segment while the lane is open, or -1 */
    bool closed, syncing, failed;
    uint64_t written, count, on_disk;
    size_t segments_count;
    struct segment *segments; /* ascending */
};

/* --- directories ------------------------------------------------------------------------------ */

char *lanes_dir(const struct mountpath *mp, uint64_t bucket_id)
{
    return bucket_id == 0 ? xprintf("%s/.dfc/ring", mp->path)
                          : xprintf("%s/.dfc/ring/%llu", mp->path, (unsigned long long)bucket_id);
}

int lanes_each(const struct mountpath *mp, uint64_t bucket_id,
               int (*fn)(void *ctx, const char *dir, struct error *err), void *ctx,
               struct error *err)
{
    _cleanup_free_ char *path = lanes_dir(mp, bucket_id);
    DIR *dir = opendir(path);
    int code = 0;
    if (dir == NULL)
        return errno == ENOENT ? 0 : error_errno(err, errno, "open '%s'", path);
    for (struct dirent *e; code == 0 && (e = readdir(dir)) != NULL;) {
        if (*e->d_name != '.')
            code = fn(ctx, e->d_name, err);
    }
    closedir(dir);
    return code;
}

static char *segment_path(const struct lane *l, uint64_t first)
{
    char name[SEGMENT_NAME_MAX];
    segment_name(first, name);
    return xprintf("%s/%s", l->dir, name);
}

static struct lane *lane_new(const struct lane_place *place, const char *dir)
{
    struct lane *l = xcalloc(1, sizeof *l);
    _cleanup_free_ char *above = lanes_dir(place->mp, place->bucket_id);
    snprintf(l->name, sizeof l->name, "%s.%s", place->target_id, dir);
    l->dir = xprintf("%s/%s", above, dir);
    l->mp = place->mp;
    l->set = mountpath_set_ref(place->set);
    l->refs = 1;
    l->fd = -1;
    pthread_mutex_init(&l->append, NULL);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->synced, NULL);
    return l;
}

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

static struct segment *add_segment(struct lane *l, uint64_t first)
{
    l->segments = xrealloc(l->segments, (l->segments_count + 1) * sizeof *l->segments);
    struct segment *s = &l->segments[l->segments_count++];
    *s = (struct segment){.first = first};
    return s;
}

static struct segment *last_segment(struct lane *l)
{
    return l->segments_count > 0 ? &l->segments[l->segments_count - 1] : NULL;
}

static void add_sample(struct segment *s, uint64_t offset)
{
    if (s->count == s->room) {
        s->room = s->room > 0 ? 2 * s->room : 64;
        s->offsets = xrealloc(s->offsets, s->room * sizeof *s->offsets);
    }
    s->offsets[s->count++] = offset;
}

static void drop_segment(struct lane *l, size_t at)
{
    free(l->segments[at].offsets);
    l->segments_count--;
    memmove(&l->segments[at], &l->segments[at + 1], (l->segments_count - at) * sizeof *l->segments);
}

/* --- a lane of an earlier run ----------------------------------------------------------------- */

struct opening {
    struct lane *lane;
    struct segment *segment;
    int fd;
    lane_seen_fn *seen;
    void *ctx;
};

static int read_segment(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    const struct opening *o = ctx;
    return file_pread_full(o->fd, out, len, offset, err);
}

static void take_frame(void *ctx, const struct frame *f, uint64_t offset)
{
    struct opening *o = ctx;
    add_sample(o->segment, offset);
    o->seen(o->ctx, o->lane->name, f);
}

/* Of the last segment, what does not count is cut off; an earlier one was synced when the next one
 * began. */
static int scan_segment(struct opening *o, bool is_last, struct error *err)
{
    struct lane *l = o->lane;
    struct stat st;
    _cleanup_free_ char *path = segment_path(l, o->segment->first);
    _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return error_errno(err, errno, "open '%s'", path);
    o->fd = fd;
    const struct segment_scan scan = {.read = read_segment,
                                      .frame = take_frame,
                                      .ctx = o,
                                      .size = (uint64_t)st.st_size,
                                      .first = o->segment->first,
                                      .payloads = is_last};
    int code = segment_scan(&scan, &o->segment->size, err);
    if (code != 0)
        return error_wrap(err, "read '%s'", path);
    if (o->segment->size < (uint64_t)st.st_size) {
        log_warn("the torn end of a segment of a ring is cut", lstr("file", path),
                 li64("bytes", (int64_t)((uint64_t)st.st_size - o->segment->size)));
        if (is_last && ftruncate(fd, (off_t)o->segment->size) != 0)
            return error_errno(err, errno, "cut '%s'", path);
    }
    return 0;
}

static int compare_firsts(const void *a, const void *b)
{
    const struct segment *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int find_segments(struct lane *l, struct error *err)
{
    DIR *dir = opendir(l->dir);
    uint64_t first;
    if (dir == NULL)
        return error_errno(err, errno, "open '%s'", l->dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (segment_name_parse(e->d_name, &first))
            add_segment(l, first);
    }
    closedir(dir);
    if (l->segments_count > 1)
        qsort(l->segments, l->segments_count, sizeof *l->segments, compare_firsts);
    return 0;
}

int lane_open(const struct lane_place *place, const char *dir, lane_seen_fn *seen, void *ctx,
              struct lane **out, struct error *err)
{
    _cleanup_(lane_unrefp)
    struct lane *l = lane_new(place, dir);
    struct opening o = {.lane = l, .seen = seen, .ctx = ctx};
    l->closed = true;
    int code = find_segments(l, err);
    for (size_t i = 0; i < l->segments_count && code == 0; i++) {
        o.segment = &l->segments[i];
        code = scan_segment(&o, i + 1 == l->segments_count, err);
        l->written = o.segment->first + o.segment->count;
    }
    if (mountpath_failed(l->mp, code) != 0)
        return code;
    l->count = l->on_disk = l->written;
    *out = steal(l);
    return 0;
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

/* With `append`: the last segment is on the disk, and another one begins. */
static int next_segment(struct lane *l, struct error *err)
{
    pthread_mutex_lock(&l->lock);
    while (l->syncing)
        pthread_cond_wait(&l->synced, &l->lock);
    const int old = l->fd;
    const uint64_t first = l->written;
    pthread_mutex_unlock(&l->lock);
    int code = old >= 0 ? sync_file(old, err) : 0;
    if (code != 0)
        give_up(l); /* the next sync would say that all is well */
    if (code != 0)
        return code;
    _cleanup_free_ char *path = segment_path(l, first);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return error_errno(err, errno, "create '%s'", path);
    code = file_fsync_dir(l->dir, err);
    if (code != 0) {
        close(fd);
        (void)unlink(path);
        return code;
    }
    pthread_mutex_lock(&l->lock);
    while (l->syncing) /* one may have begun meanwhile */
        pthread_cond_wait(&l->synced, &l->lock);
    l->fd = fd;
    l->count = l->on_disk = first;
    pthread_cond_broadcast(&l->synced);
    add_segment(l, first);
    pthread_mutex_unlock(&l->lock);
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
        add_sample(s, s->size + at);
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

/* One thread syncs for all that wait. */
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

int lane_append(struct lane *l, const struct lane_push *push, uint64_t *first, struct error *err)
{
    pthread_mutex_lock(&l->append);
    pthread_mutex_lock(&l->lock);
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

void lane_report(struct lane *l, struct ring_report *out)
{
    pthread_mutex_lock(&l->lock);
    *out = (struct ring_report){.first = l->segments_count > 0 ? l->segments[0].first : l->count,
                                .count = l->count,
                                .closed = l->closed && l->written == l->count,
                                .drained = l->closed && l->segments_count == 0};
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

static bool find_range(const struct lane *l, uint64_t ordinal, uint64_t count, uint64_t *first,
                       struct lane_range *out)
{
    for (size_t i = 0; i < l->segments_count; i++) {
        const struct segment *s = &l->segments[i];
        uint64_t to = s->first + s->count < l->count ? s->first + s->count : l->count;
        if (ordinal < s->first || ordinal >= to)
            continue;
        to = to - ordinal < count ? to : ordinal + count;
        const uint64_t end = to - s->first < s->count ? s->offsets[to - s->first] : s->size;
        *first = s->first;
        out->offset = s->offsets[ordinal - s->first];
        out->length = end - out->offset;
        out->count = to - ordinal;
        return true;
    }
    return false;
}

int lane_find(struct lane *l, uint64_t ordinal, uint64_t count, struct lane_range *out,
              struct error *err)
{
    uint64_t first = 0;
    pthread_mutex_lock(&l->lock);
    const bool is_there = find_range(l, ordinal, count, &first, out);
    pthread_mutex_unlock(&l->lock);
    if (!is_there)
        return error_set(err, E_GENERATION_GONE,
                         "lane '%s' has no sample %llu: read the head again", l->name,
                         (unsigned long long)ordinal);
    _cleanup_free_ char *path = segment_path(l, first);
    out->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (out->fd >= 0)
        return 0;
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
    if (l->closed || l->fd < 0 || at + 1 < l->segments_count)
        return true;
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

void lane_release(struct lane *l, uint64_t release, uint64_t now_ms, uint64_t grace_ms)
{
    pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->segments_count;) {
        struct segment *s = &l->segments[i];
        if (!is_over(l, s, release)) {
            s->released_ms = 0;
            break;
        }
        if (s->released_ms == 0)
            s->released_ms = now_ms;
        if (now_ms - s->released_ms < grace_ms) {
            i++;
            continue;
        }
        if (!retire(l, i))
            break;
        _cleanup_free_ char *path = segment_path(l, s->first);
        if (unlink(path) != 0 && errno != ENOENT) {
            log_warn("a segment of a ring cannot be removed", lstr("file", path),
                     li64("errno", errno));
            break;
        }
        drop_segment(l, i);
    }
    pthread_mutex_unlock(&l->lock);
}

int lane_remove(struct lane *l, struct error *err)
{
    return rmdir(l->dir) == 0 || errno == ENOENT ? 0
                                                 : error_errno(err, errno, "remove '%s'", l->dir);
}
