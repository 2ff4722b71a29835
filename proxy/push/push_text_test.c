#include "proxy/push/push_text.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/documents/push_body.h"
#include "cluster/testing/random_command.h"
#include "common/cleanup.h"

/* The worker is held until a test lets it go, so that what waits is known. */
static struct loop *loop;
static struct pool *pool;
static struct push_texts *texts;
static const struct cluster_state *older, *newer;
static sem_t hold, told;

struct outcome {
    const struct cluster_state *from, *to;
    struct push_text *text;
    int code;
};

static void occupy(void *arg)
{
    (void)arg;
    sem_post(&told);
    sem_wait(&hold);
}

static void open_texts(void *arg)
{
    (void)arg;
    texts = push_texts_new(loop, pool);
}

static int setup(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 1);
    older = random_state(&rng, 30);
    newer = state_next(older);
    sem_init(&hold, 0, 0);
    sem_init(&told, 0, 0);
    assert_int_equal(loop_new("test", &loop, NULL), 0);
    assert_int_equal(pool_new("texts", 1, 2, &pool, NULL), 0);
    assert_int_equal(pool_submit(pool, occupy, NULL, NULL), 0);
    sem_wait(&told); /* it has left the queue */
    loop_call(loop, open_texts, NULL);
    return 0;
}

static void close_texts(void *arg)
{
    (void)arg;
    push_texts_close(texts);
}

static void free_texts(void *arg)
{
    (void)arg;
    push_texts_free(texts);
}

static int teardown(void **state)
{
    (void)state;
    loop_call(loop, close_texts, NULL);
    loop_call(loop, free_texts, NULL);
    sem_post(&hold);
    pool_free(pool);
    loop_free(loop);
    state_unref(older);
    state_unref(newer);
    sem_destroy(&hold);
    sem_destroy(&told);
    return 0;
}

static void note(void *arg, struct push_text *text, const struct error *err)
{
    struct outcome *o = arg;
    o->text = text;
    o->code = err != NULL ? err->code : 0;
    sem_post(&told);
}

static void ask_here(void *arg)
{
    struct outcome *o = arg;
    push_texts_ask(texts, o->from, o->to, note, o);
}

static void ask(struct outcome *o)
{
    loop_call(loop, ask_here, o);
}

static void drop_here(void *arg)
{
    push_text_drop(arg);
}

static void assert_text(const struct outcome *o)
{
    _cleanup_free_ char *wanted = push_body_text(o->from, o->to);
    assert_int_equal(o->code, 0);
    assert_int_equal(push_text_len(o->text), strlen(wanted));
    assert_string_equal(push_text_data(o->text), wanted);
}

static void a_text_is_made_once_for_all(void **state)
{
    (void)state;
    struct outcome o[4] = {{NULL, newer, NULL, 0}, {older, newer, NULL, 0}, {NULL, newer, NULL, 0}};
    o[3] = o[1];
    for (size_t i = 0; i < 3; i++)
        ask(&o[i]);
    sem_post(&hold);
    for (size_t i = 0; i < 3; i++)
        sem_wait(&told);
    ask(&o[3]); /* one that is made comes at once */
    assert_int_equal(sem_trywait(&told), 0);
    assert_ptr_equal(o[0].text, o[2].text);
    assert_ptr_equal(o[1].text, o[3].text);
    for (size_t i = 0; i < 4; i++)
        assert_text(&o[i]);
    for (size_t i = 0; i < 4; i++)
        loop_call(loop, drop_here, o[i].text);
}

/* A call may send a text longer than its state is the newest. */
static void a_text_stays_while_it_is_sent(void **state)
{
    (void)state;
    struct outcome first = {.to = older};
    struct outcome second = {.to = newer};
    ask(&first);
    ask(&second);
    sem_post(&hold);
    sem_wait(&told);
    sem_wait(&told);
    assert_text(&first);
    assert_text(&second);
    loop_call(loop, drop_here, first.text);
    loop_call(loop, drop_here, second.text);
}

static void a_full_queue_is_told(void **state)
{
    (void)state;
    struct outcome o[4] = {{.to = older}, {.to = newer}, {.from = older, .to = newer}};
    for (size_t i = 0; i < 3; i++)
        ask(&o[i]);
    assert_int_equal(sem_trywait(&told), 0);
    assert_int_equal(o[2].code, E_OVERLOAD);
    sem_post(&hold);
    sem_wait(&told);
    sem_wait(&told);
    loop_call(loop, drop_here, o[0].text);
    loop_call(loop, drop_here, o[1].text);
}

static void closed_nobody_waits(void **state)
{
    (void)state;
    struct outcome o[2] = {{.to = older}, {.to = newer}};
    ask(&o[0]);
    ask(&o[1]);
    loop_call(loop, close_texts, NULL);
    assert_int_equal(o[0].code, E_CANCELLED);
    assert_int_equal(o[1].code, E_CANCELLED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_text_is_made_once_for_all, setup, teardown),
        cmocka_unit_test_setup_teardown(a_text_stays_while_it_is_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_queue_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(closed_nobody_waits, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
