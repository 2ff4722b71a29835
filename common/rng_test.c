#include "common/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

/* The published reference code (prng.di.unimi.it), from the state 1, 2, 3, 4. */
static void the_generator_is_xoshiro256starstar(void **state)
{
    (void)state;
    static const uint64_t want[] = {
        11520ull,
        0ull,
        1509978240ull,
        1215971899390074240ull,
        1216172134540287360ull,
        607988272756665600ull,
        16172922978634559625ull,
        8476171486693032832ull,
        10595114339597558777ull,
        2904607092377533576ull,
    };
    struct rng r = {{1, 2, 3, 4}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        assert_true(rng_next(&r) == want[i]);
}

/* The first outputs of splitmix64 from 0 are known. */
static void seeding_is_splitmix64(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 0);
    assert_true(r.s[0] == 0xe220a8397b1dcdaf);
    assert_true(r.s[1] == 0x6e789e6aa1b965f4);
    assert_true(r.s[2] == 0x06c45d188009454f);
    assert_true(r.s[3] == 0xf88bb8a8724c81ec);
}

static void a_seed_repeats_and_another_differs(void **state)
{
    (void)state;
    struct rng a;
    struct rng b;
    struct rng c;
    rng_seed(&a, 42);
    rng_seed(&b, 42);
    rng_seed(&c, 43);
    int same = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t x = rng_next(&a);
        assert_true(x == rng_next(&b));
        same += x == rng_next(&c);
    }
    assert_int_equal(same, 0);
}

static void below_is_below_and_reaches_every_value(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 7);
    assert_int_equal(rng_below(&r, 1), 0);
    int seen[7] = {0};
    for (int i = 0; i < 70000; i++)
        seen[rng_below(&r, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 9500, 10500); /* 10000, more than five sigma of 93 */
    /* A bound of two thirds of the range: a plain remainder or product would favour one half. */
    const uint64_t bound = UINT64_MAX / 3 * 2;
    int low = 0;
    for (int i = 0; i < 60000; i++) {
        uint64_t x = rng_below(&r, bound);
        assert_true(x < bound);
        low += x < bound / 2;
    }
    assert_in_range(low, 29300, 30700);
}

static void ids_have_their_form_and_do_not_repeat(void **state)
{
    (void)state;
    enum { IDS = 500 };
    static char ids[IDS][15];
    for (int i = 0; i < IDS; i++) {
        random_id("srt-", ids[i]);
        assert_int_equal(strlen(ids[i]), 14);
        assert_memory_equal(ids[i], "srt-", 4);
        assert_int_equal(strspn(ids[i] + 4, "0123456789abcdefghijklmnopqrstuvwxyz"), 10);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(ids[i], ids[k]);
    }
}

static void random_bytes_fill_exactly(void **state)
{
    (void)state;
    unsigned char bytes[2000] = {0};
    random_bytes(bytes + 1, sizeof bytes - 2);
    assert_int_equal(bytes[0], 0);
    assert_int_equal(bytes[sizeof bytes - 1], 0);
    int zeros = 0;
    for (size_t i = 1; i < sizeof bytes - 1; i++)
        zeros += bytes[i] == 0;
    assert_in_range(zeros, 0, 40); /* 8 are expected */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_is_xoshiro256starstar),
        cmocka_unit_test(seeding_is_splitmix64),
        cmocka_unit_test(a_seed_repeats_and_another_differs),
        cmocka_unit_test(below_is_below_and_reaches_every_value),
        cmocka_unit_test(ids_have_their_form_and_do_not_repeat),
        cmocka_unit_test(random_bytes_fill_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
