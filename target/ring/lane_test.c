/* A lane on a real mountpath: what is acknowledged is found again, also by the next run, and
 * nothing else; and segments go when nobody needs them. */
#include "target/ring/lane.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/fault.h"
#include "common/mem.h"
#include "io/file.h"
#include "target/ring/lane_internal.h"

enum { BUCKET = 7, MOMENT_US = 50000 };

struct world {
    char dir[64];
    struct mountpaths *mountpaths;
    const struct mountpath_set *set;
    struct lane_place place;
};

static void open_world(struct world *w)
{
    const struct mountpaths_config config = {.target_id = "t1",
                                             .list = w->dir,
                                             .index_map_size = 16 << 20,
                                             .disk_depth = 16,
                                             .plain_io = true,
                                             .readers = 1,
                                             .readers_queue = 16};
    struct error err = ERROR_INIT;
    if (mountpaths_open(&config, &w->mountpaths, &err) != 0)
        fail_msg("%s", err.message);
    w->set = mountpaths_current(w->mountpaths);
    w->place = (struct lane_place){
        .target_id = "t1", .set = w->set, .mp = w->set->all[0], .bucket_id = BUCKET};
}

static void close_world(struct world *w)
{
    mountpath_set_unref(w->set);
    mountpaths_close(w->mountpaths);
}

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    snprintf(w->dir, sizeof w->dir, "/var/tmp/dfc-lane-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    open_world(w);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    fault_configure(NULL, NULL);
    close_world(w);
    assert_int_equal(file_remove_tree(w->dir, NULL), 0);
    free(w);
    return 0;
}

/* A push of so many samples with the byte. */
static int push(struct lane *l, unsigned count, char byte, bool sync, uint64_t *first)
{
    _cleanup_buf_ struct buf b = BUF_INIT;
    char data[100];
    memset(data, byte, sizeof data);
    const struct frame_part part = {
        .name = "k", .dtype = "bytes", .data = data, .len = sizeof data};
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(frame_make(&part, 1, &b, NULL), 0);
    const struct lane_push p = {.frames = b.data,
                                .len = b.len,
                                .count = count,
                                .producer = 9,
                                .sequence = (uint64_t)byte,
                                .sync = sync,
                                .segment_bytes = 1000};
    struct error err = ERROR_INIT;
    return lane_append(l, &p, first, &err);
}

static void assert_sample(struct lane *l, uint64_t ordinal, char byte)
{
    struct lane_range r;
    struct frame f;
    struct frame_kind k;
    char bytes[512];
    assert_int_equal(lane_find(l, ordinal, 1, &r, NULL), 0);
    assert_int_equal(r.count, 1);
    assert_true(r.length <= sizeof bytes);
    assert_int_equal(file_pread_full(r.fd, bytes, r.length, r.offset, NULL), 0);
    close(r.fd);
    assert_int_equal(frame_peek(bytes, &f, NULL), 0);
    assert_int_equal(f.ordinal, ordinal);
    assert_int_equal(f.producer, 9);
    assert_int_equal(frame_check_head(bytes, &f, NULL), 0);
    frame_kind(bytes, 0, &k);
    assert_int_equal(bytes[k.offset], byte);
}

static void count_seen(void *ctx, const char *lane, const struct frame *f)
{
    (void)lane;
    (void)f;
    ++*(unsigned *)ctx;
}

static struct lane *reopen(struct world *w, struct lane *l, unsigned *seen)
{
    char dir[RING_LANE_MAX];
    struct lane *again;
    snprintf(dir, sizeof dir, "%s", strrchr(lane_name(l), '.') + 1);
    lane_unref(l);
    close_world(w);
    open_world(w);
    *seen = 0;
    assert_int_equal(lane_open(&w->place, dir, count_seen, seen, &again, NULL), 0);
    return again;
}

static void test_there_and_after_a_restart(void **state)
{
    struct world *w = *state;
    struct ring_report r;
    struct lane *l;
    uint64_t first;
    unsigned seen;
    assert_int_equal(lane_make(&w->place, &l, NULL), 0);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(push(l, 2, (char)('a' + i), i % 2 == 0, &first), 0);
        assert_int_equal(first, 2 * i);
    }
    lane_report(l, &r);
    assert_int_equal(r.count, 40);
    assert_false(r.closed);
    l = reopen(w, l, &seen);
    assert_int_equal(seen, 40);
    lane_report(l, &r);
    assert_int_equal(r.count, 40);
    assert_true(r.closed);
    for (unsigned i = 0; i < 40; i++)
        assert_sample(l, i, (char)('a' + i / 2));
    struct lane_range range;
    assert_int_equal(lane_find(l, 40, 1, &range, NULL), E_GENERATION_GONE);
    assert_int_equal(push(l, 1, 'x', true, &first), E_CANCELLED);
    lane_unref(l);
}

static void test_ranges_end_with_their_file(void **state)
{
    struct world *w = *state;
    struct lane_range r;
    struct lane *l;
    uint64_t first, found = 0;
    assert_int_equal(lane_make(&w->place, &l, NULL), 0);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(push(l, 3, 'a', false, &first), 0);
    while (found < 30) {
        assert_int_equal(lane_find(l, found, 100, &r, NULL), 0);
        close(r.fd);
        assert_true(r.count > 0 && r.count < 30);
        found += r.count;
    }
    assert_int_equal(found, 30);
    lane_unref(l);
}

static void test_a_failed_write_leaves_nothing(void **state)
{
    struct world *w = *state;
    struct ring_report r;
    struct lane *l;
    uint64_t first;
    unsigned seen;
    assert_int_equal(lane_make(&w->place, &l, NULL), 0);
    assert_int_equal(push(l, 1, 'a', true, &first), 0);
    assert_int_equal(fault_configure("disk.write=ENOSPC@1", NULL), 0);
    assert_int_equal(push(l, 1, 'b', true, &first), E_NO_SPACE);
    fault_configure(NULL, NULL);
    assert_int_equal(push(l, 1, 'c', true, &first), 0);
    assert_int_equal(first, 1);
    l = reopen(w, l, &seen);
    lane_report(l, &r);
    assert_int_equal(r.count, 2);
    assert_sample(l, 1, 'c');
    lane_unref(l);
}

static void test_a_failed_sync_closes_the_lane(void **state)
{
    struct world *w = *state;
    struct ring_report r;
    struct lane *l;
    uint64_t first;
    unsigned seen;
    assert_int_equal(lane_make(&w->place, &l, NULL), 0);
    assert_int_equal(push(l, 1, 'a', true, &first), 0);
    assert_int_equal(fault_configure("disk.sync=EIO@1", NULL), 0);
    assert_int_equal(push(l, 2, 'b', true, &first), E_IO);
    fault_configure(NULL, NULL);
    assert_int_equal(push(l, 1, 'c', true, &first), E_CANCELLED);
    lane_report(l, &r);
    assert_int_equal(r.count, 1);
    assert_true(r.closed);
    l = reopen(w, l, &seen);
    assert_int_equal(seen, 1);
    lane_unref(l);
}

/* The first sync fails, a later one would succeed: what it is of may be lost. */
static void test_a_failed_sync_between_segments_closes_the_lane(void **state)
{
    struct world *w = *state;
    struct lane *l;
    uint64_t first;
    assert_int_equal(lane_make(&w->place, &l, NULL), 0);
    assert_int_equal(push(l, 4, 'a', false, &first), 0);
    assert_int_equal(fault_configure("disk.sync=EIO@1", NULL), 0);
    assert_int_equal(push(l, 1, 'b', true, &first), E_IO);
    fault_configure(NULL, NULL);
    assert_int_equal(push(l, 1, 'c', true, &first), E_CANCELLED);
    lane_unref(l);
}

struct pusher {
    pthread_t thread;
    struct lane *lane;
    int code;
};

static void *push_main(void *arg)
{
    struct pusher *p = arg;
    uint64_t first;
    p->code = push(p->lane, 1, 'b', true, &first);
    return NULL;
}

static void start_push(struct pusher *p, struct lane *l)
{
    *p = (struct pusher){.lane = l};
    assert_int_equal(pthread_create(&p->thread, NULL, push_main, p), 0);
}

static int end_push(struct pusher *p)
{
    assert_int_equal(pthread_join(p->thread, NULL), 0);
    return p->code;
}

/* As the thread that syncs. */
static void set_syncing(struct lane *l, bool syncing, bool failed)
{
    pthread_mutex_lock(&l->lock);
    l->syncing = syncing;
    l->failed = failed;
    pthread_cond_broadcast(&l->synced);
    pthread_mutex_unlock(&l->lock);
}

static void assert_one_file(struct lane *l, uint64_t count)
{
    struct ring_report r;
    lane_report(l, &r);
    assert_int_equal(r.count, count);
    assert_int_equal(l->segments_count, 1);
    _cleanup_free_ char *next = lane_segment_path(l, l->written);
    assert_int_equal(access(next, F_OK), -1);
    lane_unref(l);
}

/* One push waits for the sync, the next one for room: the file is full. */
static void test_a_segment_does_not_follow_a_failed_sync(void **state)
{
    struct world *w = *state;
    struct pusher waits, next;
    struct lane *l;
    uint64_t first;
    assert_int_equal(lane_make(&w->place, &l, NULL), 0);
    assert_int_equal(push(l, 3, 'a', true, &first), 0);
    set_syncing(l, true, false);
    start_push(&waits, l);
    usleep(MOMENT_US);
    start_push(&next, l);
    usleep(MOMENT_US);
    set_syncing(l, false, true);
    assert_int_equal(end_push(&waits), E_IO);
    assert_int_equal(end_push(&next), E_IO);
    assert_one_file(l, 3);
}

/* The lane fails while the next file is made. */
static void test_a_segment_is_not_kept_after_a_failed_sync(void **state)
{
    struct world *w = *state;
    struct pusher next;
    struct lane *l;
    uint64_t first;
    _cleanup_free_ char *held = xprintf("%s-held", w->dir);
    _cleanup_free_ char *spec = xprintf("disk.sync=hold:%s@1", held);
    assert_int_equal(lane_make(&w->place, &l, NULL), 0);
    assert_int_equal(push(l, 4, 'a', true, &first), 0);
    assert_int_equal(mkdir(held, 0700), 0);
    assert_int_equal(fault_configure(spec, NULL), 0);
    start_push(&next, l);
    usleep(MOMENT_US);
    set_syncing(l, true, true);
    assert_int_equal(rmdir(held), 0);
    assert_int_equal(end_push(&next), E_IO);
    assert_one_file(l, 4);
}

/* A push that comes before the grace is over keeps the segment that it is in. */
static void test_a_segment_in_use_stays(void **state)
{
    struct world *w = *state;
    struct lane *l;
    uint64_t first;
    assert_int_equal(lane_make(&w->place, &l, NULL), 0);
    assert_int_equal(push(l, 1, 'a', false, &first), 0);
    lane_release(l, 1, 100, 50);
    assert_int_equal(push(l, 1, 'b', false, &first), 0);
    lane_release(l, 1, 150, 50);
    assert_sample(l, 1, 'b');
    lane_release(l, 2, 160, 50);
    lane_release(l, 2, 200, 50);
    assert_sample(l, 1, 'b');
    lane_release(l, 2, 210, 50);
    assert_int_equal(lane_bytes(l), 0);
    lane_unref(l);
}

static void test_what_nobody_needs_goes(void **state)
{
    struct world *w = *state;
    struct ring_report r;
    struct lane_range range;
    struct lane *l;
    uint64_t first;
    unsigned seen;
    assert_int_equal(lane_make(&w->place, &l, NULL), 0);
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(push(l, 2, 'a', false, &first), 0);
    const uint64_t all = lane_bytes(l);
    lane_release(l, 20, 100, 50);
    lane_release(l, 20, 149, 50);
    assert_int_equal(lane_bytes(l), all); /* the grace */
    assert_int_equal(lane_bytes_staying(l), all / 2);
    assert_sample(l, 0, 'a');
    lane_release(l, 20, 150, 50);
    assert_true(lane_bytes(l) < all * 3 / 4);
    assert_int_equal(lane_find(l, 0, 1, &range, NULL), E_GENERATION_GONE);
    assert_sample(l, 20, 'a');
    lane_release(l, 40, 200, 0);
    assert_int_equal(lane_bytes(l), 0); /* also the one that was appended to */
    lane_report(l, &r);
    assert_int_equal(r.first, 40);
    assert_int_equal(r.count, 40);
    assert_false(r.closed);
    assert_int_equal(push(l, 1, 'z', true, &first), 0);
    assert_int_equal(first, 40);
    l = reopen(w, l, &seen);
    lane_report(l, &r);
    assert_int_equal(r.count, 41);
    assert_false(r.drained);
    lane_release(l, 41, 300, 0);
    lane_report(l, &r);
    assert_true(r.drained);
    assert_int_equal(r.first, r.count);
    assert_int_equal(lane_remove(l, NULL), 0);
    lane_unref(l);
}

/* Cut as a crash may cut it: at each byte of the last push. */
static void test_a_torn_push_does_not_count(void **state)
{
    struct world *w = *state;
    struct ring_report r;
    struct lane *l;
    uint64_t first;
    unsigned seen;
    assert_int_equal(lane_make(&w->place, &l, NULL), 0);
    assert_int_equal(push(l, 1, 'a', true, &first), 0);
    const uint64_t whole = lane_bytes(l);
    assert_int_equal(push(l, 2, 'b', true, &first), 0);
    _cleanup_free_ char *above = lanes_dir(w->place.mp, BUCKET);
    _cleanup_free_ char *path =
        xprintf("%s/%s/%016x.seg", above, strrchr(lane_name(l), '.') + 1, 0);
    for (uint64_t end = lane_bytes(l) - 1; end >= whole; end -= 37) {
        struct stat st;
        assert_int_equal(truncate(path, (off_t)end), 0);
        l = reopen(w, l, &seen);
        lane_report(l, &r);
        assert_int_equal(r.count, 1);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, whole);
        assert_int_equal(truncate(path, (off_t)(whole + 64)), 0); /* zeros, as of a lost write */
    }
    l = reopen(w, l, &seen);
    assert_int_equal(seen, 1);
    assert_sample(l, 0, 'a');
    lane_unref(l);
}

/* What no generation had goes, though older samples are of one; the first file has both. */
static void test_a_file_in_the_middle_is_dropped(void **state)
{
    struct world *w = *state;
    struct lane_range range;
    struct ring_report r;
    struct lane *l;
    uint64_t first, bytes;
    unsigned seen;
    assert_int_equal(lane_make(&w->place, &l, NULL), 0);
    for (unsigned i = 0; i < 12; i++)
        assert_int_equal(push(l, 1, (char)('a' + i), true, &first), 0);
    const uint64_t all = lane_bytes(l);
    lane_drop(l, 2, 2);
    assert_int_equal(lane_drop_to(l, &bytes), 8);
    assert_int_equal(bytes, all / 3);
    assert_int_equal(lane_bytes(l), all);
    lane_drop(l, 2, 8);
    assert_int_equal(lane_bytes(l), all * 2 / 3);
    assert_int_equal(lane_find(l, 5, 1, &range, NULL), E_GENERATION_GONE);
    assert_sample(l, 0, 'a');
    assert_sample(l, 8, 'i');
    assert_int_equal(lane_drop_to(l, &bytes), 12); /* the file that is appended to */
    lane_drop(l, 2, 12);
    assert_int_equal(lane_drop_to(l, &bytes), 0);
    assert_int_equal(bytes, 0);
    assert_int_equal(push(l, 1, 'm', true, &first), 0);
    assert_int_equal(first, 12);
    l = reopen(w, l, &seen);
    assert_int_equal(seen, 5);
    lane_report(l, &r);
    assert_int_equal(r.count, 13);
    assert_int_equal(r.holes_count, 1);
    assert_int_equal(r.holes[0].from, 4);
    assert_int_equal(r.holes[0].to, 12);
    assert_sample(l, 12, 'm');
    lane_unref(l);
}

static void flip(const char *path, uint64_t at)
{
    char byte;
    _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte = (char)~byte;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
}

/* In the last file, and in an earlier one: the sample alone is lost, and the keeper is told. */
static void test_damage_takes_a_sample(void **state)
{
    struct world *w = *state;
    struct lane_range range;
    struct ring_report r;
    struct lane *l;
    uint64_t first, size;
    unsigned seen;
    assert_int_equal(lane_make(&w->place, &l, NULL), 0);
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(push(l, 1, (char)('a' + i), true, &first), 0);
    assert_int_equal(lane_find(l, 0, 7, &range, NULL), 0);
    close(range.fd);
    assert_int_equal(range.count, 4); /* of a file */
    size = range.length / 4;
    _cleanup_free_ char *above = lanes_dir(w->place.mp, BUCKET);
    const char *dir = strrchr(lane_name(l), '.') + 1;
    _cleanup_free_ char *one = xprintf("%s/%s/%016x.seg", above, dir, 0);
    _cleanup_free_ char *two = xprintf("%s/%s/%016x.seg", above, dir, 4);
    flip(one, 3 * size);     /* sample 3, its head */
    flip(two, 2 * size - 1); /* sample 5, its payload */
    l = reopen(w, l, &seen);
    assert_int_equal(seen, 5);
    lane_report(l, &r);
    assert_int_equal(r.count, 7);
    assert_int_equal(r.holes_count, 2);
    assert_int_equal(r.holes[0].from, 3);
    assert_int_equal(r.holes[0].to, 4);
    assert_int_equal(r.holes[1].from, 5);
    for (unsigned i = 0; i < 7; i++) {
        if (i != 3 && i != 5)
            assert_sample(l, i, (char)('a' + i));
    }
    assert_int_equal(lane_find(l, 5, 9, &range, NULL), E_GENERATION_GONE);
    assert_int_equal(range.count, 1);
    assert_int_equal(lane_find(l, 0, 9, &range, NULL), 0);
    close(range.fd);
    assert_int_equal(range.count, 3);
    assert_int_equal(range.length, 3 * size);
    lane_release(l, 6, 0, 0);
    assert_int_equal(lane_find(l, 5, 1, &range, NULL), E_GENERATION_GONE);
    assert_int_equal(range.count, 0);
    lane_report(l, &r);
    assert_int_equal(r.holes_count, 0);
    assert_sample(l, 6, 'g');
    lane_unref(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_there_and_after_a_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ranges_end_with_their_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_failed_write_leaves_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_failed_sync_closes_the_lane, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_failed_sync_between_segments_closes_the_lane, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_segment_does_not_follow_a_failed_sync, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_segment_is_not_kept_after_a_failed_sync, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_nobody_needs_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_segment_in_use_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage_takes_a_sample, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_file_in_the_middle_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_torn_push_does_not_count, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
