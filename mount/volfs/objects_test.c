#include "mount/volfs/objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/mem.h"

enum { BLOCK = 4 << 20 };

static const uint64_t sums[BLOCK / SLICE_SUM_BYTES];

static struct entity *entity(struct objects *o, uint64_t slice)
{
    const struct volume_format format = {.name = "v", .block_bytes = BLOCK};
    const struct slice_entry e = {
        .size = BLOCK, .slice = slice, .sums = sums, .sums_count = sizeof sums / sizeof *sums};
    struct entity *got = objects_entity(o, &format, &e, 0);
    assert_non_null(got);
    return got;
}

/* A file is written as slices of one block, whose numbers follow one another. */
static void what_was_read_lately_is_known(void **state)
{
    enum { SLICES = 512 };
    struct entity *first[SLICES];
    struct objects *o = xmalloc(sizeof *o);
    (void)state;
    objects_init(o);
    for (unsigned i = 0; i < SLICES; i++)
        first[i] = entity(o, i + 1);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < SLICES; i++) {
            struct entity *again = entity(o, i + 1);
            assert_ptr_equal(again, first[i]);
            entity_unref(again);
        }
    }
    for (unsigned i = 0; i < SLICES; i++)
        entity_unref(first[i]);
    objects_done(o);
    free(o);
}

static void what_was_used_last_stays_longest(void **state)
{
    struct objects *o = xmalloc(sizeof *o);
    (void)state;
    objects_init(o);
    struct entity *kept = entity(o, 7);
    for (uint64_t slice = 1000; slice < 100000; slice++) {
        entity_unref(entity(o, slice));
        struct entity *again = entity(o, 7);
        assert_ptr_equal(again, kept);
        entity_unref(again);
    }
    entity_unref(kept);
    objects_done(o);
    free(o);
}

static void names_lead_to_blocks_and_back(void **state)
{
    uint64_t slice, block, bytes;
    (void)state;
    _cleanup_free_ char *key = objects_key("v", 0x1ab, 3, 4096);
    assert_string_equal(key, "v/b/ab/00000000000001ab_3_4096");
    assert_true(objects_parse("v", key, &slice, &block, &bytes));
    assert_true(slice == 0x1ab && block == 3 && bytes == 4096);
    assert_false(objects_parse("w", key, &slice, &block, &bytes));
    assert_false(objects_parse("v", "v/b/ac/00000000000001ab_3_4096", &slice, &block, &bytes));
    assert_false(objects_parse("v", "v/b/ab/00000000000001ab_3_04096", &slice, &block, &bytes));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_read_lately_is_known),
        cmocka_unit_test(what_was_used_last_stays_longest),
        cmocka_unit_test(names_lead_to_blocks_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
