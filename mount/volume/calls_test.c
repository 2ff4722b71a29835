#include "mount/volume/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int setup(void **state)
{
    *state = volume_memory_new();
    return *state == NULL;
}

static int teardown(void **state)
{
    volume_memory_free(*state);
    return 0;
}

static void a_call_has_one_slot(void **state)
{
    struct call *a = calls_take(*state, 6), *b = calls_take(*state, 6 + CALLS_MOST);
    assert_non_null(a);
    assert_true(b != NULL && b != a);
    assert_ptr_equal(calls_take(*state, 6), a);
    assert_false(calls_is_made(a));
    calls_give(a);
    assert_ptr_equal(calls_take(*state, 6 + CALLS_MOST), b);
    for (uint64_t id = 10000; id < 10000 + CALLS_MOST - 1; id++)
        assert_non_null(calls_take(*state, id));
    assert_null(calls_take(*state, 1));
    calls_give(b);
    assert_non_null(calls_take(*state, 1));
}

/* n is the number that the lane had before the commit n + 1. */
static void the_lane_tells_what_became_of_a_commit(void **state)
{
    enum { N = 7 };
    for (int64_t number = N; number <= N + 3; number++) {
        calls_sent(calls_take(*state, 2), 3, N + 1);
        calls_judge(*state, 2, N + 1); /* another lane */
        calls_judge(*state, 3, number);
        calls_judge(*state, 3, number + 2);
        calls_settle(*state);
        struct call *c = calls_take(*state, 2);
        assert_int_equal(calls_is_made(c), number == N + 1);
        calls_give(c);
    }
}

static void the_first_commit_that_is_made_counts(void **state)
{
    struct call *c = calls_take(*state, 2);
    calls_sent(c, 0, 5);
    calls_ended(c, false); /* another client was first */
    assert_false(calls_is_made(c));
    calls_sent(c, 1, 9);
    calls_ended(c, true);
    calls_sent(c, 0, 6);
    calls_ended(c, false);
    assert_true(calls_is_made(c));
    calls_settle(*state);
    assert_true(calls_is_made(calls_take(*state, 2)));
}

/* It was made and answered: no process asks for it any more. */
static void what_does_not_come_again_is_forgotten(void **state)
{
    struct call *c = calls_take(*state, 2);
    calls_sent(c, 0, 5);
    calls_ended(c, true);
    for (unsigned i = 0; i < CALLS_AGE_MOST; i++)
        calls_settle(*state);
    assert_true(calls_is_made(c));
    calls_settle(*state);
    assert_false(calls_is_made(calls_take(*state, 2)));
}

static void without_a_slot_nothing_is_noted(void **state)
{
    (void)state;
    calls_sent(NULL, 0, 1);
    calls_ended(NULL, true);
    calls_give(NULL);
    assert_false(calls_is_made(NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_call_has_one_slot),
        TEST(the_lane_tells_what_became_of_a_commit),
        TEST(the_first_commit_that_is_made_counts),
        TEST(what_does_not_come_again_is_forgotten),
        TEST(without_a_slot_nothing_is_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
