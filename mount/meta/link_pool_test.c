/* Calls that wait: for a connection of a server that has lost commits, and while it refuses one. */
#include "mount/meta/link_pool.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAITERS = 3, PATIENCE_S = 60, AWAY_MS = 50 };

struct world {
    struct link_pool *pool;
    pthread_mutex_t lock;
    pthread_cond_t news;
    unsigned begun;  /* waiters */
    bool held, ends; /* the one connection is in use; it is given back */
};

static int open_link(void *context, bool first, void **link, unsigned *run, struct error *err)
{
    struct world *w = context;
    const struct link_pool_hello hello = {.kept = true, .run = "one"};
    (void)first;
    *link = w;
    return link_pool_met(w->pool, &hello, run, err);
}

static void close_link(void *link)
{
    (void)link;
}

static bool is_idle(const void *link)
{
    (void)link;
    return true;
}

static const struct link_pool_ops ops = {"test", AWAY_MS, open_link, close_link, is_idle};

static void await(struct world *w, const bool *what)
{
    pthread_mutex_lock(&w->lock);
    while (!*what)
        pthread_cond_wait(&w->news, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static void tell(struct world *w, bool *what)
{
    pthread_mutex_lock(&w->lock);
    *what = true;
    pthread_cond_broadcast(&w->news);
    pthread_mutex_unlock(&w->lock);
}

static int hold(void *call, void *link, unsigned run, bool *usable, struct error *err)
{
    struct world *w = call;
    (void)link;
    (void)run;
    (void)err;
    tell(w, &w->held);
    await(w, &w->ends);
    *usable = true;
    return 0;
}

static void *holder(void *context)
{
    struct world *w = context;
    struct error err = ERROR_INIT;
    return (void *)(intptr_t)link_pool_call(w->pool, hold, w, false, &err);
}

static void *waiter(void *context)
{
    struct world *w = context;
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&w->lock);
    w->begun++;
    pthread_cond_broadcast(&w->news);
    pthread_mutex_unlock(&w->lock);
    return (void *)(intptr_t)link_pool_call(w->pool, hold, w, false, &err);
}

static void test_all_that_wait_are_told(void **state)
{
    struct world w = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};
    pthread_t first, others[WAITERS];
    struct error err = ERROR_INIT;
    unsigned run;
    void *result;
    (void)state;
    alarm(PATIENCE_S); /* what hangs fails */
    w.pool = link_pool_new(&ops, &w, "commits are lost", 1);
    assert_int_equal(link_pool_open(w.pool, &err), 0);
    assert_int_equal(pthread_create(&first, NULL, holder, &w), 0);
    await(&w, &w.held);
    for (unsigned i = 0; i < WAITERS; i++)
        assert_int_equal(pthread_create(&others[i], NULL, waiter, &w), 0);
    pthread_mutex_lock(&w.lock);
    while (w.begun < WAITERS)
        pthread_cond_wait(&w.news, &w.lock);
    pthread_mutex_unlock(&w.lock);
    const struct link_pool_hello hello = {.kept = false, .run = "two"};
    assert_int_equal(link_pool_met(w.pool, &hello, &run, &err), E_CORRUPT);
    for (unsigned i = 0; i < WAITERS; i++) { /* the connection is still in use */
        pthread_join(others[i], &result);
        assert_int_equal((intptr_t)result, E_CORRUPT);
    }
    tell(&w, &w.ends);
    pthread_join(first, &result);
    assert_int_equal((intptr_t)result, 0);
    link_pool_free(w.pool);
    alarm(0);
}

static int reply(void *call, void *link, unsigned run, bool *usable, struct error *err)
{
    (void)call;
    (void)link;
    (void)run;
    (void)err;
    *usable = true;
    return 0;
}

/* The server answers another call between any two tries. */
static int refuse(void *call, void *link, unsigned run, bool *usable, struct error *err)
{
    struct world *w = call;
    (void)link;
    (void)run;
    *usable = false;
    assert_int_equal(link_pool_call(w->pool, reply, w, false, err), 0);
    return error_set(err, E_NOT_READY, "not enough replicas");
}

static void test_a_call_that_is_always_refused_fails(void **state)
{
    struct world w = {0};
    struct error err = ERROR_INIT;
    (void)state;
    alarm(PATIENCE_S);
    w.pool = link_pool_new(&ops, &w, "commits are lost", 2);
    assert_int_equal(link_pool_open(w.pool, &err), 0);
    assert_int_equal(link_pool_call(w.pool, refuse, &w, false, &err), E_NET);
    assert_non_null(strstr(err.message, "not enough replicas"));
    assert_int_equal(link_pool_call(w.pool, reply, &w, false, &err), 0);
    link_pool_free(w.pool);
    alarm(0);
}

/* A commit that the server has looked at. */
static int conflict(void *call, void *link, unsigned run, bool *usable, struct error *err)
{
    (void)reply(call, link, run, usable, err);
    return error_set(err, E_PRECONDITION, "another client was first");
}

static int refuse_commit(void *call, void *link, unsigned run, bool *usable, struct error *err)
{
    (void)link;
    (void)run;
    *usable = false;
    ++*(unsigned *)call;
    return error_set(err, E_NOT_READY, "not enough replicas");
}

/* The server has refused commits for the whole time: further ones do not wait it once more. */
static void test_reads_do_not_renew_the_wait_of_commits(void **state)
{
    struct world w = {0};
    unsigned tries = 0;
    struct error err = ERROR_INIT;
    (void)state;
    alarm(PATIENCE_S);
    w.pool = link_pool_new(&ops, &w, "commits are lost", 2);
    assert_int_equal(link_pool_open(w.pool, &err), 0);
    assert_int_equal(link_pool_call(w.pool, refuse_commit, &tries, false, &err), E_NET);
    assert_true(tries > 1);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(link_pool_call(w.pool, reply, &w, true, &err), 0);
        tries = 0;
        assert_int_equal(link_pool_call(w.pool, refuse_commit, &tries, false, &err), E_NET);
        assert_int_equal(tries, 1);
    }
    for (unsigned i = 0; i < 2; i++) {
        const int rc = link_pool_call(w.pool, i == 0 ? reply : conflict, &w, false, &err);
        assert_int_equal(rc, i == 0 ? 0 : E_PRECONDITION);
        tries = 0;
        assert_int_equal(link_pool_call(w.pool, refuse_commit, &tries, false, &err), E_NET);
        assert_true(tries > 1);
    }
    link_pool_free(w.pool);
    alarm(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_wait_are_told),
        cmocka_unit_test(test_a_call_that_is_always_refused_fails),
        cmocka_unit_test(test_reads_do_not_renew_the_wait_of_commits),
    };
    return cmocka_run_group_tests_name("mount_link_pool", tests, NULL, NULL);
}
