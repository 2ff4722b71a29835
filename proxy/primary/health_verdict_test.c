#include "proxy/primary/health_verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void holds_for_its_documents_and_a_moment(void **state)
{
    (void)state;
    const struct health_verdict v = {.colour = "green", .term = 3, .version = 7, .judged_ms = 5000};
    assert_true(health_verdict_holds(&v, 3, 7, 5000));
    assert_true(health_verdict_holds(&v, 3, 7, 5000 + VERDICT_KEEP_MS - 1));
    assert_false(health_verdict_holds(&v, 3, 7, 5000 + VERDICT_KEEP_MS));
    assert_false(health_verdict_holds(&v, 3, 8, 5000));
    assert_false(health_verdict_holds(&v, 4, 7, 5000));
    assert_false(health_verdict_holds(&v, 3, 7, 4999)); /* of another thread's later judgement */
}

static void none_does_not_hold(void **state)
{
    (void)state;
    const struct health_verdict none = {0};
    assert_false(health_verdict_holds(&none, 0, 0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_for_its_documents_and_a_moment),
        cmocka_unit_test(none_does_not_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
