#include "target/backend/limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void half_of_what_was_under_way(void **unused)
{
    (void)unused;
    struct limit l;
    limit_init(&l);
    assert_int_equal(limit_now(&l), LIMIT_MAX);
    limit_refused(&l, l.cuts, 40);
    assert_int_equal(limit_now(&l), 20);
    /* The others that had begun before say the same thing once more. */
    limit_refused(&l, 0, 39);
    limit_refused(&l, 0, 38);
    assert_int_equal(limit_now(&l), 20);
    limit_refused(&l, 1, 20);
    assert_int_equal(limit_now(&l), 10);
    for (int i = 0; i < 20; i++)
        limit_refused(&l, l.cuts, 1);
    assert_int_equal(limit_now(&l), 1);
}

static void one_more_for_each_round(void **unused)
{
    (void)unused;
    struct limit l;
    limit_init(&l);
    limit_refused(&l, 0, 1);
    for (unsigned round = 1; round < 20; round++) {
        unsigned before = limit_now(&l);
        for (unsigned i = 0; i <= before; i++)
            limit_answered(&l);
        assert_in_range(limit_now(&l), before, before + 2);
    }
    assert_in_range(limit_now(&l), 15, 30);
    for (int i = 0; i < 100000; i++)
        limit_answered(&l);
    assert_int_equal(limit_now(&l), LIMIT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_of_what_was_under_way),
        cmocka_unit_test(one_more_for_each_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
