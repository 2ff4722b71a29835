#include "target/node/quota_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct quota_amount amount(uint64_t objects, uint64_t bytes)
{
    return (struct quota_amount){objects, bytes};
}

static void assert_amount(struct quota_amount a, uint64_t objects, uint64_t bytes)
{
    assert_int_equal(a.objects, objects);
    assert_int_equal(a.bytes, bytes);
}

/* At no time is less counted than there is. */
static void an_upload_across_a_count_is_counted(void **state)
{
    (void)state;
    struct quota_ledger l = {0};
    quota_open(&l, amount(1, 100));
    quota_count_begins(&l);
    assert_amount(quota_own(&l), 1, 100);
    quota_end(&l, amount(1, 100));        /* after the count has passed its name */
    quota_count_ends(&l, amount(7, 700)); /* of others */
    assert_amount(quota_own(&l), 8, 800); /* it may be in the 7: one count too many */
    quota_count_begins(&l);
    assert_amount(quota_own(&l), 8, 800);
    quota_count_ends(&l, amount(8, 800));
    assert_amount(quota_own(&l), 8, 800);
}

static void a_count_that_fails_forgets_nothing(void **state)
{
    (void)state;
    struct quota_ledger l = {0};
    quota_open(&l, amount(1, 100));
    quota_end(&l, amount(1, 100));
    quota_count_begins(&l);
    quota_open(&l, amount(1, 10));
    quota_end(&l, amount(1, 10));
    quota_count_begins(&l);
    assert_amount(quota_own(&l), 2, 110);
    quota_count_ends(&l, amount(2, 110));
    assert_amount(quota_own(&l), 2, 110);
}

static void a_restarted_target_takes_the_primarys_word_until_it_has_counted(void **state)
{
    (void)state;
    struct quota_ledger l = {0};
    assert_amount(quota_used(&l), 0, 0); /* nobody knows anything: all fits */
    quota_hear(&l, amount(20, 2000), amount(5, 500));
    assert_amount(quota_used(&l), 25, 2500);
    quota_open(&l, amount(1, 10));
    assert_amount(quota_used(&l), 26, 2510);
    quota_count_begins(&l);
    quota_count_ends(&l, amount(4, 400));
    quota_hear(&l, amount(21, 2100), amount(5, 500));
    assert_amount(quota_used(&l), 26, 2510);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_upload_across_a_count_is_counted),
        cmocka_unit_test(a_count_that_fails_forgets_nothing),
        cmocka_unit_test(a_restarted_target_takes_the_primarys_word_until_it_has_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
