#include "access/rates.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { HOUR_MS = 3600000, USERS = 3000 };

static struct rates *rates;

static int setup(void **state)
{
    (void)state;
    rates = rates_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rates_free(rates);
    return 0;
}

static void id_of(unsigned number, char id[USER_ID_CHARS + 1])
{
    snprintf(id, USER_ID_CHARS + 1, "%08x%024d", number, 0);
}

static void each_user_has_a_rate_of_its_own(void **state)
{
    (void)state;
    const struct access_rate limit = {.requests = 2};
    char id[USER_ID_CHARS + 1];
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < USERS; i++) {
            id_of(i, id);
            uint64_t wait_ms = rates_take_request(rates, id, &limit, 1000);
            assert_int_equal(wait_ms, round < 2 ? 0 : 500);
        }
    }
    assert_int_equal(rates_count(rates), USERS);
}

static void bytes_are_paid_by_later_requests(void **state)
{
    (void)state;
    const struct access_rate limit = {.bytes = 1000};
    char id[USER_ID_CHARS + 1];
    id_of(1, id);
    assert_int_equal(rates_take_request(rates, id, &limit, 1000), 0);
    rates_take_bytes(rates, id, &limit, 5000, 1000);
    assert_int_equal(rates_take_request(rates, id, &limit, 1000), 4000);
    assert_int_equal(rates_take_request(rates, id, &limit, 5000), 0);
}

static void nothing_is_kept_of_users_without_a_limit(void **state)
{
    (void)state;
    const struct access_rate none = {0};
    char id[USER_ID_CHARS + 1];
    id_of(1, id);
    assert_int_equal(rates_take_request(rates, id, &none, 1000), 0);
    rates_take_bytes(rates, id, &none, 1 << 30, 1000);
    assert_int_equal(rates_count(rates), 0);
}

static void idle_users_are_forgotten(void **state)
{
    (void)state;
    const struct access_rate limit = {.requests = 2};
    char id[USER_ID_CHARS + 1];
    for (unsigned i = 0; i < 2 * USERS; i++) {
        id_of(i, id);
        rates_take_request(rates, id, &limit, i < USERS ? 1000 : 1000 + 2 * HOUR_MS);
    }
    assert_in_range(rates_count(rates), USERS, USERS + USERS / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_user_has_a_rate_of_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_are_paid_by_later_requests, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_is_kept_of_users_without_a_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(idle_users_are_forgotten, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
