/* When a backend is asked whether an object has changed, and what its answer means. */
#include "target/cold/fresh_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "target/store/object.h"

#define NOW_MS INT64_C(1700000000000)

static const struct bucket_props never = {.backend = "http://h/"};
static const struct bucket_props at_open = {.backend = "http://h/", .validate = VALIDATE_OPEN};
static const struct bucket_props each_minute = {
    .backend = "http://h/", .validate = VALIDATE_INTERVAL, .validate_interval_ms = 60000};

static bool is_due(const struct bucket_props *p, int64_t stored_ms, int64_t asked_ms)
{
    const struct attr a = {.name = "x", .modified_ms = stored_ms};
    return fresh_is_due(p, &a, asked_ms, NOW_MS);
}

static void test_when_it_is_asked(void **state)
{
    (void)state;
    const struct bucket_props own = {.validate = VALIDATE_OPEN};
    assert_false(is_due(&never, 1, 0));
    assert_false(is_due(&own, 1, 0));
    assert_true(is_due(&at_open, NOW_MS, NOW_MS));
    assert_false(is_due(&each_minute, NOW_MS, 0));
    assert_false(is_due(&each_minute, NOW_MS - 59999, 0));
    assert_true(is_due(&each_minute, NOW_MS - 60000, 0));
    assert_false(is_due(&each_minute, 1, NOW_MS - 59999));
    assert_true(is_due(&each_minute, 1, NOW_MS - 60000));
}

static void test_a_clock_that_went_back(void **state)
{
    (void)state;
    assert_true(is_due(&each_minute, NOW_MS + 1, 0));
    assert_true(is_due(&each_minute, NOW_MS + 1, NOW_MS + 1));
}

static struct kept kept_of(const char *meta, size_t len)
{
    const struct attr a = {.name = "x", .meta = meta, .meta_len = len};
    return fresh_kept(&a);
}

static void test_what_is_kept(void **state)
{
    (void)state;
    static const char tag[] = "a\0b\0" OBJECT_BACKEND_ETAG "\0\"t\"";
    static const char time[] = OBJECT_BACKEND_MODIFIED "\0001234";
    static const char nonsense[] = OBJECT_BACKEND_MODIFIED "\000x";
    assert_string_equal(kept_of(tag, sizeof tag).etag, "\"t\"");
    assert_null(kept_of(time, sizeof time).etag);
    assert_int_equal(kept_of(time, sizeof time).modified_s, 1234);
    assert_int_equal(kept_of(nonsense, sizeof nonsense).modified_s, 0);
    assert_null(kept_of(NULL, 0).etag);
}

static enum freshness verdict(const struct kept *k, int status, const char *etag,
                              int64_t modified_s)
{
    struct backend_facts facts = {.status = status, .modified_s = modified_s};
    memcpy(facts.etag, etag, strlen(etag) + 1);
    return fresh_verdict(k, 0, &facts);
}

static void test_what_the_answer_means(void **state)
{
    (void)state;
    const struct kept tag = {.etag = "\"t\""}, time = {.modified_s = 77}, nothing = {.etag = NULL};
    assert_int_equal(verdict(&tag, 304, "", -1), FRESH);
    assert_int_equal(verdict(&tag, 200, "\"t\"", -1), FRESH);
    assert_int_equal(verdict(&tag, 200, "\"u\"", 77), CHANGED);
    assert_int_equal(verdict(&tag, 200, "", -1), CHANGED);
    assert_int_equal(verdict(&time, 200, "", 77), FRESH);
    assert_int_equal(verdict(&time, 200, "", 78), CHANGED);
    assert_int_equal(verdict(&time, 200, "", -1), CHANGED);
    assert_int_equal(verdict(&nothing, 200, "", -1), CHANGED);
    assert_int_equal(verdict(&nothing, 200, "", 0), CHANGED);
}

static void test_what_no_answer_means(void **state)
{
    (void)state;
    const struct kept tag = {.etag = "\"t\""};
    static const struct {
        int code;
        enum freshness wanted;
    } rows[] = {
        {E_OBJECT_NOT_FOUND, GONE},   {E_BACKEND, UNKNOWN},        {E_BACKEND_BUSY, UNKNOWN},
        {E_BACKEND_TIMEOUT, UNKNOWN}, {E_BACKEND_DENIED, REFUSED}, {E_INVALID, REFUSED},
        {E_NOT_READY, REFUSED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(fresh_verdict(&tag, rows[i].code, NULL), rows[i].wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when_it_is_asked),     cmocka_unit_test(test_a_clock_that_went_back),
        cmocka_unit_test(test_what_is_kept),         cmocka_unit_test(test_what_the_answer_means),
        cmocka_unit_test(test_what_no_answer_means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
