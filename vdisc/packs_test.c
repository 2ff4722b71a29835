/* Packs: what is in one, and that packs elsewhere stay as they are. */
#include "vdisc/packs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/rng.h"

#define ITEMS 20000

static void fill(struct packs_item *items, size_t count, struct rng *r)
{
    for (size_t i = 0; i < count; i++) {
        items[i].size = rng_below(r, 40000);
        for (size_t k = 0; k < sizeof items[i].sha256; k++)
            items[i].sha256[k] = (uint8_t)rng_below(r, 256);
    }
}

static void test_contents_lie_side_by_side(void **state)
{
    (void)state;
    static struct packs_item items[ITEMS];
    struct rng r;
    rng_seed(&r, 1);
    fill(items, ITEMS, &r);
    uint32_t packs = packs_plan(items, ITEMS);
    assert_in_range(packs, ITEMS / PACKS_CUT / 2, ITEMS / PACKS_CUT * 2);
    assert_int_equal(items[ITEMS - 1].pack, packs - 1);
    for (size_t i = 1; i < ITEMS; i++) {
        const struct packs_item *a = &items[i - 1], *b = &items[i];
        if (a->pack == b->pack)
            assert_int_equal(b->offset, a->offset + packs_room(a->size));
        else
            assert_true(b->pack == a->pack + 1 && b->offset == 0);
        assert_true(b->offset + packs_room(b->size) <= PACKS_SIZE);
    }
}

static void test_a_full_pack_ends(void **state)
{
    (void)state;
    static struct packs_item items[200];
    for (size_t i = 0; i < 200; i++) {
        items[i].size = 1000000;
        memset(items[i].sha256, 1, 32);
    }
    assert_int_equal(packs_room(0), 2048);
    assert_int_equal(packs_room(2049), 4096);
    assert_int_equal(packs_plan(items, 200), 3);
    assert_int_equal(packs_plan(items, 0), 0);
}

/* Of the packs behind a change, those after the next cut are the same. */
static void test_a_change_is_local(void **state)
{
    (void)state;
    static struct packs_item before[ITEMS], after[ITEMS + 10];
    struct rng r;
    rng_seed(&r, 2);
    fill(before, ITEMS, &r);
    memcpy(after, before, 3000 * sizeof *before);
    fill(after + 3000, 10, &r);
    memcpy(after + 3010, before + 3000, (ITEMS - 3000) * sizeof *before);
    packs_plan(before, ITEMS);
    packs_plan(after, ITEMS + 10);
    size_t moved = 0;
    for (size_t i = 3000; i < ITEMS; i++)
        moved += before[i].offset != after[i + 10].offset;
    assert_in_range(moved, 1, 8 * PACKS_CUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contents_lie_side_by_side),
        cmocka_unit_test(test_a_full_pack_ends),
        cmocka_unit_test(test_a_change_is_local),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
