/* One name's tasks go one after the other and in order, whatever others do; a pool that is full
 * refuses, and leaves nothing. */
#include "target/lanes.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "io/pool.h"

enum { NAMES = 5, TASKS = 200, THREADS = 4 };

struct row {
    int running, most, next; /* of one name; only its own tasks touch it */
    bool in_order;
};

struct job {
    struct row *row;
    int number;
};

static void count(void *arg)
{
    const struct job *job = arg;
    struct row *row = job->row;
    row->running++;
    if (row->running > row->most)
        row->most = row->running;
    row->in_order = row->in_order && row->next == job->number;
    row->next++;
    row->running--;
}

/* Without a lock in count(): under the thread sanitizer two at once would be a race. */
static void names_keep_their_order(void **unused)
{
    (void)unused;
    struct pool *pool;
    struct row rows[NAMES];
    static struct job jobs[NAMES][TASKS];
    assert_int_equal(pool_new("lane", THREADS, 100000, &pool, NULL), 0);
    struct lanes *l = lanes_new(pool);
    for (int i = 0; i < NAMES; i++)
        rows[i] = (struct row){.in_order = true};
    for (int t = 0; t < TASKS; t++) {
        for (int i = 0; i < NAMES; i++) {
            char name[16];
            snprintf(name, sizeof name, "n%d", i);
            jobs[i][t] = (struct job){.row = &rows[i], .number = t};
            assert_int_equal(lanes_submit(l, 7, name, count, &jobs[i][t], NULL), 0);
        }
    }
    pool_free(pool);
    for (int i = 0; i < NAMES; i++) {
        assert_true(rows[i].in_order);
        assert_int_equal(rows[i].most, 1);
        assert_int_equal(rows[i].next, TASKS);
    }
    assert_false(lanes_busy(l, 7, "n0"));
    lanes_free(l);
}

struct gate {
    sem_t entered, open;
};

static void wait_at(void *arg)
{
    struct gate *g = arg;
    sem_post(&g->entered);
    sem_wait(&g->open);
}

static void refused_is_not_there(void **unused)
{
    (void)unused;
    struct pool *pool;
    struct gate g;
    struct error err = ERROR_INIT;
    sem_init(&g.entered, 0, 0);
    sem_init(&g.open, 0, 0);
    assert_int_equal(pool_new("lane", 1, 1, &pool, NULL), 0);
    struct lanes *l = lanes_new(pool);
    assert_int_equal(lanes_submit(l, 1, "a", wait_at, &g, NULL), 0);
    sem_wait(&g.entered);
    assert_true(lanes_busy(l, 1, "a"));
    assert_false(lanes_busy(l, 2, "a"));
    assert_int_equal(lanes_submit(l, 1, "b", wait_at, &g, NULL), 0); /* queued */
    assert_int_equal(lanes_submit(l, 1, "c", wait_at, &g, &err), E_OVERLOAD);
    assert_false(lanes_busy(l, 1, "c"));
    assert_int_equal(lanes_submit(l, 1, "a", wait_at, &g, NULL),
                     0); /* in its lane, not the pool's queue */
    for (int i = 0; i < 3; i++)
        sem_post(&g.open);
    pool_free(pool);
    assert_false(lanes_busy(l, 1, "a"));
    lanes_free(l);
    sem_destroy(&g.entered);
    sem_destroy(&g.open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_keep_their_order),
        cmocka_unit_test(refused_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
