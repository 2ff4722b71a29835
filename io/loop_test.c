#include "io/loop.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/clock.h"
#include "io/thread.h"

enum { POSTERS = 4, POSTS = 20000 };

struct order {
    struct loop *loop;
    int next[POSTERS];
};

struct message {
    struct order *order;
    int poster;
    int number;
};

static void check_order(void *arg)
{
    struct message *m = arg;
    assert_true(loop_here(m->order->loop));
    assert_int_equal(m->number, m->order->next[m->poster]++);
    free(m);
}

struct poster {
    struct order *order;
    int index;
};

static void *post_many(void *arg)
{
    struct poster *p = arg;
    for (int i = 0; i < POSTS; i++) {
        struct message *m = malloc(sizeof *m);
        *m = (struct message){.order = p->order, .poster = p->index, .number = i};
        loop_post(p->order->loop, check_order, m);
    }
    return NULL;
}

static void test_posts_run_in_order_and_before_the_end(void **state)
{
    (void)state;
    struct order order = {0};
    assert_int_equal(loop_new("loop", &order.loop, NULL), 0);
    assert_false(loop_here(order.loop));
    struct poster posters[POSTERS];
    pthread_t threads[POSTERS];
    for (int i = 0; i < POSTERS; i++) {
        posters[i] = (struct poster){.order = &order, .index = i};
        assert_int_equal(thread_start("poster", post_many, &posters[i], &threads[i], NULL), 0);
    }
    for (int i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    loop_free(order.loop);
    for (int i = 0; i < POSTERS; i++)
        assert_int_equal(order.next[i], POSTS);
}

struct chain {
    struct loop *loop;
    int left;
};

static void post_again(void *arg)
{
    struct chain *c = arg;
    if (--c->left > 0)
        loop_post(c->loop, post_again, c);
}

static void test_messages_of_messages_run_before_the_end(void **state)
{
    (void)state;
    struct chain chain = {.left = 1000};
    assert_int_equal(loop_new("loop", &chain.loop, NULL), 0);
    loop_post(chain.loop, post_again, &chain);
    loop_free(chain.loop);
    assert_int_equal(chain.left, 0);
}

static void set_flag(void *arg)
{
    *(int *)arg = 1;
}

static void test_call_waits(void **state)
{
    (void)state;
    struct loop *l;
    assert_int_equal(loop_new("loop", &l, NULL), 0);
    for (int i = 0; i < 1000; i++) {
        int flag = 0;
        loop_call(l, set_flag, &flag);
        assert_int_equal(flag, 1);
    }
    loop_free(l);
}

struct ticker {
    struct loop *loop;
    struct loop_timer *once;
    struct loop_timer *repeat;
    struct loop_timer *never;
    int once_fired;
    int repeat_fired;
    uint64_t begun_ms;
    uint64_t fired_ms;
    sem_t ended;
};

static void on_once(void *arg)
{
    struct ticker *t = arg;
    t->once_fired++;
    t->fired_ms = clock_ms();
    loop_timer_free(t->once);
}

static void on_repeat(void *arg)
{
    struct ticker *t = arg;
    if (++t->repeat_fired < 5 || t->once_fired == 0)
        return;
    loop_timer_free(t->repeat); /* from its own callback */
    loop_timer_free(t->never);
    sem_post(&t->ended);
}

static void on_never(void *arg)
{
    (void)arg;
    fail_msg("a stopped timer fired");
}

static void start_timers(void *arg)
{
    struct ticker *t = arg;
    t->begun_ms = clock_ms();
    t->once = loop_timer_new(t->loop, on_once, t);
    loop_timer_start(t->once, 20, 0);
    t->repeat = loop_timer_new(t->loop, on_repeat, t);
    loop_timer_start(t->repeat, 1, 1);
    t->never = loop_timer_new(t->loop, on_never, t);
    loop_timer_start(t->never, 1, 0);
    loop_timer_stop(t->never);
}

static void test_timers(void **state)
{
    (void)state;
    struct ticker t = {0};
    sem_init(&t.ended, 0, 0);
    assert_int_equal(loop_new("loop", &t.loop, NULL), 0);
    loop_post(t.loop, start_timers, &t);
    sem_wait(&t.ended);
    loop_free(t.loop);
    assert_int_equal(t.once_fired, 1);
    assert_true(t.repeat_fired >= 5);
    assert_true(t.fired_ms - t.begun_ms >= 19); /* libuv counts whole milliseconds */
    sem_destroy(&t.ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_posts_run_in_order_and_before_the_end),
        cmocka_unit_test(test_messages_of_messages_run_before_the_end),
        cmocka_unit_test(test_call_waits),
        cmocka_unit_test(test_timers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
