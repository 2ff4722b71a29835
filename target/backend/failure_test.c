#include "target/backend/failure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void what_a_status_means(void **unused)
{
    (void)unused;
    static const struct {
        int status;
        const char *words;
        int code;
        bool passing;
    } rows[] = {
        {404, "", E_OBJECT_NOT_FOUND, false},
        {404, "NoSuchKey: x", E_OBJECT_NOT_FOUND, false},
        {404, "NoSuchBucket: x", E_BACKEND, false},
        {401, "", E_BACKEND_DENIED, false},
        {403, "AccessDenied: x", E_BACKEND_DENIED, false},
        {412, "", E_PRECONDITION, false},
        {416, "", E_RANGE, false},
        {408, "", E_BACKEND_TIMEOUT, true},
        {429, "", E_BACKEND_BUSY, true},
        {500, "", E_BACKEND, true},
        {502, "", E_BACKEND, true},
        {503, "", E_BACKEND_BUSY, true},
        {504, "", E_BACKEND_TIMEOUT, true},
        {301, "", E_BACKEND, false},
        {418, "", E_BACKEND, false},
        {204, "", E_BACKEND, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        assert_int_equal(failure_of_status(rows[i].status, rows[i].words, NULL, &err),
                         rows[i].code);
        assert_non_null(strstr(err.message, rows[i].words));
        assert_int_equal(failure_is_passing(rows[i].status, 0), rows[i].passing);
    }
    struct error err = ERROR_INIT;
    assert_int_equal(failure_of_status(301, "", "eu-west-3", &err), E_BACKEND);
    assert_non_null(strstr(err.message, "'eu-west-3'"));
}

static void what_a_broken_connection_means(void **unused)
{
    (void)unused;
    assert_int_equal(failure_of_transport(E_NET, "refused", NULL), E_BACKEND);
    assert_int_equal(failure_of_transport(E_TIMEOUT, "", NULL), E_BACKEND_TIMEOUT);
    assert_int_equal(failure_of_transport(E_CANCELLED, "", NULL), E_NOT_READY);
    assert_true(failure_is_passing(0, E_NET));
    assert_true(failure_is_passing(0, E_TIMEOUT));
    assert_false(failure_is_passing(0, E_CANCELLED));
}

static void what_retry_after_says(void **unused)
{
    (void)unused;
    assert_int_equal(failure_retry_after_ms(NULL, 0), 0);
    assert_int_equal(failure_retry_after_ms("", 0), 0);
    assert_int_equal(failure_retry_after_ms("soon", 0), 0);
    assert_int_equal(failure_retry_after_ms("3", 0), 3000);
    assert_true(failure_retry_after_ms("18446744073709551615", 0) == UINT64_MAX);
    assert_int_equal(failure_retry_after_ms("Thu, 01 Jan 1970 00:00:09 GMT", 2000), 7000);
    assert_int_equal(failure_retry_after_ms("Thu, 01 Jan 1970 00:00:09 GMT", 10000), 0);
}

static void how_long_to_wait(void **unused)
{
    (void)unused;
    const struct failure_rules rules = {.retries = 5, .backoff_ms = 100, .backoff_max_ms = 1000};
    uint64_t wait, whole[] = {100, 200, 400, 800, 1000};
    for (unsigned done = 1; done <= 5; done++) {
        assert_true(failure_wait(&rules, done, 0, 0, &wait));
        assert_int_equal(wait, whole[done - 1]);
        for (uint64_t luck = 1; luck < 2000; luck += 7) {
            assert_true(failure_wait(&rules, done, 0, luck, &wait));
            assert_in_range(wait, whole[done - 1] / 2, whole[done - 1]);
        }
    }
    assert_false(failure_wait(&rules, 6, 0, 0, &wait));
    assert_true(failure_wait(&rules, 1, 1000, 7, &wait));
    assert_int_equal(wait, 1000);
    assert_false(failure_wait(&rules, 1, 1001, 7, &wait));
    const struct failure_rules none = {.retries = 0, .backoff_ms = 1, .backoff_max_ms = 1};
    assert_false(failure_wait(&none, 1, 0, 0, &wait));
}

static void keys_that_have_ended(void **unused)
{
    (void)unused;
    static const struct {
        int status;
        const char *words;
        bool is_elsewhere, has_ended;
    } rows[] = {
        {400, "ExpiredToken: The provided token has expired.", false, true},
        {403, "ExpiredToken", true, true},
        {400, "InvalidToken: x", false, true},
        {400, "TokenRefreshRequired: x", false, true},
        {400, "InvalidTokenId: x", false, false},
        {400, "ExpiredTokenException", false, false},
        {400, "", false, true},
        {400, "", true, false},
        {403, "", false, false},
        {403, "AccessDenied: ExpiredToken", false, false},
        {403, "InvalidAccessKeyId: x", false, false},
        {400, "InvalidRequest: x", false, false},
        {503, "ExpiredToken", false, false},
        {0, "", false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(
            failure_is_of_ended_keys(rows[i].status, rows[i].words, rows[i].is_elsewhere),
            rows[i].has_ended);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_status_means),   cmocka_unit_test(what_a_broken_connection_means),
        cmocka_unit_test(what_retry_after_says), cmocka_unit_test(how_long_to_wait),
        cmocka_unit_test(keys_that_have_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
