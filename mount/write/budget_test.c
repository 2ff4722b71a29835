#include "mount/write/budget.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void the_limit_holds(void **state)
{
    (void)state;
    struct budget b;
    const struct budget_wait wait = {.wait_ms = 0};
    budget_init(&b, 10);
    assert_int_equal(budget_take(&b, 4, &wait), 0);
    assert_int_equal(budget_take(&b, 6, &wait), 0);
    assert_int_equal(budget_take(&b, 1, &wait), -ENOBUFS);
    budget_give(&b, 4);
    assert_int_equal(budget_take(&b, 5, &wait), -ENOBUFS);
    assert_int_equal(budget_take(&b, 4, &wait), 0);
    budget_give(&b, 10);
    assert_int_equal(budget_take(&b, 11, &wait), -ENOBUFS);
    assert_int_equal(budget_take(&b, UINT64_MAX, &wait), -ENOBUFS);
    budget_done(&b);
}

static bool at_once(void *context)
{
    ++*(int *)context;
    return true;
}

static void a_wait_can_be_interrupted(void **state)
{
    (void)state;
    struct budget b;
    int asked = 0;
    const struct budget_wait wait = {.wait_ms = 3600000, .interrupted = at_once, .context = &asked};
    budget_init(&b, 1);
    assert_int_equal(budget_take(&b, 1, &wait), 0);
    assert_int_equal(budget_take(&b, 1, &wait), -EINTR);
    assert_int_equal(asked, 1);
    budget_give(&b, 1);
    budget_done(&b);
}

static void *give(void *context)
{
    budget_give(context, 1);
    return NULL;
}

static void room_that_is_given_is_taken(void **state)
{
    (void)state;
    struct budget b;
    pthread_t thread;
    const struct budget_wait wait = {.wait_ms = 3600000};
    budget_init(&b, 1);
    assert_int_equal(budget_take(&b, 1, &wait), 0);
    assert_int_equal(pthread_create(&thread, NULL, give, &b), 0);
    assert_int_equal(budget_take(&b, 1, &wait), 0);
    pthread_join(thread, NULL);
    budget_give(&b, 1);
    budget_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(a_wait_can_be_interrupted),
        cmocka_unit_test(room_that_is_given_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
