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

enum { MINUTE = 60 * 1000, HOUR = 60 * MINUTE, PAUSE = 5000, THREADS = 8, MANY = 99 };

struct value {
    char text[32];
};

/* The service, and what is said to it. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t now_ms, life_ms;
    unsigned number, asked, waits;
    unsigned looked;   /* at the clock */
    unsigned failures; /* of the next questions */
    unsigned released; /* questions up to this one, while it holds them */
    bool again, holds, stops;
} w = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Who looks has the lock of what is kept, and gives it back when it asks, waits or is through. */
static int64_t wall_ms(void)
{
    pthread_mutex_lock(&w.lock);
    int64_t now_ms = w.now_ms;
    w.looked++;
    pthread_cond_broadcast(&w.changed);
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
    while (w.holds && number > w.released)
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

#define RULES                                                                         \
    .rules = {.retries = 2, .backoff_ms = 1, .backoff_max_ms = 1}, .pause_ms = PAUSE, \
    .wait = wait_between
static const struct exchange_env env = {RULES}, once = {RULES, .once = true};

static int begin(void **state)
{
    pthread_mutex_lock(&w.lock);
    w.now_ms = 1000;
    w.life_ms = HOUR;
    w.number = w.asked = w.looked = w.waits = w.failures = w.released = 0;
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

/* And all that wait for it, so many, look again: at the clock, and who asked twice. */
static void release(unsigned number, unsigned waiting)
{
    pthread_mutex_lock(&w.lock);
    w.looked = 0;
    w.released = number;
    pthread_cond_broadcast(&w.changed);
    while (w.looked < waiting + 2)
        pthread_cond_wait(&w.changed, &w.lock);
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

static const struct value *value_of(unsigned number)
{
    static struct value v;
    v = (struct value){.text = ""};
    snprintf(v.text, sizeof v.text, "value %u", number);
    return &v;
}

static void assert_answer(int code, const struct value *v, const struct error *err, unsigned number,
                          bool fails)
{
    if (fails) {
        char wanted[32];
        snprintf(wanted, sizeof wanted, "question %u", number);
        assert_int_equal(code, E_BACKEND_DENIED);
        assert_int_equal(err->code, code);
        assert_string_equal(err->message, wanted);
    } else {
        assert_int_equal(code, 0);
        assert_memory_equal(v, value_of(number), sizeof *v);
    }
}

static void assert_gets(struct kept *k, unsigned number)
{
    struct value v;
    struct error err = ERROR_INIT;
    int code = kept_get(k, &env, NULL, &v, &err);
    assert_answer(code, &v, &err, number, false);
}

static void assert_fails(struct kept *k, unsigned number)
{
    struct value v;
    struct error err = ERROR_INIT;
    int code = kept_get(k, &env, NULL, &v, &err);
    assert_answer(code, &v, &err, number, true);
}

/* The backend has refused one of these. */
static void assert_refused_gets(struct kept *k, unsigned refused, unsigned number, bool fails)
{
    struct value v, old = *value_of(refused);
    struct error err = ERROR_INIT;
    int code = kept_get(k, &env, &old, &v, &err);
    assert_answer(code, &v, &err, number, fails);
}

/* --- others ----------------------------------------------------------------------------------- */

struct other {
    pthread_t thread;
    struct kept *kept;
    const struct exchange_env *env;
    bool is_refused;
    struct value refused, value;
    struct error err;
    int code;
};

static void *get_it(void *arg)
{
    struct other *o = arg;
    o->code = kept_get(o->kept, o->env, o->is_refused ? &o->refused : NULL, &o->value, &o->err);
    return NULL;
}

/* When it is back each of them asks, waits, or is through.  refused: a number, or 0. */
static void others_begin(struct other *others, size_t n, struct kept *k,
                         const struct exchange_env *theirs, unsigned refused)
{
    pthread_mutex_lock(&w.lock);
    w.looked = 0;
    pthread_mutex_unlock(&w.lock);
    for (size_t i = 0; i < n; i++) {
        others[i] = (struct other){
            .kept = k, .env = theirs, .is_refused = refused > 0, .refused = *value_of(refused)};
        assert_int_equal(pthread_create(&others[i].thread, NULL, get_it, &others[i]), 0);
    }
    pthread_mutex_lock(&w.lock);
    while (w.looked < n)
        pthread_cond_wait(&w.changed, &w.lock);
    pthread_mutex_unlock(&w.lock);
}

static void others_end(struct other *others, size_t n, unsigned number, bool fails)
{
    for (size_t i = 0; i < n; i++)
        pthread_join(others[i].thread, NULL);
    for (size_t i = 0; i < n; i++)
        assert_answer(others[i].code, &others[i].value, &others[i].err, number, fails);
}

/* --- one asks --------------------------------------------------------------------------------- */

static void one_asks_for_all(void **state)
{
    struct other others[THREADS];
    say(true, 0, false);
    others_begin(others, THREADS, *state, &env, 0);
    say(false, 0, false);
    others_end(others, THREADS, 1, false);
    assert_gets(*state, 1);
    assert_int_equal(asked(), 1);
}

static void an_error_is_of_all(void **state)
{
    struct other others[THREADS];
    say(true, MANY, false);
    others_begin(others, THREADS, *state, &env, 0);
    say(false, MANY, false);
    others_end(others, THREADS, 1, true);
    assert_int_equal(asked(), 1);
}

static void questions_are_repeated(void **state)
{
    say(false, 2, true);
    assert_gets(*state, 3);
    assert_int_equal(w.waits, 2);
    pass(HOUR);
    say(false, 3, true); /* once more than the rules allow */
    assert_fails(*state, 6);
    pass(PAUSE);
    say(false, 1, false); /* it would be the same */
    assert_fails(*state, 7);
    assert_int_equal(asked(), 7);
    pass(2 * PAUSE);
    pthread_mutex_lock(&w.lock);
    w.stops = true;
    pthread_mutex_unlock(&w.lock);
    say(false, 1, true);
    assert_fails(*state, 8);
    assert_int_equal(asked(), 8);
}

/* Neither by those who wait nor by those who come later: all have more tries. */
static void the_error_of_a_single_try_is_nobody_elses(void **state)
{
    struct other single, other;
    say(true, 1, true);
    others_begin(&single, 1, *state, &once, 0);
    others_begin(&other, 1, *state, &env, 0);
    say(false, 1, true);
    others_end(&single, 1, 1, true);
    others_end(&other, 1, 2, false);
    assert_int_equal(w.waits, 0);
    pass(HOUR);
    say(true, 1, true);
    others_begin(&single, 1, *state, &once, 0);
    others_begin(&other, 1, *state, &once, 0); /* but of who has one himself */
    say(false, 1, true);
    others_end(&single, 1, 3, true);
    others_end(&other, 1, 3, true);
    assert_gets(*state, 4);
    assert_int_equal(asked(), 4);
}

/* --- the old one ------------------------------------------------------------------------------ */

/* Who comes while it is renewed does not wait: here it would wait for ever. */
static void the_old_one_is_used_meanwhile(void **state)
{
    struct other asker;
    assert_gets(*state, 1);
    pass(HOUR - MINUTE);
    say(true, 0, false);
    others_begin(&asker, 1, *state, &env, 0);
    assert_gets(*state, 1);
    say(false, 0, false);
    others_end(&asker, 1, 2, false);
    assert_int_equal(asked(), 2);
    pass(2 * MINUTE);
    assert_gets(*state, 2);
    assert_int_equal(asked(), 2);
}

static void a_failure_takes_nothing_away(void **state)
{
    assert_gets(*state, 1);
    pass(HOUR - 2 * MINUTE);
    say(false, 2, true);
    assert_gets(*state, 1); /* asked, once */
    assert_int_equal(asked(), 2);
    assert_int_equal(w.waits, 0);
    assert_gets(*state, 1); /* not asked: it was put off */
    assert_int_equal(asked(), 2);
    pass(MINUTE);
    assert_gets(*state, 1); /* asked, and failed again */
    assert_int_equal(asked(), 3);
    pass(2 * MINUTE); /* it has ended */
    say(false, 1, true);
    assert_gets(*state, 5);
    assert_int_equal(w.waits, 1);
}

/* It ends while it is renewed, in vain: then it is asked for in earnest. */
static void who_waits_for_a_renewal_that_fails_asks(void **state)
{
    struct other asker, others[THREADS];
    assert_gets(*state, 1);
    pass(HOUR - MINUTE);
    say(true, 1, true);
    others_begin(&asker, 1, *state, &env, 0);
    pass(2 * MINUTE);
    others_begin(others, THREADS, *state, &env, 0);
    release(2, THREADS); /* with its error they would not look again */
    say(false, 0, true);
    others_end(others, THREADS, 3, false);
    others_end(&asker, 1, 3, false);
    assert_int_equal(asked(), 3);
}

static void what_has_ended_already_is_an_error(void **state)
{
    struct value v;
    struct error err = ERROR_INIT;
    w.life_ms = 0;
    assert_int_equal(kept_get(*state, &env, NULL, &v, &err), E_BACKEND);
    assert_non_null(strstr(err.message, "the test's"));
    pass(PAUSE);
    w.life_ms = 1;
    assert_gets(*state, 2);
}

/* --- failures are remembered ------------------------------------------------------------------ */

static void an_error_is_given_again_for_a_while(void **state)
{
    say(false, 2, false);
    assert_fails(*state, 1);
    assert_fails(*state, 1);
    pass(PAUSE - 1);
    assert_fails(*state, 1);
    assert_int_equal(asked(), 1);
    pass(1);
    assert_fails(*state, 2);
    pass(2 * PAUSE - 1); /* it doubles */
    assert_fails(*state, 2);
    assert_int_equal(asked(), 2);
    pass(1);
    assert_gets(*state, 3);
    pass(HOUR);
    say(false, 1, false);
    assert_fails(*state, 4);
    pass(PAUSE); /* as at first */
    assert_gets(*state, 5);
    assert_int_equal(asked(), 5);
}

/* Here it would wait for ever. */
static void once_it_has_failed_nobody_waits(void **state)
{
    struct other asker;
    say(false, 1, false);
    assert_fails(*state, 1);
    pass(PAUSE);
    say(true, 0, false);
    others_begin(&asker, 1, *state, &env, 0);
    assert_fails(*state, 1);
    say(false, 0, false);
    others_end(&asker, 1, 2, false);
    assert_gets(*state, 2);
    assert_int_equal(asked(), 2);
}

static void long_after_a_failure_all_wait_again(void **state)
{
    struct other others[THREADS];
    say(false, 1, false);
    assert_fails(*state, 1);
    pass(PAUSE + MINUTE);
    say(true, 0, false);
    others_begin(others, THREADS, *state, &env, 0);
    say(false, 0, false);
    others_end(others, THREADS, 2, false);
    assert_int_equal(asked(), 2);
}

/* --- what is refused -------------------------------------------------------------------------- */

/* The others do not: here they would wait for ever. */
static void who_is_refused_waits_for_another(void **state)
{
    struct other refused[THREADS];
    assert_gets(*state, 1);
    pass(PAUSE);
    say(true, 0, false);
    others_begin(refused, THREADS, *state, &env, 1);
    assert_gets(*state, 1);
    say(false, 0, false);
    others_end(refused, THREADS, 2, false);
    assert_gets(*state, 2);
    assert_refused_gets(*state, 1, 2, false); /* a request that was late */
    assert_int_equal(asked(), 2);
}

/* Others have it until its end. */
static void what_is_refused_is_not_lost(void **state)
{
    assert_gets(*state, 1);
    pass(PAUSE);
    say(false, 4, true); /* and repeated, as for who has none */
    assert_refused_gets(*state, 1, 4, true);
    assert_int_equal(w.waits, 2);
    assert_refused_gets(*state, 1, 4, true);
    assert_gets(*state, 1);
    assert_int_equal(asked(), 4);
    pass(PAUSE);
    assert_refused_gets(*state, 1, 6, false);
    assert_gets(*state, 6);
}

/* Not asked for anew for each request that is refused for a reason of its own. */
static void a_new_one_that_is_refused_stays(void **state)
{
    assert_gets(*state, 1);
    pass(PAUSE - 1);
    assert_refused_gets(*state, 1, 1, false);
    assert_int_equal(asked(), 1);
    pass(1);
    assert_refused_gets(*state, 1, 2, false);
    assert_refused_gets(*state, 2, 2, false);
    assert_int_equal(asked(), 2);
}

int main(void)
{
    log_set_level(LOG_OFF);
#define KEPT_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        KEPT_TEST(one_asks_for_all),
        KEPT_TEST(an_error_is_of_all),
        KEPT_TEST(questions_are_repeated),
        KEPT_TEST(the_error_of_a_single_try_is_nobody_elses),
        KEPT_TEST(the_old_one_is_used_meanwhile),
        KEPT_TEST(a_failure_takes_nothing_away),
        KEPT_TEST(who_waits_for_a_renewal_that_fails_asks),
        KEPT_TEST(what_has_ended_already_is_an_error),
        KEPT_TEST(an_error_is_given_again_for_a_while),
        KEPT_TEST(once_it_has_failed_nobody_waits),
        KEPT_TEST(long_after_a_failure_all_wait_again),
        KEPT_TEST(who_is_refused_waits_for_another),
        KEPT_TEST(what_is_refused_is_not_lost),
        KEPT_TEST(a_new_one_that_is_refused_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
