#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"
#include "ring/segment.h"
#include "target/ring/lane.h"
#include "target/ring/lane_internal.h"

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

char *lane_segment_path(const struct lane *l, uint64_t first)
{
    char name[SEGMENT_NAME_MAX];
    segment_name(first, name);
    return xprintf("%s/%s", l->dir, name);
}

struct lane *lane_new(const struct lane_place *place, const char *dir)
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

/* --- segments; with the lock ------------------------------------------------------------------ */

struct segment *lane_add_segment(struct lane *l, uint64_t first)
{
    l->segments = xrealloc(l->segments, (l->segments_count + 1) * sizeof *l->segments);
    struct segment *s = &l->segments[l->segments_count++];
    *s = (struct segment){.first = first};
    return s;
}

void segment_add_sample(struct segment *s, uint64_t offset)
{
    if (s->count == s->room) {
        s->room = s->room > 0 ? 2 * s->room : 64;
        s->offsets = xrealloc(s->offsets, s->room * sizeof *s->offsets);
    }
    s->offsets[s->count++] = offset;
}

void lane_add_hole(struct lane *l, uint64_t from, uint64_t to)
{
    l->holes = xrealloc(l->holes, (l->holes_count + 1) * sizeof *l->holes);
    l->holes[l->holes_count++] = (struct ring_range){.from = from, .to = to};
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

/* Samples before it that are not there are damaged, here or at the end of an earlier segment. */
static void take_frame(void *ctx, const struct frame *f, uint64_t offset, bool is_of_whole)
{
    struct opening *o = ctx;
    struct lane *l = o->lane;
    struct segment *s = o->segment;
    if (f->ordinal > l->written) {
        lane_add_hole(l, l->written, f->ordinal);
        log_warn("samples of a ring are damaged, or were dropped", lstr("lane", l->name),
                 lu64("first", l->written), lu64("count", f->ordinal - l->written));
    }
    while (s->first + s->count < f->ordinal)
        segment_add_sample(s, s->size | DAMAGED);
    segment_add_sample(s, offset);
    s->size = offset + f->total;
    l->written = f->ordinal + 1;
    if (is_of_whole) /* else its maker may push it again: better twice than never */
        o->seen(o->ctx, l->name, f);
}

/* Of the last segment, what does not count is cut off; an earlier one was synced when the next one
 * began. */
static int scan_segment(struct opening *o, bool is_last, struct error *err)
{
    struct lane *l = o->lane;
    struct stat st;
    _cleanup_free_ char *path = lane_segment_path(l, o->segment->first);
    _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return error_errno(err, errno, "open '%s'", path);
    o->fd = fd;
    const struct segment_scan scan = {.read = read_segment,
                                      .frame = take_frame,
                                      .ctx = o,
                                      .size = (uint64_t)st.st_size,
                                      .first = o->segment->first,
                                      .payloads = is_last,
                                      .is_followed = !is_last};
    uint64_t end;
    int code = segment_scan(&scan, &end, err);
    if (code != 0)
        return error_wrap(err, "read '%s'", path);
    if (!is_last || end == (uint64_t)st.st_size)
        return 0;
    log_warn("the torn end of a segment of a ring is cut", lstr("file", path),
             li64("bytes", st.st_size - (int64_t)end));
    return ftruncate(fd, (off_t)end) == 0 ? 0 : error_errno(err, errno, "cut '%s'", path);
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
            lane_add_segment(l, first);
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
    l->written = l->segments_count > 0 ? l->segments[0].first : 0;
    for (size_t i = 0; i < l->segments_count && code == 0; i++) {
        o.segment = &l->segments[i];
        code = scan_segment(&o, i + 1 == l->segments_count, err);
    }
    if (mountpath_failed(l->mp, code) != 0)
        return code;
    l->count = l->on_disk = l->written;
    *out = steal(l);
    return 0;
}
