#include "io/pool.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include <cmocka.h>

static atomic_uint jobs_run;

static void count_job(void *arg)
{
    (void)arg;
    jobs_run++;
}

struct gate {
    sem_t entered;
    sem_t open;
};

static void wait_at_gate(void *arg)
{
    struct gate *g = arg;
    sem_post(&g->entered);
    sem_wait(&g->open);
}

static void test_full_queue_is_refused_at_once(void **state)
{
    (void)state;
    struct gate gate;
    sem_init(&gate.entered, 0, 0);
    sem_init(&gate.open, 0, 0);
    struct pool *p;
    assert_int_equal(pool_new("worker", 2, 3, &p, NULL), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pool_submit(p, wait_at_gate, &gate, NULL), 0);
        sem_wait(&gate.entered);
    }
    jobs_run = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pool_submit(p, count_job, NULL, NULL), 0);
    struct error err = ERROR_INIT;
    assert_int_equal(pool_submit(p, count_job, NULL, &err), E_OVERLOAD);
    assert_string_equal(err.message, "the work queue is full (3)");
    sem_post(&gate.open);
    sem_post(&gate.open);
    pool_free(p);
    assert_int_equal(jobs_run, 3);
    sem_destroy(&gate.entered);
    sem_destroy(&gate.open);
}

struct follower {
    struct pool *pool;
    int left;
};

static void submit_next(void *arg)
{
    struct follower *f = arg;
    jobs_run++;
    if (--f->left > 0)
        assert_int_equal(pool_submit(f->pool, submit_next, f, NULL), 0);
}

static void test_free_runs_what_jobs_submit(void **state)
{
    (void)state;
    struct follower f = {.left = 500};
    jobs_run = 0;
    assert_int_equal(pool_new("worker", 3, 2, &f.pool, NULL), 0);
    assert_int_equal(pool_submit(f.pool, submit_next, &f, NULL), 0);
    pool_free(f.pool);
    assert_int_equal(jobs_run, 500);
}

struct table {
    atomic_uint calls[1000];
    atomic_uint running;
    atomic_uint most;
    size_t bad;
};

static int visit(void *ctx, size_t i, struct error *err)
{
    struct table *t = ctx;
    unsigned now = ++t->running;
    for (unsigned most = t->most;
         now > most && !atomic_compare_exchange_weak(&t->most, &most, now);)
        ;
    t->calls[i]++;
    t->running--;
    if (i == t->bad)
        return error_set(err, E_IO, "call %zu", i);
    return 0;
}

static void test_parallel_for_visits_each_once(void **state)
{
    (void)state;
    static struct table t;
    t.bad = SIZE_MAX;
    assert_int_equal(parallel_for("par", 4, 1000, visit, &t, NULL), 0);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(t.calls[i], 1);
    assert_true(t.most <= 4);
    assert_int_equal(parallel_for("par", 4, 0, visit, &t, NULL), 0);
}

static void test_parallel_for_stops_at_a_failure(void **state)
{
    (void)state;
    static struct table t;
    t.bad = 10;
    struct error err = ERROR_INIT;
    assert_int_equal(parallel_for("par", 1, 1000, visit, &t, &err), E_IO);
    assert_string_equal(err.message, "call 10");
    assert_int_equal(t.calls[10], 1);
    assert_int_equal(t.calls[11], 0);
    err = ERROR_INIT;
    assert_int_equal(parallel_for("par", 8, 1000, visit, &t, &err), E_IO);
    assert_string_equal(err.message, "call 10");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_queue_is_refused_at_once),
        cmocka_unit_test(test_free_runs_what_jobs_submit),
        cmocka_unit_test(test_parallel_for_visits_each_once),
        cmocka_unit_test(test_parallel_for_stops_at_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
