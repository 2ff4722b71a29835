/* Entities in one file, of cache.h. */
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache/testing/caches.h"
#include "common/clock.h"
#include "common/fault.h"
#include "common/mem.h"
#include "common/metrics.h"

static const struct cache_entity large = {.name = "large", .set = "s", .size = 13 * MIB + 4321};

/* Files of the directories whose names end so. */
static size_t files_of(const char *end)
{
    glob_t g;
    _cleanup_free_ char *pattern = xprintf("%s/d*/dfc-cache/pieces/*/*/*%s", caches_root, end);
    if (glob(pattern, 0, NULL, &g) != 0)
        return 0;
    size_t count = g.gl_pathc;
    globfree(&g);
    return count;
}

static struct cache *make_filled(unsigned count, const struct cache_entity *e)
{
    struct cache *c = caches_make(count);
    caches_fill(c, e, MIB, true);
    cache_flush(c);
    caches_store_is_slow(c);
    return c;
}

static int whole_of(struct cache *c, const struct cache_entity *e)
{
    int fd = cache_whole(c, e);
    if (fd >= 0)
        return fd;
    caches_settle();
    return cache_whole(c, e);
}

/* Asks until it is there: a directory rests for a second after a slow read. */
static int whole_at_last(struct cache *c, const struct cache_entity *e)
{
    int fd;
    const struct timespec moment = {.tv_nsec = 10000000};
    const uint64_t end_ms = clock_ms() + 60000;
    while ((fd = whole_of(c, e)) < 0 && clock_ms() < end_ms)
        nanosleep(&moment, NULL);
    return fd;
}

static void check_file(int fd, const struct cache_entity *e)
{
    struct stat st;
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, e->size);
    _cleanup_free_ char *data = xmalloc(e->size);
    assert_int_equal(pread(fd, data, e->size, 0), e->size);
    assert_true(caches_matches(e, 0, e->size, data));
}

static void pieces_become_one_file(void **state)
{
    (void)state;
    for (unsigned count = 1; count <= 3; count += 2) {
        struct cache *c = make_filled(count, &large);
        assert_int_equal(files_of(""), 4);
        assert_int_equal(cache_whole(c, &large), -1); /* it is asked for, for later */
        caches_settle();
        int fd = cache_whole(c, &large);
        check_file(fd, &large);
        close(fd);
        assert_int_equal(files_of("-ffffffffffffffff"), 1);
        assert_int_equal(files_of(""), 2); /* and its foot: the pieces have left */
        assert_int_equal(cache_bytes_of(c, &large, 5, UINT64_MAX / 2), large.size - 5);
        assert_int_equal(caches_read_all(c, &large), large.size);
        cache_close(c);
        assert_int_equal(caches_teardown(NULL), 0);
        assert_int_equal(caches_setup(NULL), 0);
    }
}

static void small_and_partial_entities_are_left(void **state)
{
    (void)state;
    const struct cache_entity small = {.name = "small", .set = "s", .size = PIECE_BYTES};
    struct cache *c = make_filled(1, &small);
    assert_int_equal(whole_of(c, &small), -1);
    for (uint64_t at = 0; at < 3 * PIECE_BYTES; at += MIB)
        caches_fill_span(c, &large, at, MIB, true); /* all but the last piece */
    cache_flush(c);
    assert_int_equal(whole_of(c, &large), -1);
    assert_int_equal(files_of("-ffffffffffffffff"), 0);
    cache_close(c);
}

/* The foot's time is before the machine started. */
static void as_before_a_start(void)
{
    _cleanup_free_ char *command =
        xprintf("touch -d 2020-01-01 %s/d*/dfc-cache/pieces/*/*/*.foot", caches_root);
    assert_int_equal(system(command), 0);
}

static void the_next_process_has_it(void **state)
{
    (void)state;
    struct cache *c = make_filled(1, &large);
    close(whole_of(c, &large));
    cache_close(c);
    c = caches_make(1);
    caches_store_is_slow(c);
    cache_bytes_of(c, &large, 0, large.size); /* the scan has ended */
    int fd = cache_whole(c, &large);
    check_file(fd, &large);
    close(fd);
    cache_close(c);
}

static void after_a_start_it_is_compared_first(void **state)
{
    (void)state;
    struct cache *c = make_filled(1, &large);
    close(whole_of(c, &large));
    cache_close(c);
    as_before_a_start();
    c = caches_make(1);
    caches_store_is_slow(c);
    assert_int_equal(cache_bytes_of(c, &large, 0, large.size), large.size); /* the scan has ended */
    assert_int_equal(cache_whole(c, &large), -1);
    assert_int_equal(caches_read_all(c, &large), large.size);
    caches_settle();
    int fd = whole_at_last(c, &large);
    check_file(fd, &large);
    close(fd);
    cache_close(c);
}

/* Byte `at` of the only file with this end of its name. */
static void damage(const char *end, uint64_t at)
{
    glob_t g;
    unsigned char byte;
    _cleanup_free_ char *pattern = xprintf("%s/d*/dfc-cache/pieces/*/*/*%s", caches_root, end);
    assert_int_equal(glob(pattern, 0, NULL, &g), 0);
    assert_int_equal(g.gl_pathc, 1);
    FILE *f = fopen(g.gl_pathv[0], "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_int_equal(fread(&byte, 1, 1, f), 1);
    byte ^= 1;
    assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(&byte, 1, 1, f), 1);
    assert_int_equal(fclose(f), 0);
    globfree(&g);
}

static void what_is_damaged_is_not_given(void **state)
{
    (void)state;
    static const struct {
        const char *end;
        uint64_t at;
    } places[] = {
        {"-ffffffffffffffff", 9 * MIB + 77}, /* the bytes */
        {".foot", 300 * 8},                  /* a sum of the third piece */
        {".foot", 418 * 8 + 1},              /* the name behind the sums of 417 parts */
    };
    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct cache *c = make_filled(1, &large);
        close(whole_of(c, &large));
        cache_close(c);
        damage(places[i].end, places[i].at);
        as_before_a_start();
        c = caches_make(1);
        caches_store_is_slow(c);
        cache_bytes_of(c, &large, 0, large.size);
        assert_int_equal(whole_of(c, &large), -1);
        assert_int_equal(files_of(""), 0);
        assert_int_equal(caches_read_all(c, &large), 0);
        caches_fill(c, &large, MIB, true); /* the store gives it again */
        cache_flush(c);
        assert_int_equal(caches_read_all(c, &large), large.size);
        cache_close(c);
        assert_int_equal(caches_teardown(NULL), 0);
        assert_int_equal(caches_setup(NULL), 0);
    }
}

/* Five times what a cache of 32 MiB has, each read twice. */
static void crowd(struct cache *c, unsigned round)
{
    for (unsigned i = 0; i < 20; i++) {
        _cleanup_free_ char *name = xprintf("%u of %u", i, round);
        const struct cache_entity other = {.name = name, .set = "t", .size = 8 * MIB};
        caches_fill(c, &other, MIB, true);
        cache_flush(c);
        caches_read_all(c, &other);
        caches_read_all(c, &other);
    }
}

static void what_is_evicted_stays_readable(void **state)
{
    (void)state;
    struct cache *c = caches_make_of(1, 32 * MIB, 64 * MIB);
    caches_fill(c, &large, MIB, true);
    cache_flush(c);
    caches_store_is_slow(c);
    int fd = whole_at_last(c, &large);
    check_file(fd, &large);
    crowd(c, 0);
    assert_int_equal(files_of("-ffffffffffffffff"), 0);
    assert_int_equal(files_of(".foot"), 0);
    assert_int_equal(cache_whole(c, &large), -1);
    check_file(fd, &large);
    close(fd);
    cache_close(c);
}

static void there_must_be_room(void **state)
{
    (void)state;
    struct cache *c = caches_make_of(1, 3 * large.size / 2, 64 * MIB);
    caches_fill(c, &large, MIB, true);
    cache_flush(c);
    caches_store_is_slow(c);
    assert_int_equal(whole_of(c, &large), -1);
    assert_int_equal(caches_read_all(c, &large), large.size);
    cache_close(c);
}

static void an_error_leaves_the_pieces(void **state)
{
    (void)state;
    static const char *const faults[] = {"cache.write=ENOSPC", "cache.rename=EIO"};
    for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct error err = ERROR_INIT;
        struct cache *c = make_filled(1, &large);
        assert_int_equal(fault_configure(faults[i], &err), 0);
        assert_int_equal(whole_of(c, &large), -1);
        fault_configure(NULL, NULL);
        assert_int_equal(files_of("-ffffffffffffffff"), 0);
        assert_int_equal(caches_read_all(c, &large), large.size);
        cache_close(c);
        assert_int_equal(caches_teardown(NULL), 0);
        assert_int_equal(caches_setup(NULL), 0);
    }
}

/* Only the piece that could not be read is lost. */
static void a_bad_sector_costs_its_piece(void **state)
{
    (void)state;
    struct cache *c = make_filled(1, &large);
    assert_int_equal(fault_configure("cache.read=EIO@3", NULL), 0);
    assert_int_equal(whole_of(c, &large), -1);
    fault_configure(NULL, NULL);
    assert_int_equal(caches_read_all(c, &large), large.size - PIECE_BYTES);
    caches_fill(c, &large, MIB, true);
    cache_flush(c);
    assert_int_equal(caches_read_all(c, &large), large.size);
    close(whole_at_last(c, &large));
    cache_close(c);
}

static uint64_t disk_state(void)
{
    return metric_sum(M_cache_disk_state, caches_root);
}

/* The store gives what cannot be read, until all of the file was compared. */
static void one_error_costs_no_whole(void **state)
{
    (void)state;
    struct cache *c = make_filled(1, &large);
    close(whole_at_last(c, &large));
    assert_int_equal(fault_configure("cache.read=EIO@1", NULL), 0);
    assert_true(caches_read_all(c, &large) < large.size);
    caches_settle();
    fault_configure(NULL, NULL);
    assert_int_equal(caches_read_all(c, &large), large.size);
    int fd = whole_at_last(c, &large);
    check_file(fd, &large);
    close(fd);
    assert_int_equal(disk_state(), 0);
    cache_close(c);
}

static void a_bad_sector_costs_its_whole(void **state)
{
    (void)state;
    struct cache *c = make_filled(1, &large);
    close(whole_at_last(c, &large));
    assert_int_equal(fault_configure("cache.read=EIO", NULL), 0);
    assert_int_equal(caches_read_all(c, &large), 0);
    caches_settle();
    fault_configure(NULL, NULL);
    assert_int_equal(files_of(""), 0);
    assert_int_equal(disk_state(), 0); /* other reads did not meet it */
    caches_fill(c, &large, MIB, true);
    cache_flush(c);
    assert_int_equal(caches_read_all(c, &large), large.size);
    cache_close(c);
}

/* An error counts once, by whoever it is met. */
static void a_comparison_reads_again(void **state)
{
    (void)state;
    const struct cache_entity small = {.name = "small", .set = "s", .size = MIB};
    struct cache *c = make_filled(1, &large);
    close(whole_at_last(c, &large));
    cache_close(c);
    as_before_a_start();
    c = make_filled(1, &small);
    assert_int_equal(fault_configure("cache.read=EIO@1", NULL), 0);
    assert_int_equal(caches_read_all(c, &small), 0);
    assert_int_equal(fault_configure("cache.read=EIO@1", NULL), 0);
    assert_int_equal(cache_whole(c, &large), -1);
    caches_settle();
    fault_configure(NULL, NULL);
    assert_int_equal(disk_state(), 0);
    int fd = whole_at_last(c, &large);
    check_file(fd, &large);
    close(fd);
    cache_close(c);
}

/* A failed disk is tried by reads, whatever is opened. */
static void an_open_takes_no_try(void **state)
{
    (void)state;
    static const struct cache_entity kept = {.name = "kept", .set = "s", .size = MIB},
                                     lost[] = {{.name = "1", .set = "s", .size = MIB},
                                               {.name = "2", .set = "s", .size = MIB},
                                               {.name = "3", .set = "s", .size = MIB}};
    const struct timespec moment = {.tv_nsec = 1000000};
    struct cache *c = make_filled(1, &large);
    for (unsigned i = 0; i < 3; i++)
        caches_fill(c, &lost[i], MIB, true);
    caches_fill(c, &kept, MIB, true);
    cache_flush(c);
    assert_int_equal(fault_configure("cache.read=EIO", NULL), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(caches_read_all(c, &lost[i]), 0);
    fault_configure(NULL, NULL);
    assert_int_equal(disk_state(), 1);
    uint64_t got = 0;
    for (unsigned i = 0; i < 2000 && got == 0; i++) {
        assert_int_equal(cache_whole(c, &large), -1);
        got = caches_read_all(c, &kept);
        nanosleep(&moment, NULL);
    }
    assert_int_equal(got, kept.size);
    cache_close(c);
}

/* What the copy waits for the disk nobody else does. */
static void a_copy_makes_no_slow_disk(void **state)
{
    (void)state;
    struct cache *c = make_filled(1, &large);
    assert_int_equal(fault_configure("cache.read=delay:2", NULL), 0);
    assert_int_equal(cache_whole(c, &large), -1);
    caches_settle();
    fault_configure(NULL, NULL);
    int fd = cache_whole(c, &large);
    check_file(fd, &large);
    close(fd);
    cache_close(c);
}

static void what_a_kill_left_is_removed(void **state)
{
    (void)state;
    struct cache *c = make_filled(1, &large);
    close(whole_of(c, &large));
    cache_close(c);
    _cleanup_free_ char *command =
        xprintf("rm %s/d0/dfc-cache/pieces/*/*/*-ffffffffffffffff", caches_root);
    assert_int_equal(system(command), 0);
    assert_int_equal(files_of(".foot"), 1);
    c = caches_make(1);
    cache_bytes_of(c, &large, 0, large.size);
    assert_int_equal(files_of(".foot"), 0);
    cache_close(c);
}

static void *reader(void *cache)
{
    for (unsigned i = 0; i < 20; i++)
        caches_read_all(cache, &large);
    return NULL;
}

static void readers_find_all_bytes_meanwhile(void **state)
{
    (void)state;
    pthread_t threads[3];
    struct cache *c = make_filled(3, &large);
    assert_int_equal(cache_whole(c, &large), -1);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader, c), 0);
    for (unsigned i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    caches_settle();
    assert_int_equal(files_of(""), 2);
    assert_int_equal(caches_read_all(c, &large), large.size);
    cache_close(c);
}

static void others_leave_for_a_small_one_alone(void **state)
{
    (void)state;
    struct cache *c = caches_make_of(1, 100 * MIB, 64 * MIB);
    for (unsigned i = 0; i < 30; i++) {
        _cleanup_free_ char *name = xprintf("%u", i);
        const struct cache_entity other = {.name = name, .set = "t", .size = PIECE_BYTES};
        caches_fill(c, &other, MIB, true);
        cache_flush(c);
    }
    const struct cache_entity half = {.name = "half", .set = "s", .size = 50 * MIB};
    caches_fill(c, &large, MIB, true);
    caches_fill(c, &half, MIB, true);
    cache_flush(c);
    caches_store_is_slow(c);
    assert_int_equal(whole_of(c, &half), -1); /* more than a quarter */
    assert_int_equal(caches_read_all(c, &half), half.size);
    int fd = whole_at_last(c, &large);
    check_file(fd, &large);
    close(fd);
    cache_close(c);
}

static void what_is_held_stays(void **state)
{
    (void)state;
    struct cache *c = caches_make_of(1, 32 * MIB, 64 * MIB);
    caches_fill(c, &large, MIB, true);
    cache_flush(c);
    caches_store_is_slow(c);
    close(whole_of(c, &large));
    cache_hold(c, &large, 1);
    for (unsigned round = 0; round < 2; round++) {
        crowd(c, round);
        assert_int_equal(files_of("-ffffffffffffffff"), round == 0);
        cache_hold(c, &large, -1);
    }
    cache_close(c);
}

static void what_is_within_a_whole_is_not_kept_again(void **state)
{
    (void)state;
    struct cache *c = make_filled(1, &large);
    close(whole_of(c, &large));
    assert_false(caches_fill_span(c, &large, 0, MIB, true));
    cache_close(c);
}

static void a_cache_that_closes_gives_up(void **state)
{
    (void)state;
    const struct cache_entity huge = {.name = "huge", .set = "s", .size = 100 * MIB};
    struct cache *c = make_filled(3, &huge);
    assert_int_equal(cache_whole(c, &huge), -1);
    cache_close(c);
    c = caches_make(3);
    caches_store_is_slow(c);
    assert_int_equal(cache_bytes_of(c, &huge, 0, huge.size), huge.size);
    cache_close(c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, caches_setup, caches_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pieces_become_one_file),
        TEST(small_and_partial_entities_are_left),
        TEST(the_next_process_has_it),
        TEST(after_a_start_it_is_compared_first),
        TEST(what_is_damaged_is_not_given),
        TEST(what_is_evicted_stays_readable),
        TEST(there_must_be_room),
        TEST(an_error_leaves_the_pieces),
        TEST(a_bad_sector_costs_its_piece),
        TEST(one_error_costs_no_whole),
        TEST(a_bad_sector_costs_its_whole),
        TEST(a_comparison_reads_again),
        TEST(an_open_takes_no_try),
        TEST(a_copy_makes_no_slow_disk),
        TEST(what_a_kill_left_is_removed),
        TEST(readers_find_all_bytes_meanwhile),
        TEST(others_leave_for_a_small_one_alone),
        TEST(what_is_held_stays),
        TEST(what_is_within_a_whole_is_not_kept_again),
        TEST(a_cache_that_closes_gives_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
