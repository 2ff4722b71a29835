#include "target/store/name_queue.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <cmocka.h>

#include "io/pool.h"

enum { THREADS = 4, NAMES = 5, JOBS = 400, MOST = 1000 };

struct tally {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int running[NAMES];
    int last[NAMES]; /* the number of the job that ran last */
    int done;
    bool overlapped, disordered;
};

struct job {
    struct tally *tally;
    int name, number;
};

static void run(void *arg)
{
    struct job *job = arg;
    struct tally *t = job->tally;
    pthread_mutex_lock(&t->lock);
    t->overlapped = t->overlapped || t->running[job->name]++ > 0;
    t->disordered = t->disordered || t->last[job->name] > job->number;
    t->last[job->name] = job->number;
    pthread_mutex_unlock(&t->lock);
    sched_yield();
    pthread_mutex_lock(&t->lock);
    t->running[job->name]--;
    t->done++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void await(struct tally *t, int done)
{
    pthread_mutex_lock(&t->lock);
    while (t->done < done)
        pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

static void test_one_name_one_after_the_other_in_order(void **state)
{
    (void)state;
    static const char *const names[NAMES] = {"a", "b", "c", "a/b", ""};
    static struct tally tally = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                 .changed = PTHREAD_COND_INITIALIZER};
    static struct job jobs[JOBS];
    struct pool *pool = NULL;
    assert_int_equal(pool_new("turns", THREADS, JOBS, &pool, NULL), 0);
    struct name_queue *turns = name_queue_new(pool, MOST);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.tally = &tally, .name = i % NAMES, .number = i};
        assert_int_equal(name_queue_enter(turns, 1, names[i % NAMES], run, &jobs[i], NULL), 0);
    }
    await(&tally, JOBS);
    pool_free(pool);
    name_queue_free(turns);
    assert_false(tally.overlapped);
    assert_false(tally.disordered);
}

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
};

static void wait_at_gate(void *arg)
{
    struct gate *g = arg;
    pthread_mutex_lock(&g->lock);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

/* One at work, others waiting: beyond the limit there is a refusal, and another name is not kept.
 */
static void test_a_limit_to_those_who_wait(void **state)
{
    (void)state;
    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct pool *pool = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(pool_new("turns", 1, JOBS, &pool, NULL), 0);
    struct name_queue *turns = name_queue_new(pool, 3);
    int entered = 0;
    while (entered < JOBS && name_queue_enter(turns, 1, "a", wait_at_gate, &gate, &err) == 0)
        entered++;
    assert_int_equal(err.code, E_OVERLOAD);
    assert_true(name_queue_busy(turns, 1, "a"));
    assert_false(name_queue_busy(turns, 2, "a"));
    assert_false(name_queue_busy(turns, 1, "b"));
    assert_in_range(entered, 3, 4); /* the first may have been taken by the thread, or not yet */
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    pool_free(pool);
    assert_false(name_queue_busy(turns, 1, "a"));
    name_queue_free(turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_name_one_after_the_other_in_order),
        cmocka_unit_test(test_a_limit_to_those_who_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
