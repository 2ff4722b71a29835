#include "sort/rows/arrangement.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/mem.h"

#define MAX 64

/* The paper's pseudo-code (section 3.1), with the unpaired last one that it forgets, on lists: what
 * the arithmetic must come to.  tables[t] is the set of targets whose rows t holds. */
static void merge_by_the_paper(const struct arrangement *a, uint64_t *tables)
{
    unsigned list[MAX];
    unsigned count = a->count;
    memcpy(list, a->order, count * sizeof *list);
    for (unsigned t = 0; t < count; t++)
        tables[t] = UINT64_C(1) << t;
    unsigned round = 0;
    for (; count > 1; round++) {
        unsigned kept = 0;
        for (unsigned i = 0; i < count; i++) {
            struct arrangement_step step = arrangement_step(a, list[i], round);
            bool odd = i % 2 == 0; /* counting from one */
            if (odd && i + 1 < count) {
                assert_int_equal(step.move, ARRANGEMENT_SEND);
                assert_int_equal(step.peer, list[i + 1]);
                tables[list[i + 1]] |= tables[list[i]];
                tables[list[i]] = 0;
                continue;
            }
            assert_int_equal(step.move, odd ? ARRANGEMENT_PASS : ARRANGEMENT_RECEIVE);
            if (!odd)
                assert_int_equal(step.peer, list[i - 1]);
            list[kept++] = list[i];
        }
        count = kept;
    }
    assert_int_equal(round, a->rounds);
    assert_int_equal(list[0], arrangement_last(a));
}

static void test_every_table_reaches_the_last(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= MAX; n++) {
        unsigned log2 = 0;
        while ((1U << log2) < n)
            log2++;
        for (uint64_t salt = 0; salt < 20; salt++) {
            struct arrangement *a = arrangement_new(n, NULL, salt);
            assert_int_equal(a->rounds, log2);
            uint64_t tables[MAX];
            merge_by_the_paper(a, tables);
            uint64_t all = n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
            assert_int_equal(tables[arrangement_last(a)], all);
            arrangement_free(a);
        }
    }
}

/* Once it has sent, a target has no part in any later round. */
static void test_senders_are_gone(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= MAX; n++) {
        struct arrangement *a = arrangement_new(n, NULL, 7);
        for (unsigned t = 0; t < n; t++) {
            bool gone = false;
            for (unsigned round = 0; round < a->rounds; round++) {
                enum arrangement_move move = arrangement_step(a, t, round).move;
                assert_int_equal(move == ARRANGEMENT_GONE, gone);
                gone |= move == ARRANGEMENT_SEND;
            }
            assert_int_equal(gone, t != arrangement_last(a));
        }
        arrangement_free(a);
    }
}

static void test_order_is_a_permutation_of_the_salt(void **state)
{
    (void)state;
    struct arrangement *a = arrangement_new(MAX, NULL, 1);
    struct arrangement *same = arrangement_new(MAX, NULL, 1);
    struct arrangement *other = arrangement_new(MAX, NULL, 2);
    bool seen[MAX] = {false};
    for (unsigned i = 0; i < MAX; i++) {
        assert_false(seen[a->order[i]]);
        seen[a->order[i]] = true;
        assert_int_equal(a->position[a->order[i]], i);
    }
    assert_memory_equal(a->order, same->order, MAX * sizeof *a->order);
    assert_memory_not_equal(a->order, other->order, MAX * sizeof *a->order);
    arrangement_free(a);
    arrangement_free(same);
    arrangement_free(other);
}

/* Over many salts everybody is the last one equally often, within five standard deviations. */
static void test_the_last_one_changes(void **state)
{
    (void)state;
    unsigned last[7] = {0};
    for (uint64_t salt = 0; salt < 7000; salt++) {
        struct arrangement *a = arrangement_new(7, NULL, salt * 0x9e3779b97f4a7c15U);
        last[arrangement_last(a)]++;
        arrangement_free(a);
    }
    for (unsigned t = 0; t < 7; t++)
        assert_in_range(last[t], 1000 - 147, 1000 + 147);
}

/* Of those that are left every table reaches the last one; the others are in no step. */
static void test_who_is_absent_is_left_out(void **state)
{
    (void)state;
    for (uint64_t mask = 0; mask < 127; mask++) {
        bool absent[7];
        for (unsigned t = 0; t < 7; t++)
            absent[t] = (mask >> t & 1) != 0;
        struct arrangement *a = arrangement_new(7, absent, mask);
        uint64_t tables[MAX];
        for (unsigned t = 0; t < 7; t++)
            tables[t] = UINT64_C(1) << t;
        for (unsigned round = 0; round < a->rounds; round++) {
            for (unsigned i = 0; i < a->count; i++) {
                struct arrangement_step step = arrangement_step(a, a->order[i], round);
                if (step.move == ARRANGEMENT_RECEIVE)
                    tables[a->order[i]] |= tables[step.peer];
            }
        }
        assert_int_equal(tables[arrangement_last(a)], 127 & ~mask);
        for (unsigned t = 0; t < 7; t++)
            assert_int_equal(arrangement_has(a, t), !absent[t]);
        assert_false(arrangement_has(a, 7));
        arrangement_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_table_reaches_the_last),
        cmocka_unit_test(test_senders_are_gone),
        cmocka_unit_test(test_order_is_a_permutation_of_the_salt),
        cmocka_unit_test(test_the_last_one_changes),
        cmocka_unit_test(test_who_is_absent_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
