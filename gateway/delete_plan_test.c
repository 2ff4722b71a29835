#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>

#include "gateway/delete_plan.h"

enum { KEYS = 100 };

/* Key i is of target "t<i % targets>". */
static struct delete_plan *plan_of(struct arena *arena, size_t targets)
{
    struct delete_plan *p = delete_plan_new(arena, KEYS);
    for (size_t i = 0; i < KEYS; i++) {
        char id[24];
        snprintf(id, sizeof id, "t%zu", i % targets);
        delete_plan_add(p, i, id);
    }
    return p;
}

static void test_all_keys_have_one_turn(void **state)
{
    (void)state;
    for (size_t targets = 1; targets < 40; targets++) {
        _cleanup_arena_ struct arena *arena = arena_new(4096);
        struct delete_plan *p = plan_of(arena, targets);
        bool done[KEYS] = {false};
        size_t running[DELETE_AT_ONCE], n = 0, key;
        while (!delete_plan_is_over(p)) {
            while (delete_plan_next(p, &key)) {
                assert_false(done[key]);
                done[key] = true;
                assert_in_range(n, 0, DELETE_AT_ONCE - 1);
                running[n++] = key;
            }
            delete_plan_ended(p, running[--n]);
        }
        for (size_t i = 0; i < KEYS; i++)
            assert_true(done[i]);
    }
}

static void test_a_target_that_hangs_holds_up_its_own_keys_alone(void **state)
{
    (void)state;
    _cleanup_arena_ struct arena *arena = arena_new(4096);
    struct delete_plan *p = plan_of(arena, 2);
    size_t key, hung = 0, others = 0, ending[DELETE_AT_ONCE], n;
    do {
        for (n = 0; delete_plan_next(p, &key);) {
            if (key % 2 == 0)
                hung++;
            else
                ending[n++] = key;
        }
        for (size_t i = 0; i < n; i++, others++)
            delete_plan_ended(p, ending[i]);
        if (others < KEYS / 2)
            assert_in_range(hung, 1, DELETE_AT_ONCE / 2);
    } while (n > 0);
    assert_int_equal(others, KEYS / 2);
    assert_int_equal(hung, DELETE_AT_ONCE);
    assert_false(delete_plan_is_over(p));
}

static void test_silent_is_who_was_noted(void **state)
{
    (void)state;
    _cleanup_arena_ struct arena *arena = arena_new(4096);
    struct delete_plan *p = plan_of(arena, 2);
    delete_plan_note_silent(p, "t1");
    delete_plan_note_silent(p, "new");
    assert_true(delete_plan_is_silent(p, "t1"));
    assert_true(delete_plan_is_silent(p, "new"));
    assert_false(delete_plan_is_silent(p, "t0"));
    assert_false(delete_plan_is_silent(p, "unknown"));
}

static void test_without_keys_it_is_over(void **state)
{
    (void)state;
    _cleanup_arena_ struct arena *arena = arena_new(4096);
    struct delete_plan *p = delete_plan_new(arena, 0);
    size_t key;
    assert_true(delete_plan_is_over(p));
    assert_false(delete_plan_next(p, &key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_keys_have_one_turn),
        cmocka_unit_test(test_a_target_that_hangs_holds_up_its_own_keys_alone),
        cmocka_unit_test(test_silent_is_who_was_noted),
        cmocka_unit_test(test_without_keys_it_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
