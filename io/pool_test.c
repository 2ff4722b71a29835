#include "io/pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "common/fault.h"

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

/* Waits for what other threads do; the time limit of the test runner ends a wait in vain. */
static void await_threads(struct pool *p, unsigned wanted)
{
    while (pool_threads(p) != wanted)
        sched_yield();
}

static void gate_init(struct gate *g)
{
    sem_init(&g->entered, 0, 0);
    sem_init(&g->open, 0, 0);
}

static void gate_done(struct gate *g)
{
    sem_destroy(&g->entered);
    sem_destroy(&g->open);
}

static void test_thread_is_wanted_when_no_free_one_is_left(void **state)
{
    (void)state;
    const struct {
        struct pool_load load;
        bool wanted;
    } rows[] = {
        {{.limit = 2, .threads = 0, .busy = 0, .queued = 1}, true},
        {{.limit = 2, .threads = 1, .busy = 0, .queued = 1}, false},
        {{.limit = 2, .threads = 1, .busy = 0, .queued = 2}, true},
        {{.limit = 2, .threads = 1, .busy = 1, .queued = 1}, true},
        {{.limit = 2, .threads = 2, .busy = 2, .queued = 1}, false},
        {{.limit = 2, .threads = 2, .busy = 1, .queued = 9}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(pool_wants_thread(&rows[i].load), rows[i].wanted);
}

static void test_thread_ends_after_its_idle_time(void **state)
{
    (void)state;
    assert_false(pool_thread_ends(1000, 1000, POOL_IDLE_MS));
    assert_false(pool_thread_ends(1000, 1000 + POOL_IDLE_MS - 1, POOL_IDLE_MS));
    assert_true(pool_thread_ends(1000, 1000 + POOL_IDLE_MS, POOL_IDLE_MS));
    assert_false(pool_thread_ends(1000, 999, POOL_IDLE_MS));
}

static void test_threads_come_on_demand_and_leave(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate);
    struct pool *p;
    assert_int_equal(pool_new("worker", 3, 8, &p, NULL), 0);
    pool_set_idle(p, 1);
    assert_int_equal(pool_threads(p), 0);
    for (int turn = 0; turn < 20; turn++) { /* what has left comes again */
        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(pool_submit(p, wait_at_gate, &gate, NULL), 0);
        for (unsigned i = 0; i < 3; i++)
            sem_wait(&gate.entered);
        assert_int_equal(pool_threads(p), 3);
        for (unsigned i = 0; i < 5; i++)
            sem_post(&gate.open);
        await_threads(p, 0);
        for (unsigned i = 0; i < 2; i++)
            sem_wait(&gate.entered);
    }
    pool_free(p);
    gate_done(&gate);
}

/* A thread that ends and a job that comes at that instant: the job runs. */
static void test_no_job_is_lost_while_threads_leave(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate);
    struct pool *p;
    assert_int_equal(pool_new("worker", 2, 2, &p, NULL), 0);
    pool_set_idle(p, 0);
    for (int i = 0; i < 2000; i++) {
        sem_post(&gate.open);
        assert_int_equal(pool_submit(p, wait_at_gate, &gate, NULL), 0);
        sem_wait(&gate.entered);
        pool_set_idle(p, (uint64_t)i % 2);
    }
    pool_free(p);
    gate_done(&gate);
}

static void test_free_while_threads_start(void **state)
{
    (void)state;
    for (int turn = 0; turn < 200; turn++) {
        struct pool *p;
        jobs_run = 0;
        assert_int_equal(pool_new("worker", 4, 8, &p, NULL), 0);
        for (int i = 0; i < 8; i++)
            assert_int_equal(pool_submit(p, count_job, NULL, NULL), 0);
        pool_free(p);
        assert_int_equal(jobs_run, 8);
    }
}

static void test_work_goes_on_with_the_threads_there_are(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate);
    struct pool *p;
    jobs_run = 0;
    assert_int_equal(pool_new("worker", 4, 8, &p, NULL), 0);
    assert_int_equal(pool_submit(p, wait_at_gate, &gate, NULL), 0);
    sem_wait(&gate.entered);
    assert_int_equal(fault_configure("thread.start=EAGAIN", NULL), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(pool_submit(p, count_job, NULL, NULL), 0);
    assert_int_equal(pool_threads(p), 1);
    sem_post(&gate.open);
    pool_free(p);
    assert_int_equal(jobs_run, 5);
    fault_configure("", NULL);
    gate_done(&gate);
}

static void test_job_without_any_thread_is_refused(void **state)
{
    (void)state;
    struct pool *p;
    jobs_run = 0;
    assert_int_equal(pool_new("worker", 4, 8, &p, NULL), 0);
    assert_int_equal(fault_configure("thread.start=EAGAIN", NULL), 0);
    struct error err = ERROR_INIT;
    assert_int_equal(pool_submit(p, count_job, NULL, &err), E_OVERLOAD);
    assert_non_null(strstr(err.message, "start thread"));
    assert_non_null(strstr(err.message, "'worker'"));
    assert_int_equal(pool_submit(p, count_job, NULL, NULL), E_OVERLOAD);
    fault_configure("", NULL);
    assert_int_equal(pool_submit(p, count_job, NULL, NULL), 0);
    pool_free(p);
    assert_int_equal(jobs_run, 1);
}

static void enter(void *arg)
{
    struct gate *g = arg;
    sem_post(&g->entered);
}

static void test_kept_thread_stays(void **state)
{
    (void)state;
    struct gate gate;
    gate_init(&gate);
    struct pool *p;
    assert_int_equal(pool_new("worker", 4, 8, &p, NULL), 0);
    pool_set_idle(p, 0);
    assert_int_equal(pool_keep(p, 1, NULL), 0);
    assert_int_equal(fault_configure("thread.start=EAGAIN", NULL), 0);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(pool_submit(p, enter, &gate, NULL), 0);
        sem_wait(&gate.entered);
    }
    assert_int_equal(pool_threads(p), 1);
    fault_configure("", NULL);
    pool_free(p);
    gate_done(&gate);
}

static void look_how_nice(void *arg)
{
    errno = 0;
    *(int *)arg = getpriority(PRIO_PROCESS, 0);
    assert_int_equal(errno, 0);
}

static void test_threads_are_nicer_where_the_pool_is(void **state)
{
    (void)state;
    struct pool *pools[2];
    int nice[2] = {-1, -1};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pool_new("nice", 1, 1, &pools[i], NULL), 0);
        pool_set_nicer(pools[i], 10 * i);
        assert_int_equal(pool_submit(pools[i], look_how_nice, &nice[i], NULL), 0);
        pool_free(pools[i]);
    }
    int own = getpriority(PRIO_PROCESS, 0);
    assert_int_equal(nice[0], own);
    assert_int_equal(nice[1], own > 9 ? 19 : own + 10);
    assert_int_equal(own, getpriority(PRIO_PROCESS, 0));
}

static void test_thread_that_cannot_be_kept_is_an_error(void **state)
{
    (void)state;
    struct pool *p;
    assert_int_equal(pool_new("worker", 4, 8, &p, NULL), 0);
    assert_int_equal(fault_configure("thread.start=EAGAIN", NULL), 0);
    struct error err = ERROR_INIT;
    assert_int_equal(pool_keep(p, 1, &err), E_OVERLOAD);
    assert_non_null(strstr(err.message, "'worker'"));
    fault_configure("", NULL);
    pool_free(p);
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
        cmocka_unit_test(test_thread_is_wanted_when_no_free_one_is_left),
        cmocka_unit_test(test_thread_ends_after_its_idle_time),
        cmocka_unit_test(test_threads_come_on_demand_and_leave),
        cmocka_unit_test(test_no_job_is_lost_while_threads_leave),
        cmocka_unit_test(test_free_while_threads_start),
        cmocka_unit_test(test_work_goes_on_with_the_threads_there_are),
        cmocka_unit_test(test_job_without_any_thread_is_refused),
        cmocka_unit_test(test_kept_thread_stays),
        cmocka_unit_test(test_threads_are_nicer_where_the_pool_is),
        cmocka_unit_test(test_thread_that_cannot_be_kept_is_an_error),
        cmocka_unit_test(test_parallel_for_visits_each_once),
        cmocka_unit_test(test_parallel_for_stops_at_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
