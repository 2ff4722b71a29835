/* Which blocks of a stripe are read: by rows, and over all patterns of damage of small codes. */
#include "ec/choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ec/mask.h"

/* Of 4 + 2. */
static void test_what_is_read_next(void **state)
{
    (void)state;
    static const struct {
        ec_mask have, doubted, want, tried, good, next;
    } rows[] = {
        /* What is wanted, and no more. */
        {0x3f, 0, 0x0f, 0, 0, 0x0f},
        {0x3f, 0, 0x04, 0, 0, 0x04},
        {0x3f, 0, 0x04, 0x04, 0x04, 0},
        {0x3f, 0, 0, 0, 0, 0},
        /* One is bad here, or not there: others. */
        {0x3f, 0, 0x04, 0x04, 0, 0x1b},
        {0x3b, 0, 0x04, 0, 0, 0x1b},
        {0x3f, 0, 0x0f, 0x0f, 0x0b, 0x10},
        {0x3f, 0, 0x0f, 0x1f, 0x0b, 0x20},
        {0x3f, 0, 0x0f, 0x3f, 0x0b, 0},
        {0x3b, 0, 0x0f, 0, 0, 0x0b},
        {0x3f, 0, 0x0f, 0x1f, 0x1b, 0}, /* k: it can be computed */
        /* What is doubted is left alone while there are k others … */
        {0x3f, 0x04, 0x0f, 0, 0, 0x0b},
        {0x3f, 0x04, 0x0f, 0x0b, 0x0b, 0x10},
        {0x3f, 0x04, 0x04, 0, 0, 0x1b},
        {0x3f, 0x04, 0x03, 0, 0, 0x03},
        {0x3f, 0x04, 0x0f, 0x1b, 0x13, 0x20},
        /* … and comes last where there are not: as many as are needed. */
        {0x3f, 0x0c, 0x03, 0x03, 0x01, 0x34},
        {0x3f, 0x14, 0x02, 0x02, 0, 0x2d},
        {0x1f, 0x10, 0x0f, 0x0f, 0x07, 0x10},
        {0x3f, 0x3f, 0x04, 0, 0, 0x04},
        {0x3f, 0x3f, 0x04, 0x04, 0, 0x1b},
        {0x3f, 0x07, 0x0f, 0, 0, 0x0f}, /* not k without them: what is wanted itself */
        /* Fewer than k can be had. */
        {0x07, 0, 0x08, 0, 0, 0},
        {0x0f, 0, 0x0f, 0x0f, 0x0e, 0},
        {0, 0, 0x01, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct ec_choice c = {
            .k = 4, .have = rows[i].have, .doubted = rows[i].doubted, .want = rows[i].want};
        assert_int_equal(ec_choice_next(&c, rows[i].tried, rows[i].good), rows[i].next);
    }
}

/* Reads until nothing is left to be read; what was. */
static ec_mask play(const struct ec_choice *c, ec_mask bad, ec_mask *good)
{
    ec_mask tried = 0, next;
    *good = 0;
    while ((next = ec_choice_next(c, tried, *good)) != 0) {
        assert_int_equal(next & (tried | ~c->have), 0);
        tried |= next;
        *good |= next & ~bad;
    }
    return tried;
}

static bool is_enough(const struct ec_choice *c, ec_mask good)
{
    return (c->want & ~good) == 0 || ec_mask_count(good) >= c->k;
}

static void check_pattern(const struct ec_choice *c, ec_mask bad)
{
    ec_mask good, tried = play(c, bad, &good);
    const ec_mask all = c->have & ~bad;
    assert_int_equal(is_enough(c, good), is_enough(c, all));
    /* Nobody doubted is asked where the others are enough; k blocks at the most, or what is wanted.
     */
    if (bad == 0 && ec_mask_count(c->have & ~c->doubted) >= c->k) {
        assert_int_equal(tried & c->doubted, 0);
        assert_true((tried & ~c->want) == 0 || ec_mask_count(tried) <= c->k);
    }
}

static void test_all_patterns(void **state)
{
    (void)state;
    static const struct {
        unsigned k, slices;
    } codes[] = {{1, 2}, {2, 3}, {3, 5}, {4, 6}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        const ec_mask end = UINT64_C(1) << codes[i].slices;
        for (ec_mask have = 0; have < end; have++) {
            for (ec_mask doubted = 0; doubted < end; doubted++) {
                for (ec_mask want = 0; want < end; want++) {
                    const struct ec_choice c = {codes[i].k, have, doubted, want};
                    for (ec_mask bad = 0; bad < end; bad++)
                        check_pattern(&c, bad);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read_next),
        cmocka_unit_test(test_all_patterns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
