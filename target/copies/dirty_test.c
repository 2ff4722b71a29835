#include "target/copies/dirty.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct version counted(uint64_t counter)
{
    return (struct version){.term = 1, .map = 1, .counter = counter};
}

static void mark(struct dirty *u, const char *name, uint64_t counter, uint64_t now_ms)
{
    struct version v = counted(counter);
    dirty_mark(u, 7, name, &v, now_ms);
}

static void settle(struct dirty *u, const char *name, uint64_t counter)
{
    struct version v = counted(counter);
    dirty_clear(u, 7, name, &v);
}

static void test_a_mark_goes_with_its_version_or_a_greater_one(void **state)
{
    (void)state;
    _cleanup_(dirty_freep)
    struct dirty *u = dirty_new();
    assert_false(dirty_has(u, 7, "a"));
    mark(u, "a", 3, 10);
    mark(u, "a", 5, 20);
    mark(u, "a", 4, 30);
    assert_true(dirty_has(u, 7, "a"));
    assert_false(dirty_has(u, 8, "a"));
    assert_int_equal(dirty_count(u), 1);
    settle(u, "a", 4);
    assert_true(dirty_has(u, 7, "a"));
    struct version upto;
    assert_true(dirty_upto(u, 7, "a", &upto));
    assert_int_equal(upto.counter, 5);
    settle(u, "a", 5);
    assert_false(dirty_has(u, 7, "a"));
    assert_false(dirty_upto(u, 7, "a", &upto));
    assert_int_equal(upto.counter, 0);
    assert_int_equal(dirty_count(u), 0);
}

static void test_what_is_due_comes_once_and_again_later(void **state)
{
    (void)state;
    _cleanup_(dirty_freep)
    struct dirty *u = dirty_new();
    struct dirty_name due[4];
    mark(u, "old", 1, 10);
    mark(u, "new", 2, 1000);
    assert_int_equal(dirty_due(u, 500, 1500, due, 4), 1);
    assert_string_equal(due[0].name, "old");
    assert_int_equal(due[0].version.counter, 1);
    free(due[0].name);
    assert_int_equal(dirty_due(u, 999, 1500, due, 4), 0);
    assert_int_equal(dirty_due(u, 1600, 2600, due, 4), 2);
    free(due[0].name);
    free(due[1].name);
}

static void test_no_more_than_asked_for_and_each_in_its_turn(void **state)
{
    (void)state;
    enum { NAMES = 100, AT_ONCE = 7 };
    _cleanup_(dirty_freep)
    struct dirty *u = dirty_new();
    char name[16];
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "n%d", i);
        mark(u, name, 1, 10);
    }
    struct dirty_name due[AT_ONCE];
    size_t seen = 0, count;
    while ((count = dirty_due(u, 10, 20, due, AT_ONCE)) > 0) {
        assert_true(count <= AT_ONCE);
        for (size_t i = 0; i < count; i++)
            free(due[i].name);
        seen += count;
    }
    assert_int_equal(seen, NAMES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_mark_goes_with_its_version_or_a_greater_one),
        cmocka_unit_test(test_what_is_due_comes_once_and_again_later),
        cmocka_unit_test(test_no_more_than_asked_for_and_each_in_its_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
