#include "net/unproven.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct sockaddr_in address(unsigned last)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK + last)};
}

static int enter(struct unproven *u, unsigned last, struct error *err)
{
    const struct sockaddr_in a = address(last);
    return unproven_enter(u, (const struct sockaddr *)&a, err);
}

static void leave(struct unproven *u, unsigned last)
{
    const struct sockaddr_in a = address(last);
    unproven_leave(u, (const struct sockaddr *)&a);
}

static void test_a_quarter_and_three_quarters_of_that(void **state)
{
    (void)state;
    struct unproven *u = unproven_new(160);
    struct error err = ERROR_INIT;
    for (unsigned i = 0; i < 30; i++)
        assert_int_equal(enter(u, 1, &err), 0);
    assert_int_equal(enter(u, 1, &err), E_OVERLOAD);
    assert_non_null(strstr(err.message, "30 connections of this address"));
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(enter(u, 2 + i, &err), 0);
    assert_int_equal(enter(u, 50, &err), E_OVERLOAD);
    assert_non_null(strstr(err.message, "40 connections to the node"));
    leave(u, 1); /* it has proven itself */
    assert_int_equal(enter(u, 50, &err), 0);
    leave(u, 50);
    for (unsigned i = 0; i < 29; i++)
        leave(u, 1);
    for (unsigned i = 0; i < 10; i++)
        leave(u, 2 + i);
    unproven_free(u);
}

static void test_few_connections_leave_some(void **state)
{
    (void)state;
    struct unproven *u = unproven_new(8);
    for (unsigned i = 0; i < UNPROVEN_MIN; i++)
        assert_int_equal(enter(u, i, NULL), 0);
    assert_int_equal(enter(u, UNPROVEN_MIN, NULL), E_OVERLOAD);
    for (unsigned i = 0; i < UNPROVEN_MIN; i++)
        leave(u, i);
    unproven_free(u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_quarter_and_three_quarters_of_that),
        cmocka_unit_test(test_few_connections_leave_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
