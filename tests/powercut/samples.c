#include "tests/powercut/samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/parse.h"
#include "io/file.h"
#include "target/ring/lane.h"
#include "tests/powercut/bytes.h"

enum { SEGMENT_BYTES = 256 * 1024 }; /* then another one begins */

static struct lane *lane;

void samples_make_lane(struct mountpaths *mountpaths)
{
    struct error err = ERROR_INIT;
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(mountpaths);
    const struct lane_place place = {
        .target_id = "t1", .set = set, .mp = set->all[0], .bucket_id = BUCKET_RING};
    if (lane_make(&place, &lane, &err) != 0)
        die("lane", &err);
}

int samples_push(uint64_t number, struct error *err)
{
    const size_t size = size_of(number);
    _cleanup_free_ char *bytes = bytes_of(number, size);
    _cleanup_buf_ struct buf frames = BUF_INIT;
    const struct frame_part part = {.name = "k", .dtype = "bytes", .data = bytes, .len = size};
    int code = frame_make(&part, 1, &frames, err);
    if (code != 0)
        return code;
    const struct lane_push push = {.frames = frames.data,
                                   .len = frames.len,
                                   .count = 1,
                                   .sequence = number,
                                   .sync = true,
                                   .segment_bytes = SEGMENT_BYTES};
    uint64_t first;
    return lane_append(lane, &push, &first, err);
}

struct sample {
    struct lane *lane;
    uint64_t number, ordinal;
};

static struct {
    struct lane *lanes[64];
    struct sample *samples;
    size_t lanes_count, samples_count;
} ring;

static void note_sample(void *ctx, const char *name, const struct frame *f)
{
    (void)ctx;
    (void)name;
    ring.samples = xrealloc(ring.samples, (ring.samples_count + 1) * sizeof *ring.samples);
    ring.samples[ring.samples_count++] =
        (struct sample){.number = f->sequence, .ordinal = f->ordinal};
}

static int open_lane(void *ctx, const char *dir, struct error *err)
{
    const size_t before = ring.samples_count;
    struct lane **out = &ring.lanes[ring.lanes_count];
    if (ring.lanes_count == sizeof ring.lanes / sizeof *ring.lanes)
        return error_set(err, E_INTERNAL, "too many lanes");
    int code = lane_open(ctx, dir, note_sample, NULL, out, err);
    if (code != 0)
        return code;
    ring.lanes_count++;
    for (size_t i = before; i < ring.samples_count; i++)
        ring.samples[i].lane = *out;
    return 0;
}

void samples_open(struct mountpaths *mountpaths)
{
    struct error err = ERROR_INIT;
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(mountpaths);
    struct lane_place place = {
        .target_id = "t1", .set = set, .mp = set->all[0], .bucket_id = BUCKET_RING};
    if (lanes_each(place.mp, BUCKET_RING, open_lane, &place, &err) != 0)
        die("lanes", &err);
}

void samples_close(void)
{
    if (lane != NULL)
        lane_unref(lane);
    for (size_t i = 0; i < ring.lanes_count; i++)
        lane_unref(ring.lanes[i]);
    free(ring.samples);
}

static const struct sample *find_sample(const char *name)
{
    uint64_t number = 0;
    (void)parse_u64(name, &number, NULL);
    for (size_t i = 0; i < ring.samples_count; i++) {
        if (ring.samples[i].number == number)
            return &ring.samples[i];
    }
    return NULL;
}

void samples_check(const char *name)
{
    const struct sample *s = find_sample(name);
    struct lane_range range;
    struct error err = ERROR_INIT;
    uint64_t count;
    if (s == NULL) {
        printf("- %d %s\n", BUCKET_RING, name);
        return;
    }
    int code = lane_find(s->lane, s->ordinal, 1, &range, &err);
    _cleanup_free_ char *bytes = code == 0 ? xmalloc(range.length) : NULL;
    if (code == 0) {
        code = file_pread_full(range.fd, bytes, range.length, range.offset, &err);
        close(range.fd);
    }
    if (code == 0)
        code = frame_check_push(bytes, range.length, &count, &err);
    if (code != 0) {
        printf("! %d %s %s\n", BUCKET_RING, name, err.message);
        return;
    }
    struct frame_kind kind;
    frame_kind(bytes, 0, &kind);
    say_bytes(BUCKET_RING, name, s->number, bytes + kind.offset, kind.length, size_of(s->number));
}

void samples_list(void)
{
    for (size_t i = 0; i < ring.samples_count; i++)
        printf("L %d %" PRIu64 "\n", BUCKET_RING, ring.samples[i].number);
}
