#include "target/node/thread_classes.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "io/pool.h"
#include "target/node/params.h"

static const struct target_params params = {.workers = 1,
                                            .rename_parallel = 1,
                                            .copies_parallel = 4,
                                            .cold_parallel = 3,
                                            .cold_writes = 2,
                                            .slices_readers = 2,
                                            .batches_max = 2,
                                            .unpack_threads = 2,
                                            .sort_readers = 2,
                                            .ring_parallel = 2,
                                            .uploads_parallel = 2,
                                            .hash_threads = 3,
                                            .thread_idle = 60000};

/* Rows below only: then no chain of waits comes back to where it began. */
static void test_class_waits_only_for_rows_below(void **state)
{
    (void)state;
    for (unsigned c = 0; c < THREAD_CLASSES; c++) {
        struct thread_class_row row = thread_class_row(c, &params);
        uint32_t below = ((UINT32_C(1) << THREAD_CLASSES) - 1) & ~((UINT32_C(2) << c) - 1);
        if ((row.waits_for & ~below) != 0)
            fail_msg("class '%s' waits for itself or for a class above it", row.name);
    }
}

static void test_limits_are_of_the_parameters(void **state)
{
    (void)state;
    assert_int_equal(thread_class_row(THREADS_HANDER, &params).limit, 2);
    assert_int_equal(thread_class_row(THREADS_FETCHER, &params).limit, 3);
    assert_int_equal(thread_class_row(THREADS_UPLOADER, &params).queue_max, 2);
    assert_int_equal(thread_class_row(THREADS_HASHER, &params).limit, 3);
    assert_string_equal(thread_class_row(THREADS_EC_READ, &params).name, "ec-read");
}

struct chain {
    struct pool *pools[THREAD_CLASSES];
    sem_t entered;
    sem_t open;
    sem_t ran;
};

static void hold(void *arg)
{
    struct chain *c = arg;
    sem_post(&c->entered);
    sem_wait(&c->open);
    sem_post(&c->ran);
}

static void pass(void *arg)
{
    struct chain *c = arg;
    sem_post(&c->ran);
}

/* All threads of one class are busy: every other class still runs its jobs. */
static void test_full_class_holds_up_no_other(void **state)
{
    (void)state;
    struct chain c;
    sem_init(&c.entered, 0, 0);
    sem_init(&c.open, 0, 0);
    sem_init(&c.ran, 0, 0);
    for (unsigned i = 0; i < THREAD_CLASSES; i++)
        assert_int_equal(thread_class_new(i, &params, &c.pools[i], NULL), 0);
    for (unsigned full = 0; full < THREAD_CLASSES; full++) {
        unsigned limit = thread_class_row(full, &params).limit;
        for (unsigned i = 0; i < limit; i++) {
            assert_int_equal(pool_submit(c.pools[full], hold, &c, NULL), 0);
            sem_wait(&c.entered);
        }
        for (unsigned i = 0; i < THREAD_CLASSES; i++)
            if (i != full) {
                assert_int_equal(pool_submit(c.pools[i], pass, &c, NULL), 0);
                sem_wait(&c.ran);
            }
        for (unsigned i = 0; i < limit; i++)
            sem_post(&c.open);
        for (unsigned i = 0; i < limit; i++) /* no token is left for those of another class */
            sem_wait(&c.ran);
    }
    for (unsigned i = 0; i < THREAD_CLASSES; i++)
        pool_free(c.pools[i]);
    sem_destroy(&c.entered);
    sem_destroy(&c.open);
    sem_destroy(&c.ran);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_class_waits_only_for_rows_below),
        cmocka_unit_test(test_limits_are_of_the_parameters),
        cmocka_unit_test(test_full_class_holds_up_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
