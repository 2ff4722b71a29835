#include "io/shares.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "io/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned running, most_running, ended;
static bool open_door;

static void wait_at_the_door(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    running++;
    most_running = running > most_running ? running : most_running;
    pthread_cond_broadcast(&changed);
    while (!open_door)
        pthread_cond_wait(&changed, &lock);
    running--;
    ended++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void note_order(void *arg)
{
    static unsigned next;
    assert_int_equal((uintptr_t)arg, next);
    next++;
    ended++; /* one at a time */
}

static void pass(void *arg)
{
    pthread_mutex_lock(&lock);
    *(bool *)arg = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void test_one_key_leaves_threads_to_others(void **state)
{
    (void)state;
    struct pool *pool;
    bool passed = false;
    assert_int_equal(pool_new("test", 4, 64, &pool, NULL), 0);
    struct shares *s = shares_new(pool, 2, 8);
    for (int i = 0; i < 10; i++)
        assert_int_equal(shares_submit(s, "slow", wait_at_the_door, NULL, NULL), 0);
    struct error err = ERROR_INIT;
    assert_int_equal(shares_submit(s, "slow", wait_at_the_door, NULL, &err), E_OVERLOAD);
    pthread_mutex_lock(&lock);
    while (running < 2)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    assert_int_equal(shares_submit(s, "quick", pass, &passed, NULL), 0);
    pthread_mutex_lock(&lock);
    while (!passed)
        pthread_cond_wait(&changed, &lock);
    assert_int_equal(ended, 0);
    open_door = true;
    pthread_cond_broadcast(&changed);
    while (ended < 10)
        pthread_cond_wait(&changed, &lock);
    assert_int_equal(most_running, 2);
    pthread_mutex_unlock(&lock);
    pool_free(pool);
    shares_free(s);
}

static void test_in_order_and_to_the_end(void **state)
{
    (void)state;
    struct pool *pool;
    ended = 0;
    assert_int_equal(pool_new("test", 3, 1, &pool, NULL),
                     0); /* a queue of one: it is full at times */
    struct shares *s = shares_new(pool, 1, 1000);
    for (uintptr_t i = 0; i < 500; i++)
        assert_int_equal(shares_submit(s, "one", note_order, (void *)i, NULL), 0);
    pool_free(pool);
    assert_int_equal(ended, 500);
    shares_free(s);
}

static void test_a_pool_that_is_full(void **state)
{
    (void)state;
    struct pool *pool;
    unsigned taken = 0;
    ended = running = 0;
    open_door = false;
    assert_int_equal(pool_new("test", 1, 1, &pool, NULL), 0);
    struct shares *s = shares_new(pool, 1, 10);
    for (int i = 0; i < 10; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%d", i);
        taken += shares_submit(s, key, wait_at_the_door, NULL, NULL) == 0;
    }
    assert_in_range(taken, 1, 2);
    pthread_mutex_lock(&lock);
    open_door = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pool_free(pool);
    assert_int_equal(ended, taken);
    shares_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_key_leaves_threads_to_others),
        cmocka_unit_test(test_in_order_and_to_the_end),
        cmocka_unit_test(test_a_pool_that_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
