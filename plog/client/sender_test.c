#include "plog/client/sender.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct world {
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool is_open;   /* else a put waits */
    unsigned fails; /* so many puts */
    atomic_uint at_once, most_at_once, done;
} world;

static int put(void *ctx, const char *name, const void *body, size_t len, const char *if_match,
               char etag[static PLOG_ETAG_MAX], struct error *err)
{
    struct world *w = ctx;
    assert_true(if_match == NULL && len == 4 && memcmp(body, name, 4) == 0);
    pthread_mutex_lock(&w->lock);
    const unsigned at_once = ++w->at_once;
    w->most_at_once = at_once > w->most_at_once ? at_once : w->most_at_once;
    pthread_cond_broadcast(&w->news);
    while (!w->is_open)
        pthread_cond_wait(&w->news, &w->lock);
    w->at_once--;
    const bool fails = w->fails > 0;
    w->fails -= fails;
    w->done += !fails;
    pthread_mutex_unlock(&w->lock);
    etag[0] = '\0';
    return fails ? error_set(err, E_IO, "the store failed") : 0;
}

static int set_up(void **state)
{
    const struct plog_store st = {.ctx = &world, .put = put};
    world = (struct world){.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};
    *state = sender_new(&st, 2);
    return 0;
}

static int tear_down(void **state)
{
    sender_free(*state);
    return 0;
}

static int send_one(struct sender *s, const char *name, struct buf *body)
{
    buf_puts(body, name);
    return sender_send(s, name, body, NULL);
}

static void let(unsigned at_once)
{
    pthread_mutex_lock(&world.lock);
    while (world.at_once < at_once)
        pthread_cond_wait(&world.news, &world.lock);
    world.is_open = true;
    pthread_cond_broadcast(&world.news);
    pthread_mutex_unlock(&world.lock);
}

static void test_two_at_once(void **state)
{
    struct sender *s = *state;
    struct buf body = BUF_INIT;
    assert_int_equal(send_one(s, "aaaa", &body), 0);
    assert_int_equal(body.len, 0);
    assert_int_equal(send_one(s, "bbbb", &body), 0);
    assert_int_equal(sender_bytes(s), 8);
    let(2);
    for (int i = 0; i < 10; i++)
        assert_int_equal(send_one(s, "cccc", &body), 0);
    assert_int_equal(sender_flush(s, NULL), 0);
    assert_int_equal(sender_bytes(s), 0);
    assert_int_equal(world.done, 12);
    assert_int_equal(world.most_at_once, 2);
}

/* Each try of an object is made once more; what failed then is there for the next call. */
static void test_failures_lose_nothing(void **state)
{
    struct sender *s = *state;
    struct error err = ERROR_INIT;
    struct buf body = BUF_INIT;
    world.fails = 4;
    assert_int_equal(send_one(s, "aaaa", &body), 0);
    assert_int_equal(send_one(s, "bbbb", &body), 0);
    let(2);
    assert_int_equal(sender_flush(s, &err), E_IO);
    assert_non_null(strstr(err.message, "aaaa"));
    world.fails = 1;
    buf_puts(&body, "cccc");
    assert_int_equal(sender_send(s, "cccc", &body, NULL), E_IO);
    assert_int_equal(body.len, 4);
    assert_int_equal(sender_send(s, "cccc", &body, NULL), 0);
    assert_int_equal(sender_flush(s, NULL), 0);
    assert_int_equal(world.done, 3);
}

/* Without a flush: the memory is there for others as soon as the object is stored. */
static void test_what_is_stored_is_freed(void **state)
{
    struct sender *s = *state;
    struct buf body = BUF_INIT;
    assert_int_equal(send_one(s, "aaaa", &body), 0);
    assert_int_equal(sender_bytes(s), 4);
    let(1);
    while (sender_bytes(s) > 0)
        sched_yield();
    assert_int_equal(sender_flush(s, NULL), 0);
    assert_int_equal(world.done, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_two_at_once), TEST(test_failures_lose_nothing),
                                       TEST(test_what_is_stored_is_freed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
