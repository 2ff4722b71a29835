#include "target/copies/dirty_turns.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

#include "io/pool.h"
#include "target/store/name_queue.h"

enum { THREADS = 4, MOST = 4 };

struct scene {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open; /* until then each settling stands still */
    int running, most_running, done;
    char order[16];
};

static void stands_still(void *arg, uint64_t bucket_id, const char *name)
{
    struct scene *s = arg;
    (void)bucket_id;
    pthread_mutex_lock(&s->lock);
    if (++s->running > s->most_running)
        s->most_running = s->running;
    s->order[strlen(s->order)] = *name;
    pthread_cond_broadcast(&s->changed);
    while (!s->open)
        pthread_cond_wait(&s->changed, &s->lock);
    s->running--;
    s->done++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void await(struct scene *s, const int *what, int value)
{
    pthread_mutex_lock(&s->lock);
    while (*what != value)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void test_each_name_once_and_only_so_many_at_once(void **state)
{
    (void)state;
    static struct scene s = {.lock = PTHREAD_MUTEX_INITIALIZER,
                             .changed = PTHREAD_COND_INITIALIZER};
    struct pool *pool = NULL;
    assert_int_equal(pool_new("turns", THREADS, MOST, &pool, NULL), 0);
    struct name_queue *turns = name_queue_new(pool, MOST);
    struct dirty_turns *all = dirty_turns_new(turns, 1, MOST, stands_still, &s);
    assert_int_equal(dirty_turns_want(all, 1, "a", NULL), 0);
    await(&s, &s.running, 1);
    assert_int_equal(dirty_turns_want(all, 1, "a", NULL), 0); /* it runs */
    assert_int_equal(dirty_turns_want(all, 1, "b", NULL), 0);
    assert_int_equal(dirty_turns_want(all, 1, "b", NULL), 0); /* it waits */
    assert_int_equal(dirty_turns_want(all, 2, "b", NULL), 0);
    assert_int_equal(dirty_turns_want(all, 1, "c", NULL), 0);
    assert_int_equal(dirty_turns_want(all, 1, "d", NULL), E_OVERLOAD);
    pthread_mutex_lock(&s.lock);
    s.open = true;
    pthread_cond_broadcast(&s.changed);
    pthread_mutex_unlock(&s.lock);
    await(&s, &s.done, 4);
    assert_int_equal(s.most_running, 1);
    assert_string_equal(s.order, "abbc");
    pool_free(pool);
    dirty_turns_free(all);
    name_queue_free(turns);
}

static void test_what_has_ended_is_taken_again(void **state)
{
    (void)state;
    static struct scene s = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .open = true};
    struct pool *pool = NULL;
    assert_int_equal(pool_new("turns", 1, MOST, &pool, NULL), 0);
    struct name_queue *turns = name_queue_new(pool, MOST);
    struct dirty_turns *all = dirty_turns_new(turns, 1, 1, stands_still, &s);
    assert_int_equal(dirty_turns_want(all, 1, "a", NULL), 0);
    while (dirty_turns_want(all, 1, "b", NULL) != 0) /* "a" has not ended */
        sched_yield();
    pool_free(pool);
    dirty_turns_free(all);
    name_queue_free(turns);
    assert_string_equal(s.order, "ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_name_once_and_only_so_many_at_once),
        cmocka_unit_test(test_what_has_ended_is_taken_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
