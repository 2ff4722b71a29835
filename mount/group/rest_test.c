#include "mount/group/rest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void rests_grow_and_end(void **unused)
{
    (void)unused;
    struct rest r = {0};
    uint64_t now = 5000, pause = 1000;
    assert_true(rest_may_ask(&r, now));
    for (unsigned i = 0; i < 8; i++) {
        rest_note(&r, false, now);
        assert_false(rest_may_ask(&r, now + pause - 1));
        now += pause;
        assert_true(rest_may_ask(&r, now));
        pause = 2 * pause < REST_MOST_MS ? 2 * pause : REST_MOST_MS;
    }
    rest_note(&r, true, now);
    assert_true(rest_may_ask(&r, now));
    assert_true(rest_may_ask(&r, now));
    rest_note(&r, false, now);
    assert_true(rest_may_ask(&r, now + REST_FIRST_MS));
}

static void one_request_tries(void **unused)
{
    (void)unused;
    struct rest r = {0};
    rest_note(&r, false, 1000);
    assert_true(rest_may_ask(&r, 2000));
    assert_false(rest_may_ask(&r, 2000));
    assert_false(rest_may_ask(&r, 2999));
    assert_true(rest_may_ask(&r, 3000)); /* the first one does not come back */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rests_grow_and_end),
        cmocka_unit_test(one_request_tries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
