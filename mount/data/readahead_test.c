#include "mount/data/readahead.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define KIB (1ull << 10)
#define MIB (1ull << 20)

static void one_stream_gets_a_window_that_doubles(void **state)
{
    (void)state;
    struct readahead r = {0};
    uint64_t asked = 128 * KIB; /* all that was read or asked for */
    for (uint64_t at = 0; at < 64 * MIB; at += 128 * KIB) {
        struct span s = readahead_read(&r, at, 128 * KIB, 64 * MIB, 8 * MIB);
        if (s.from != s.to) {
            assert_int_equal(s.from, asked);
            assert_true(s.to <= at + 128 * KIB + 8 * MIB);
            asked = s.to;
        }
        assert_true(asked >= at + 128 * KIB);
        assert_int_equal(r.lone, at == 0);
    }
    assert_int_equal(asked, 64 * MIB);
    assert_int_equal(r.streams[0].window, 8 * MIB);
}

static void nothing_is_asked_for_twice(void **state)
{
    (void)state;
    struct readahead r = {0};
    uint64_t sum = 0;
    for (uint64_t at = 0; at < 16 * MIB; at += 64 * KIB) {
        struct span s = readahead_read(&r, at, 64 * KIB, 16 * MIB, 4 * MIB);
        sum += s.to - s.from;
    }
    assert_int_equal(sum, 16 * MIB - 64 * KIB);
}

static void random_reads_get_nothing(void **state)
{
    (void)state;
    struct readahead r = {0};
    uint64_t at = 12345;
    for (unsigned i = 0; i < 1000; i++) {
        at = (at * 6364136223846793005ull + 1442695040888963407ull) % (1ull << 50);
        struct span s = readahead_read(&r, at | 1 << 20, 4096, 1ull << 51, 8 * MIB);
        assert_int_equal(s.from, s.to);
        assert_true(r.lone);
    }
}

static void parts_may_overtake_each_other(void **state)
{
    (void)state;
    static const uint64_t order[] = {0, 2, 1, 3, 5, 4, 7, 6};
    struct readahead r = {0};
    for (unsigned round = 0; round < 8; round++) {
        for (unsigned i = 0; i < 8; i++)
            readahead_read(&r, (8 * round + order[i]) * 128 * KIB, 128 * KIB, 1ull << 40, 8 * MIB);
    }
    assert_int_equal(r.streams[0].next, 8 * MIB);
    assert_int_equal(r.streams[1].used, 0);
}

static void several_streams_are_followed(void **state)
{
    (void)state;
    struct readahead r = {0};
    for (uint64_t step = 0; step < 16; step++) {
        for (uint64_t stream = 0; stream < READAHEAD_STREAMS; stream++)
            readahead_read(&r, stream * 100 * MIB + step * 128 * KIB, 128 * KIB, 1ull << 40,
                           4 * MIB);
    }
    for (unsigned i = 0; i < READAHEAD_STREAMS; i++)
        assert_int_equal(r.streams[i].window, 4 * MIB);
}

static void the_window_obeys_its_bounds(void **state)
{
    (void)state;
    struct readahead r = {0};
    struct span s = readahead_read(&r, 0, 4096, 4096, 8 * MIB); /* the file ends */
    assert_int_equal(s.from, s.to);
    s = readahead_read(&r, 0, 0, 0, 8 * MIB); /* an empty file */
    assert_int_equal(s.from, s.to);
    r = (struct readahead){0};
    s = readahead_read(&r, 0, 4096, MIB, 0); /* no room */
    assert_int_equal(s.from, s.to);
    readahead_read(&r, 4096, 4096, MIB, 8 * MIB);
    s = readahead_read(&r, 8192, 4096, MIB, 64 * KIB); /* room gets short */
    assert_int_equal(r.streams[0].window, 64 * KIB);
    readahead_read(&r, UINT64_MAX - 4096, 4096, UINT64_MAX, MIB); /* no overflow */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stream_gets_a_window_that_doubles),
        cmocka_unit_test(nothing_is_asked_for_twice),
        cmocka_unit_test(random_reads_get_nothing),
        cmocka_unit_test(parts_may_overtake_each_other),
        cmocka_unit_test(several_streams_are_followed),
        cmocka_unit_test(the_window_obeys_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
