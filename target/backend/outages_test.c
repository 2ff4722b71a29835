#include "target/backend/outages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/error.h"

#define URL "s3://b?endpoint=http://store:9000"

static void note_times(struct outages *o, const char *url, int code, int times)
{
    for (int i = 0; i < times; i++)
        outages_note(o, url, code);
}

static void test_the_last_requests_decide(void **state)
{
    (void)state;
    static const int failures[] = {E_BACKEND, E_BACKEND_BUSY, E_BACKEND_TIMEOUT};
    static const int answers[] = {0, E_OBJECT_NOT_FOUND, E_BACKEND_DENIED};
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
        struct outages *o = outages_new();
        note_times(o, URL, failures[i], OUTAGE_FAILURES - 1);
        assert_false(outages_has(o, URL));
        outages_note(o, URL, E_CANCELLED); /* says nothing */
        outages_note(o, URL, failures[i]);
        assert_true(outages_has(o, URL));
        assert_false(outages_has(o, "s3://other"));
        outages_note(o, URL, answers[i]);
        assert_false(outages_has(o, URL));
        outages_note(o, URL, failures[i]); /* counts from anew */
        assert_false(outages_has(o, URL));
        outages_free(o);
    }
}

static void test_the_last_ones_are_remembered(void **state)
{
    (void)state;
    char url[32];
    struct outages *o = outages_new();
    for (int i = 0; i <= OUTAGES_MAX; i++) {
        snprintf(url, sizeof url, "s3://b%d", i);
        note_times(o, url, E_BACKEND, OUTAGE_FAILURES);
    }
    assert_true(outages_has(o, url));
    assert_true(outages_has(o, "s3://b1"));
    assert_false(outages_has(o, "s3://b0"));
    outages_free(o);
}

static void test_none_are_kept_without_a_place(void **state)
{
    (void)state;
    outages_note(NULL, URL, E_BACKEND);
    outages_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_requests_decide),
        cmocka_unit_test(test_the_last_ones_are_remembered),
        cmocka_unit_test(test_none_are_kept_without_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
