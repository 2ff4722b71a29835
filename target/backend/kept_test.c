/* Who asks, who waits and who goes on with the old one; with threads, and a clock of its own. */
#include "target/backend/kept.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/log.h"
#include "target/backend/exchange.h"

enum { MINUTE = 60 * 1000, HOUR = 60 * MINUTE, THREADS = 8 };

struct value {
    char text[32];
};

/* The service, and what is said to it. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t now_ms, life_ms;
    unsigned number, asked, begun, waits;
    unsigned failures; /* of the next questions */
    bool again, holds, stops;
} w = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int64_t wall_ms(void)
{
    pthread_mutex_lock(&w.lock);
    int64_t now_ms = w.now_ms;
    pthread_mutex_unlock(&w.lock);
    return now_ms;
}

static int ask(const struct exchange_env *env, void *value, int64_t *end_ms, bool *again,
               struct error *err)
{
    struct value *out = value;
    (void)env;
    pthread_mutex_lock(&w.lock);
    unsigned number = ++w.number;
    w.asked++;
    pthread_cond_broadcast(&w.changed);
    while (w.holds)
        pthread_cond_wait(&w.changed, &w.lock);
    bool fails = w.failures > 0;
    w.failures -= fails;
    *again = w.again;
    *end_ms = w.now_ms + w.life_ms;
    pthread_mutex_unlock(&w.lock);
    for (size_t i = 0; i < sizeof out->text; i++)
        assert_int_equal(out->text[i], '\0');
    if (fails)
        return error_set(err, E_BACKEND_DENIED, "question %u", number);
    snprintf(out->text, sizeof out->text, "value %u", number);
    return 0;
}

static const struct kept_ops ops = {
    .what = "the test's", .size = sizeof(struct value), .ask = ask, .wall_ms = wall_ms};

static bool wait_between(void *ctx, uint64_t ms)
{
    (void)ctx, (void)ms;
    pthread_mutex_lock(&w.lock);
    w.waits++;
    bool stops = w.stops;
    pthread_mutex_unlock(&w.lock);
    return !stops;
}

static const struct exchange_env env = {
    .rules = {.retries = 2, .backoff_ms = 1, .backoff_max_ms = 1}, .wait = wait_between};

static int begin(void **state)
{
    pthread_mutex_lock(&w.lock);
    w.now_ms = 1000;
    w.life_ms = HOUR;
    w.number = w.asked = w.begun = w.waits = w.failures = 0;
    w.again = w.holds = w.stops = false;
    pthread_mutex_unlock(&w.lock);
    *state = kept_new(&ops);
    return 0;
}

static int end(void **state)
{
    kept_free(*state);
    return 0;
}

static void say(bool holds, unsigned failures, bool again)
{
    pthread_mutex_lock(&w.lock);
    w.holds = holds;
    w.failures = failures;
    w.again = again;
    pthread_cond_broadcast(&w.changed);
    pthread_mutex_unlock(&w.lock);
}

static void pass(int64_t ms)
{
    pthread_mutex_lock(&w.lock);
    w.now_ms += ms;
    pthread_mutex_unlock(&w.lock);
}

static unsigned asked(void)
{
    pthread_mutex_lock(&w.lock);
    unsigned n = w.asked;
    pthread_mutex_unlock(&w.lock);
    return n;
}

static void assert_gets(struct kept *k, const char *wanted)
{
    struct value v;
    struct error err = ERROR_INIT;
    assert_int_equal(kept_get(k, &env, &v, &err), 0);
    assert_string_equal(v.text, wanted);
}

/* --- others ----------------------------------------------------------------------------------- */

struct other {
    pthread_t thread;
    struct kept *kept;
    struct value value;
    struct error err;
    int code;
};

static void *get_it(void *arg)
{
    struct other *o = arg;
    pthread_mutex_lock(&w.lock);
    w.begun++;
    pthread_cond_broadcast(&w.changed);
    pthread_mutex_unlock(&w.lock);
    o->code = kept_get(o->kept, &env, &o->value, &o->err);
    return NULL;
}

static void others_begin(struct other *others, size_t n, struct kept *k)
{
    for (size_t i = 0; i < n; i++) {
        others[i] = (struct other){.kept = k};
        assert_int_equal(pthread_create(&others[i].thread, NULL, get_it, &others[i]), 0);
    }
    pthread_mutex_lock(&w.lock);
    while (w.begun < n || w.asked == 0)
        pthread_cond_wait(&w.changed, &w.lock);
    pthread_mutex_unlock(&w.lock);
}

static void others_end(struct other *others, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pthread_join(others[i].thread, NULL);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void one_asks_for_all(void **state)
{
    struct other others[THREADS];
    say(true, 0, false);
    others_begin(others, THREADS, *state);
    say(false, 0, false);
    others_end(others, THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(others[i].code, 0);
        assert_string_equal(others[i].value.text, "value 1");
    }
    assert_gets(*state, "value 1");
    assert_int_equal(asked(), 1);
}

/* Of those who wait, and of those who come afterwards and ask themselves. */
static void an_error_is_of_all(void **state)
{
    struct other others[THREADS];
    say(true, THREADS, false);
    others_begin(others, THREADS, *state);
    say(false, THREADS, false);
    others_end(others, THREADS);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(others[i].code, E_BACKEND_DENIED);
        assert_int_equal(others[i].err.code, E_BACKEND_DENIED);
        assert_memory_equal(others[i].err.message, "question ", 9);
    }
    say(false, 0, false);
    struct value v;
    assert_int_equal(kept_get(*state, &env, &v, NULL), 0);
}

/* Who comes while it is renewed does not wait: here it would wait for ever. */
static void the_old_one_is_used_meanwhile(void **state)
{
    struct other asker;
    assert_gets(*state, "value 1");
    pass(HOUR - MINUTE);
    pthread_mutex_lock(&w.lock);
    w.asked = 0;
    pthread_mutex_unlock(&w.lock);
    say(true, 0, false);
    others_begin(&asker, 1, *state);
    assert_gets(*state, "value 1");
    say(false, 0, false);
    others_end(&asker, 1);
    assert_int_equal(asker.code, 0);
    assert_string_equal(asker.value.text, "value 2");
    assert_int_equal(asked(), 1);
    pass(2 * MINUTE);
    assert_gets(*state, "value 2");
    assert_int_equal(asked(), 1);
}

static void a_failure_takes_nothing_away(void **state)
{
    assert_gets(*state, "value 1");
    pass(HOUR - 2 * MINUTE);
    say(false, 2, true);
    assert_gets(*state, "value 1"); /* asked, once */
    assert_int_equal(asked(), 2);
    assert_int_equal(w.waits, 0);
    assert_gets(*state, "value 1"); /* not asked: it was put off */
    assert_int_equal(asked(), 2);
    pass(MINUTE);
    assert_gets(*state, "value 1"); /* asked, and failed again */
    assert_int_equal(asked(), 3);
    pass(2 * MINUTE); /* it has ended */
    say(false, 1, true);
    assert_gets(*state, "value 5");
    assert_int_equal(w.waits, 1);
}

static void questions_are_repeated(void **state)
{
    struct value v;
    struct error err = ERROR_INIT;
    say(false, 2, true);
    assert_gets(*state, "value 3");
    assert_int_equal(w.waits, 2);
    kept_refused(*state, &(struct value){.text = "value 3"});
    say(false, 3, true); /* once more than the rules allow */
    assert_int_equal(kept_get(*state, &env, &v, &err), E_BACKEND_DENIED);
    assert_string_equal(err.message, "question 6");
    say(false, 1, false); /* it would be the same */
    assert_int_equal(kept_get(*state, &env, &v, &err), E_BACKEND_DENIED);
    assert_int_equal(asked(), 7);
    pthread_mutex_lock(&w.lock);
    w.stops = true;
    pthread_mutex_unlock(&w.lock);
    say(false, 1, true);
    assert_int_equal(kept_get(*state, &env, &v, &err), E_BACKEND_DENIED);
    assert_int_equal(asked(), 8);
}

static void what_is_refused_is_forgotten(void **state)
{
    assert_gets(*state, "value 1");
    kept_refused(*state, &(struct value){.text = "value 0"});
    assert_gets(*state, "value 1");
    kept_refused(*state, &(struct value){.text = "value 1"});
    assert_gets(*state, "value 2");
    kept_refused(*state, &(struct value){.text = "value 1"}); /* a request that was late */
    assert_gets(*state, "value 2");
}

static void what_has_ended_already_is_an_error(void **state)
{
    struct value v;
    struct error err = ERROR_INIT;
    w.life_ms = 0;
    assert_int_equal(kept_get(*state, &env, &v, &err), E_BACKEND);
    assert_non_null(strstr(err.message, "the test's"));
    w.life_ms = 1;
    assert_gets(*state, "value 2");
}

int main(void)
{
    log_set_level(LOG_OFF);
#define KEPT_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        KEPT_TEST(one_asks_for_all),
        KEPT_TEST(an_error_is_of_all),
        KEPT_TEST(the_old_one_is_used_meanwhile),
        KEPT_TEST(a_failure_takes_nothing_away),
        KEPT_TEST(questions_are_repeated),
        KEPT_TEST(what_is_refused_is_forgotten),
        KEPT_TEST(what_has_ended_already_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
