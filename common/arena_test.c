#include "common/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "common/rng.h"

static void allocations_are_aligned_zeroed_and_apart(void **state)
{
    (void)state;
    struct arena *a = arena_new(100);
    unsigned char *parts[500];
    size_t sizes[500];
    struct rng r;
    rng_seed(&r, 3);
    for (int i = 0; i < 500; i++) {
        sizes[i] = rng_below(&r, 300);
        parts[i] = arena_alloc(a, sizes[i]);
        assert_int_equal((uintptr_t)parts[i] % 16, 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(parts[i][k], 0);
        memset(parts[i], i + 1, sizes[i]);
        *(char *)arena_bytes(a, 1) = 'x'; /* puts the next one out of step */
    }
    for (int i = 0; i < 500; i++) {
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(parts[i][k], (unsigned char)(i + 1));
    }
    arena_free(a);
}

static void texts(void **state)
{
    (void)state;
    struct arena *a = arena_new(1);
    char *one = arena_strdup(a, "one");
    char *two = arena_strndup(a, "twofold", 3);
    char *three = arena_printf(a, "%s-%05d", "three", 3);
    char *none = arena_printf(a, "%s", "");
    assert_string_equal(one, "one");
    assert_string_equal(two, "two");
    assert_string_equal(three, "three-00003");
    assert_string_equal(none, "");
    arena_free(a);
}

/* Where a block has just room for a text, or a byte too little, or none.  Each text is another one:
 * memory that is used again must not make up for one that is missing. */
static void texts_at_the_end_of_a_block(void **state)
{
    (void)state;
    enum { BLOCK = 64, TEXT = sizeof "abcde-0" };
    for (size_t left = 0; left <= TEXT + 1; left++) {
        char want[TEXT];
        snprintf(want, sizeof want, "abcde-%c", (char)('0' + left));
        struct arena *a = arena_new(BLOCK);
        char *filled = arena_bytes(a, BLOCK - left);
        memset(filled, 'x', BLOCK - left);
        const char *text = arena_printf(a, "%s-%zu", "abcde", left);
        assert_string_equal(arena_printf(a, "%d", 12), "12");
        assert_string_equal(text, want);
        for (size_t i = 0; i < BLOCK - left; i++)
            assert_int_equal(filled[i], 'x');
        assert_int_equal(text == filled + BLOCK - left, left >= TEXT);
        arena_free(a);
    }
}

static void big_allocations_fit(void **state)
{
    (void)state;
    struct arena *a = arena_new(64);
    char *small = arena_alloc(a, 10);
    char *big = arena_alloc(a, 5 << 20);
    small[9] = 1;
    big[(5 << 20) - 1] = 1;
    assert_true(arena_used(a) >= 5 << 20);
    arena_free(a);
}

static void blocks_double_up_to_a_mebibyte(void **state)
{
    (void)state;
    struct arena *a = arena_new(1024);
    size_t before = arena_used(a);
    size_t greatest = 0;
    for (int i = 0; i < 8 << 20; i += 1000) {
        arena_bytes(a, 1000);
        size_t grown = arena_used(a) - before;
        greatest = grown > greatest ? grown : greatest;
        before = arena_used(a);
    }
    assert_in_range(greatest, 1 << 20, (1 << 20) + 64);
    assert_true(arena_used(a) < 11 << 20);
    arena_free(a);
}

static void reset_keeps_the_first_block(void **state)
{
    (void)state;
    struct arena *a = arena_new(4096);
    size_t first = arena_used(a);
    char *before = arena_strdup(a, "x");
    for (int i = 0; i < 100; i++)
        arena_alloc(a, 1000);
    assert_true(arena_used(a) > first);
    arena_reset(a);
    assert_int_equal(arena_used(a), first);
    assert_ptr_equal(arena_strdup(a, "y"), before);
    char *zeroed = arena_alloc(a, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(zeroed[i], 0);
    arena_free(a);
}

static void freeing_nothing_is_fine(void **state)
{
    (void)state;
    arena_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_aligned_zeroed_and_apart),
        cmocka_unit_test(texts),
        cmocka_unit_test(texts_at_the_end_of_a_block),
        cmocka_unit_test(big_allocations_fit),
        cmocka_unit_test(blocks_double_up_to_a_mebibyte),
        cmocka_unit_test(reset_keeps_the_first_block),
        cmocka_unit_test(freeing_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
