#include "target/copies/hand_next.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/error.h"

static enum hand_next next(bool self, bool first, bool changed, int failure)
{
    return hand_next(&(struct hand_view){.has_leader = true,
                                         .leader_is_self = self,
                                         .first = first,
                                         .map_changed = changed,
                                         .failure = failure});
}

static void test_same_map_is_not_tried_twice_by_this_target(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        assert_int_equal(next(true, first, false, E_NODE_UNREACHABLE), HAND_STOP);
        assert_int_equal(next(true, first, true, E_NODE_UNREACHABLE), HAND_SEND);
        assert_int_equal(next(true, first, false, E_STALE_MAP), HAND_WAIT);
        assert_int_equal(next(true, first, false, E_NOT_READY), HAND_WAIT);
        assert_int_equal(next(true, first, true, E_STALE_MAP), HAND_SEND);
    }
}

static void test_another_leader_is_sent_it(void **state)
{
    (void)state;
    for (int changed = 0; changed < 2; changed++) {
        assert_int_equal(next(false, true, changed, E_NODE_UNREACHABLE), HAND_SEND);
        assert_int_equal(next(false, true, changed, E_STALE_MAP), HAND_SEND);
        assert_int_equal(next(false, false, changed, E_STALE_MAP), HAND_SEND);
        assert_int_equal(next(false, false, changed, E_NOT_READY), HAND_SEND);
    }
    assert_int_equal(next(false, false, true, E_NODE_UNREACHABLE), HAND_SEND);
    assert_int_equal(next(false, false, false, E_NODE_UNREACHABLE), HAND_STOP);
}

static void test_other_failures_and_no_leader_are_the_end(void **state)
{
    (void)state;
    static const int others[] = {E_IO, E_NO_SPACE, E_IN_DOUBT, E_OVERLOAD};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(next(false, true, true, others[i]), HAND_STOP);
        assert_int_equal(next(true, true, true, others[i]), HAND_STOP);
    }
    assert_int_equal(hand_next(&(struct hand_view){.map_changed = true, .failure = E_STALE_MAP}),
                     HAND_STOP);
}

static void test_what_a_target_may_have_is_not_sent_on(void **state)
{
    (void)state;
    static const struct {
        int failure;
        bool may_be_there, may_begin;
    } rows[] = {
        {E_STALE_MAP, false, true},  {E_NODE_UNREACHABLE, false, true},
        {E_STALE_MAP, true, false},  {E_NODE_UNREACHABLE, true, false},
        {E_IN_DOUBT, false, false},  {E_IN_DOUBT, true, false},
        {E_NOT_READY, false, false}, {E_IO, false, false},
        {E_NO_SPACE, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(hand_may_begin(rows[i].failure, rows[i].may_be_there), rows[i].may_begin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_target_may_have_is_not_sent_on),
        cmocka_unit_test(test_same_map_is_not_tried_twice_by_this_target),
        cmocka_unit_test(test_another_leader_is_sent_it),
        cmocka_unit_test(test_other_failures_and_no_leader_are_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
