#include "mount/volume/slices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"
#include "mount/volume/testing/slice_model.h"

enum { CHUNK = 64 };

static struct slice_entry entry(uint32_t at, uint32_t length, uint64_t slice, uint32_t offset)
{
    return (struct slice_entry){
        .at = at, .length = length, .offset = offset, .size = offset + length, .slice = slice};
}

static void the_newest_entry_is_shown(void **state)
{
    (void)state;
    struct arena *arena = arena_new(4096);
    struct slice_entry entries[] = {entry(0, 12, 1, 0), entry(4, 4, 2, 100), entry(6, 2, 3, 0)};
    struct slice_list list = {entries, 3};
    struct extent *x;
    assert_int_equal(slices_resolve(&list, 0, 16, arena, &x), 5);
    assert_ptr_equal(x[0].entry, &entries[0]);
    assert_ptr_equal(x[1].entry, &entries[1]);
    assert_int_equal(x[1].offset, 100);
    assert_int_equal(x[1].length, 2);
    assert_ptr_equal(x[2].entry, &entries[2]);
    assert_ptr_equal(x[3].entry, &entries[0]);
    assert_int_equal(x[3].offset, 8);
    assert_null(x[4].entry);
    assert_int_equal(x[4].at, 12);
    assert_int_equal(x[4].length, 4);
    arena_free(arena);
}

static void nothing_is_zeros(void **state)
{
    (void)state;
    struct arena *arena = arena_new(4096);
    struct slice_list none = {0};
    struct extent *x;
    assert_int_equal(slices_resolve(&none, 5, 7, arena, &x), 1);
    assert_null(x[0].entry);
    assert_int_equal(x[0].length, 7);
    assert_int_equal(slices_resolve(&none, 5, 0, arena, &x), 0);
    arena_free(arena);
}

static void what_is_hidden_is_taken_out(void **state)
{
    (void)state;
    struct arena *arena = arena_new(4096);
    struct slice_entry entries[] = {
        entry(0, 8, 0, 0), /* zeros over nothing */
        entry(0, 4, 1, 0), /* hidden by 2 */
        entry(0, 8, 2, 0), /* cut by zeros */
        entry(4, 8, 0, 0),
    };
    struct slice_list list = {entries, 4};
    struct slice_list gone = slices_prune(&list, CHUNK, arena);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.entries[0].slice, 2);
    assert_int_equal(list.entries[1].slice, 0);
    assert_int_equal(gone.count, 2);
    assert_int_equal(gone.entries[1].slice, 1);
    arena_free(arena);
}

static void random_lists_show_what_an_array_shows(void **state)
{
    (void)state;
    struct rng r;
    struct arena *arena = arena_new(65536);
    rng_seed(&r, 1);
    for (unsigned round = 0; round < 5000; round++) {
        struct slice_entry entries[20];
        struct slice_list list = {entries, rng_below(&r, 20)};
        for (size_t i = 0; i < list.count; i++) {
            uint32_t at = (uint32_t)rng_below(&r, CHUNK);
            uint32_t length = 1 + (uint32_t)rng_below(&r, CHUNK - at);
            uint64_t slice = rng_below(&r, 5) == 0 ? 0 : i + 1;
            entries[i] = entry(at, length, slice, (uint32_t)rng_below(&r, 8));
        }
        uint32_t at = (uint32_t)rng_below(&r, CHUNK);
        slice_model_check(&list, at, (uint32_t)rng_below(&r, CHUNK - at + 1), CHUNK, arena);
        slice_model_check(&list, 0, CHUNK, CHUNK, arena);
        slice_model_check_prune(&list, CHUNK, arena);
        arena_reset(arena);
    }
    arena_free(arena);
}

static void a_list_is_read_back(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct arena *arena = arena_new(4096);
    _cleanup_buf_ struct buf bytes = BUF_INIT;
    const uint64_t sums[] = {1, UINT64_MAX};
    struct slice_entry entries[] = {entry(0, 12, 1, 0), entry(4, 60, UINT64_MAX, 3)};
    entries[1].sums = sums;
    entries[1].sums_count = 2;
    struct slice_list list = {entries, 2}, back;
    slices_encode(&list, &bytes);
    const uint8_t *data = (const uint8_t *)bytes.data;
    assert_int_equal(slices_decode(data, bytes.len, CHUNK, arena, &back, &err), 0);
    assert_int_equal(back.count, 2);
    assert_int_equal(back.entries[1].slice, UINT64_MAX);
    assert_int_equal(back.entries[1].offset, 3);
    assert_int_equal(back.entries[1].size, 63);
    assert_int_equal(back.entries[1].sums[1], UINT64_MAX);
    for (size_t cut = 1; cut < bytes.len; cut++) {
        bool between = cut == 28;
        int rc = slices_decode(data, cut, CHUNK, arena, &back, &err);
        assert_int_equal(rc, between ? 0 : E_CORRUPT);
    }
    assert_int_equal(slices_decode(data, bytes.len, CHUNK - 1, arena, &back, &err), E_CORRUPT);
    assert_int_equal(slices_decode(data, 0, CHUNK, arena, &back, &err), 0);
    arena_free(arena);
}

static void messy_blocks_are_planned(void **state)
{
    (void)state;
    struct arena *arena = arena_new(4096);
    struct slice_range *r;
    struct slice_entry entries[] = {
        entry(0, 16, 1, 0),  entry(16, 16, 2, 0), entry(32, 16, 3, 0),
        entry(48, 16, 4, 0), entry(20, 4, 5, 0), /* the second block has three extents */
        entry(32, 9, 0, 0),                      /* the third one shows 7 of 16 bytes */
    };
    struct slice_list list = {entries, 4};
    assert_false(slices_is_messy(&list, 4, arena));
    assert_true(slices_is_messy(&list, 3, arena));
    assert_int_equal(slices_plan(&list, 16, arena, &r), 0);
    list.count = 6;
    assert_false(slices_is_messy(&list, 6, arena));
    assert_int_equal(slices_plan(&list, 16, arena, &r), 2);
    assert_true(r[0].at == 16 && r[0].length == 16);
    assert_true(r[1].at == 41 && r[1].length == 7);
    struct slice_entry hidden[] = {entry(0, 16, 1, 0), entry(0, 10, 0, 0)};
    list = (struct slice_list){hidden, 2};
    assert_true(slices_is_messy(&list, 16, arena)); /* 6 of 16 bytes are shown */
    assert_int_equal(slices_plan(&list, 16, arena, &r), 1);
    assert_true(r[0].at == 10 && r[0].length == 6);
    assert_false(slices_is_messy(&(struct slice_list){0}, 16, arena));
    arena_free(arena);
}

/* After its plan a list needs no other one. */
static void a_list_needs_one_plan(void **state)
{
    enum { BLOCK = 16, MOST = 12 };
    struct rng rng;
    (void)state;
    rng_seed(&rng, 11);
    for (unsigned run = 0; run < 2000; run++) {
        struct arena *arena = arena_new(4096);
        struct slice_entry entries[MOST + CHUNK / BLOCK];
        struct slice_list list = {entries, 1 + rng_below(&rng, MOST)};
        struct slice_range *r;
        for (size_t i = 0; i < list.count; i++) { /* within a block, as a mount writes them */
            uint32_t in = (uint32_t)rng_below(&rng, BLOCK);
            uint32_t at = (uint32_t)(BLOCK * rng_below(&rng, CHUNK / BLOCK)) + in;
            uint64_t slice = rng_below(&rng, 5) == 0 ? 0 : 100 + i;
            entries[i] = entry(at, 1 + (uint32_t)rng_below(&rng, BLOCK - in), slice, 0);
        }
        size_t count = slices_plan(&list, BLOCK, arena, &r);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(r[i].at / BLOCK, (r[i].at + r[i].length - 1) / BLOCK);
            entries[list.count++] = entry(r[i].at, r[i].length, 1000 + i, 0);
        }
        slices_prune(&list, CHUNK, arena);
        assert_int_equal(slices_plan(&list, BLOCK, arena, &r), 0);
        assert_false(slices_is_messy(&list, MOST + CHUNK / BLOCK, arena)); /* zeros stay */
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_entry_is_shown),
        cmocka_unit_test(nothing_is_zeros),
        cmocka_unit_test(what_is_hidden_is_taken_out),
        cmocka_unit_test(random_lists_show_what_an_array_shows),
        cmocka_unit_test(a_list_is_read_back),
        cmocka_unit_test(messy_blocks_are_planned),
        cmocka_unit_test(a_list_needs_one_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
