#include "target/sort/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void test_streams_fit(void **state)
{
    (void)state;
    static const struct {
        unsigned wanted;
        size_t targets;
        uint64_t connections;
        unsigned threads;
    } rows[] = {
        {8, 1, 8, 8},       {8, 2, 4096, 8}, {64, 33, 4096, 64},
        {64, 65, 4096, 32}, {64, 3, 24, 6},  {64, 4096, 4096, 1},
        {64, 3, 8, 2},      {1, 1000, 8, 1}, {64, 2, 1000000, 64},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(sort_threads_create(rows[i].wanted, rows[i].targets, rows[i].connections),
                         rows[i].threads);
}

static void test_disks_and_processors(void **state)
{
    (void)state;
    static const struct {
        unsigned asked, disks;
        long cpus;
        unsigned extract, create;
    } rows[] = {
        {0, 1, 1, 2, 4},     {0, 1, 2, 2, 4},    {0, 1, 16, 16, 16}, {0, 12, 2, 12, 24},
        {0, 12, 64, 64, 64}, {0, 1, -1, 2, 4}, /* sysconf() that does not know */
        {1, 1, 64, 1, 1},    {3, 12, 2, 36, 36},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(
            sort_threads_of(&sort_threads_extracting, rows[i].asked, rows[i].disks, rows[i].cpus),
            rows[i].extract);
        assert_int_equal(
            sort_threads_of(&sort_threads_creating, rows[i].asked, rows[i].disks, rows[i].cpus),
            rows[i].create);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams_fit),
        cmocka_unit_test(test_disks_and_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
