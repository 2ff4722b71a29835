#include "proxy/primary/follower_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/error.h"

static void it_registers_then_keeps_alive_and_fetches_what_is_newer(void **unused)
{
    (void)unused;
    struct follower_plan p = {0};
    assert_int_equal(follower_plan_call(&p), FOLLOWER_REGISTER);
    assert_int_equal(follower_plan_ended(&p, FOLLOWER_REGISTER, E_NET, false), FOLLOWER_NOTHING);
    assert_int_equal(follower_plan_call(&p), FOLLOWER_REGISTER);
    assert_int_equal(follower_plan_ended(&p, FOLLOWER_REGISTER, 0, false), FOLLOWER_NOTHING);
    assert_int_equal(follower_plan_call(&p), FOLLOWER_KEEPALIVE);
    assert_int_equal(follower_plan_ended(&p, FOLLOWER_KEEPALIVE, 0, false), FOLLOWER_NOTHING);
    assert_int_equal(follower_plan_ended(&p, FOLLOWER_KEEPALIVE, 0, true), FOLLOWER_FETCH);
    assert_int_equal(follower_plan_ended(&p, FOLLOWER_FETCH, E_NET, false), FOLLOWER_NOTHING);
    assert_int_equal(follower_plan_call(&p), FOLLOWER_KEEPALIVE);
}

static void who_is_not_known_registers_at_once(void **unused)
{
    (void)unused;
    struct follower_plan p = {.member = true};
    assert_int_equal(follower_plan_ended(&p, FOLLOWER_KEEPALIVE, E_NODE_NOT_FOUND, false),
                     FOLLOWER_REGISTER);
    assert_int_equal(follower_plan_call(&p), FOLLOWER_REGISTER);
}

static void what_fails_is_tried_in_turn_where_join_says(void **unused)
{
    (void)unused;
    struct follower_plan p = {.member = true};
    follower_plan_ended(&p, FOLLOWER_KEEPALIVE, E_TIMEOUT, false);
    assert_true(p.use_join && p.member);
    follower_plan_ended(&p, FOLLOWER_KEEPALIVE, E_TIMEOUT, false);
    assert_false(p.use_join);
    follower_plan_ended(&p, FOLLOWER_KEEPALIVE, E_TIMEOUT, false);
    follower_plan_ended(&p, FOLLOWER_KEEPALIVE, 0, false);
    assert_false(p.use_join);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_registers_then_keeps_alive_and_fetches_what_is_newer),
        cmocka_unit_test(who_is_not_known_registers_at_once),
        cmocka_unit_test(what_fails_is_tried_in_turn_where_join_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
