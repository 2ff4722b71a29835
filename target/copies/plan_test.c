#include "target/copies/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct object_held has(uint64_t counter)
{
    return (struct object_held){.found = counter > 0,
                                .visible = true,
                                .version = {.term = 1, .map = 2, .counter = counter}};
}

/* Every combination of three fates against the rule said in words. */
static void test_every_combination_of_fates(void **state)
{
    (void)state;
    for (int n = 0; n < 64 * 4; n++) {
        size_t needs = (size_t)n / 64;
        enum copy_fate fates[3];
        int count[4] = {0};
        for (int i = 0; i < 3; i++) {
            fates[i] = (enum copy_fate)((n >> (2 * i)) & 3);
            count[fates[i]]++;
        }
        enum copies_outcome got = copies_judge(fates, 3, needs, false);
        bool all = count[COPY_MADE] + count[COPY_PASSED_OVER] == 3;
        bool done = needs == COPIES_EACH ? all : count[COPY_MADE] >= (int)needs;
        bool none = count[COPY_MADE] == 0 && count[COPY_UNKNOWN] == 0;
        assert_int_equal(got == COPIES_DONE, done);
        if (!done)
            assert_int_equal(got == COPIES_FAILED, none);
    }
    assert_int_equal(copies_judge(NULL, 0, COPIES_EACH, false), COPIES_DONE);
    assert_int_equal(copies_judge(NULL, 0, 1, false), COPIES_FAILED);
}

static void test_who_is_passed_over_is_missing_from_a_majority(void **state)
{
    (void)state;
    const enum copy_fate one[] = {COPY_PASSED_OVER, COPY_MADE};
    const enum copy_fate none[] = {COPY_PASSED_OVER, COPY_PASSED_OVER};
    const enum copy_fate late[] = {COPY_UNKNOWN, COPY_MADE};
    assert_int_equal(copies_judge(one, 2, 1, false), COPIES_DONE);
    assert_int_equal(copies_judge(late, 2, 1, false), COPIES_DONE);
    assert_int_equal(copies_judge(one, 2, 2, false), COPIES_IN_DOUBT);
    assert_int_equal(copies_judge(none, 2, 1, false), COPIES_FAILED);
}

static void test_a_failure_is_certain_only_where_nobody_may_have_it(void **state)
{
    (void)state;
    const enum copy_fate refused[] = {COPY_REFUSED, COPY_REFUSED};
    const enum copy_fate passed[] = {COPY_PASSED_OVER, COPY_REFUSED};
    const enum copy_fate one[] = {COPY_MADE, COPY_REFUSED};
    const enum copy_fate unknown[] = {COPY_REFUSED, COPY_UNKNOWN};
    assert_int_equal(copies_judge(refused, 2, COPIES_EACH, false), COPIES_FAILED);
    assert_int_equal(copies_judge(passed, 2, COPIES_EACH, false), COPIES_FAILED);
    assert_int_equal(copies_judge(passed, 2, COPIES_EACH, true), COPIES_IN_DOUBT);
    assert_int_equal(copies_judge(one, 2, COPIES_EACH, false), COPIES_IN_DOUBT);
    assert_int_equal(copies_judge(unknown, 2, COPIES_EACH, false), COPIES_IN_DOUBT);
}

static void test_the_greatest_wins_and_who_lacks_it_is_named(void **state)
{
    (void)state;
    const struct object_held self = has(3), others[] = {has(5), has(0), has(4)};
    struct copies_verdict v;
    bool lacks[3];
    copies_compare(&self, others, 3, &v, lacks);
    assert_true(v.found && v.self_lacks);
    assert_int_equal(v.best, 0);
    assert_int_equal(v.version.counter, 5);
    assert_int_equal(v.lacking, 2);
    assert_false(lacks[0]);
    assert_true(lacks[1] && lacks[2]);
}

static struct object_held ranked(uint64_t counter, uint64_t rank)
{
    struct object_held h = has(counter);
    h.rank = rank;
    return h;
}

static void test_of_one_version_the_greater_rank_stays(void **state)
{
    (void)state;
    const struct object_held self = ranked(5, 7);
    struct object_held others[] = {ranked(5, 9), ranked(4, 20), ranked(5, 0), ranked(5, 30)};
    struct copies_verdict v;
    bool lacks[4];
    others[3].damaged = true;
    copies_compare(&self, others, 4, &v, lacks);
    assert_true(v.self_lacks && !v.damaged);
    assert_int_equal(v.best, 0);
    assert_int_equal(v.rank, 9);
    assert_true(!lacks[0] && lacks[1] && lacks[3]);
    assert_false(lacks[2]); /* it does not say */
}

static struct object_held containing(uint64_t rank, uint64_t size, enum checksum_type type)
{
    struct object_held h = ranked(5, rank);
    h.size = size;
    h.checksum = (struct checksum_value){.type = type, .bytes = {1}};
    return h;
}

/* More metadata beside other bytes, whose checksum nobody can verify. */
static void test_rank_does_not_decide_between_two_contents(void **state)
{
    (void)state;
    const struct object_held self = containing(9, 0, CHECKSUM_NONE);
    const struct object_held others[] = {containing(7, 100, CHECKSUM_XXH3),
                                         containing(8, 100, CHECKSUM_XXH3),
                                         containing(9, 200, CHECKSUM_NONE)};
    struct copies_verdict v;
    bool lacks[3];
    copies_compare(&self, others, 3, &v, lacks);
    assert_true(v.self_lacks && lacks[0] && !lacks[1] && lacks[2]);
    assert_int_equal(v.best, 1);
    assert_true(copies_contradict(&self, &others[0]) && copies_contradict(&others[2], &self));
    assert_false(copies_contradict(&others[0], &others[1]));
}

/* Whoever compares decides alike. */
static void test_two_contents_have_one_order(void **state)
{
    (void)state;
    struct object_held of[] = {containing(9, 7, CHECKSUM_NONE), containing(9, 8, CHECKSUM_NONE),
                               containing(9, 7, CHECKSUM_XXH3), containing(8, 7, CHECKSUM_XXH3)};
    of[2].checksum.bytes[0] = 0;
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 4; k++) {
            struct copies_verdict v;
            bool lacks;
            copies_compare(&of[i], &of[k], 1, &v, &lacks);
            assert_int_equal(v.self_lacks, i < k);
            assert_int_equal(lacks, k < i);
        }
    }
}

static void test_what_self_has_is_taken_where_it_is_as_good(void **state)
{
    (void)state;
    const struct object_held self = has(5), others[] = {has(5), has(4)};
    struct copies_verdict v;
    bool lacks[2];
    copies_compare(&self, others, 2, &v, lacks);
    assert_int_equal(v.best, COPIES_SELF);
    assert_false(v.self_lacks || lacks[0]);
    assert_true(lacks[1]);
}

static struct object_held damaged(uint64_t counter)
{
    struct object_held held = has(counter);
    held.damaged = true;
    return held;
}

static void test_a_damaged_copy_is_less_than_a_whole_one(void **state)
{
    (void)state;
    const struct object_held self = damaged(5), others[] = {damaged(5), has(5), has(4)};
    struct copies_verdict v;
    bool lacks[3];
    copies_compare(&self, others, 3, &v, lacks);
    assert_true(v.found && v.self_lacks && !v.damaged);
    assert_int_equal(v.best, 1);
    assert_true(lacks[0] && lacks[2]);
    assert_false(lacks[1]);
}

/* What was overwritten does not come back for that. */
static void test_a_damaged_copy_is_more_than_an_older_one(void **state)
{
    (void)state;
    const struct object_held self = has(4), others[] = {damaged(5), has(4)};
    struct copies_verdict v;
    bool lacks[2];
    copies_compare(&self, others, 2, &v, lacks);
    assert_true(v.found && v.damaged && v.self_lacks);
    assert_int_equal(v.version.counter, 5);
    assert_int_equal(v.best, 0);
}

/* Of an owner, for who asks whether its own copy is needed there. */
static void test_what_stays_is_had(void **state)
{
    (void)state;
    struct object_held wanted = has(2), held = has(2);
    wanted.size = held.size = 5;
    wanted.rank = 7;
    held.rank = 7;
    assert_true(copies_has(&held, &wanted));
    held.rank = 9; /* a former owner asks, with less rank: nobody would send it */
    assert_true(copies_has(&held, &wanted));
    held.rank = 5;
    assert_false(copies_has(&held, &wanted));
    held.rank = 5;
    held.size = 6; /* another content, which stays, whatever the ranks */
    assert_true(copies_has(&held, &wanted));
    held.rank = 9;
    held.size = 4;
    assert_false(copies_has(&held, &wanted));
    held.damaged = true;
    held.size = 6;
    assert_false(copies_has(&held, &wanted));
    held = has(1);
    assert_false(copies_has(&held, &wanted));
    held = has(0);
    assert_false(copies_has(&held, &wanted));
    held = has(3);
    assert_true(copies_has(&held, &wanted));
}

static void test_a_name_that_nobody_has(void **state)
{
    (void)state;
    const struct object_held self = has(0), others[] = {has(0)};
    struct copies_verdict v;
    bool lacks[1];
    copies_compare(&self, others, 1, &v, lacks);
    assert_false(v.found || v.self_lacks || lacks[0]);
    assert_int_equal(v.lacking, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_combination_of_fates),
        cmocka_unit_test(test_who_is_passed_over_is_missing_from_a_majority),
        cmocka_unit_test(test_a_failure_is_certain_only_where_nobody_may_have_it),
        cmocka_unit_test(test_the_greatest_wins_and_who_lacks_it_is_named),
        cmocka_unit_test(test_of_one_version_the_greater_rank_stays),
        cmocka_unit_test(test_rank_does_not_decide_between_two_contents),
        cmocka_unit_test(test_two_contents_have_one_order),
        cmocka_unit_test(test_what_self_has_is_taken_where_it_is_as_good),
        cmocka_unit_test(test_a_damaged_copy_is_less_than_a_whole_one),
        cmocka_unit_test(test_a_damaged_copy_is_more_than_an_older_one),
        cmocka_unit_test(test_what_stays_is_had),
        cmocka_unit_test(test_a_name_that_nobody_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
