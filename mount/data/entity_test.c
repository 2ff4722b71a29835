#include "mount/data/entity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <xxhash.h>

#include "common/mem.h"

enum { PARTS = 4, SIZE = 3 * ENTITY_BLOCK + 77 };

static char bytes[SIZE];

/* With the sums of `bytes`. */
static struct entity *block(void)
{
    uint64_t sums[PARTS];
    struct entity *e = entity_new("v/b/00/1_0", "", "", SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 7 + i / 1000);
    for (size_t i = 0; i < PARTS; i++) {
        const size_t at = i * ENTITY_BLOCK;
        sums[i] = XXH3_64bits(bytes + at, SIZE - at < ENTITY_BLOCK ? SIZE - at : ENTITY_BLOCK);
    }
    entity_set_sums(e, sums);
    return e;
}

static bool is_right(const struct entity *e, uint64_t from, uint64_t to, uint64_t damaged)
{
    bytes[damaged] ^= 1;
    bool is = entity_compare(e, from, bytes + from, to - from);
    bytes[damaged] ^= 1;
    return is;
}

static void each_whole_part_of_a_range_is_compared(void **unused)
{
    (void)unused;
    static const uint64_t places[] = {
        0, 1, ENTITY_BLOCK - 1, ENTITY_BLOCK, 2 * ENTITY_BLOCK - 1, 3 * ENTITY_BLOCK, SIZE - 1};
    enum { PLACES = sizeof places / sizeof *places };
    struct entity *e = block();
    for (size_t i = 0; i < PLACES; i++) {
        const uint64_t at = places[i], part = at / ENTITY_BLOCK * ENTITY_BLOCK;
        const uint64_t end = part + ENTITY_BLOCK < SIZE ? part + ENTITY_BLOCK : SIZE;
        assert_false(is_right(e, 0, SIZE, at));
        assert_false(is_right(e, part, end, at));
        assert_true(is_right(e, part + 1, end, at)); /* no part is whole */
        assert_true(entity_compare(e, part, bytes + part, end - part));
    }
    assert_true(entity_compare(e, 5, bytes + 5, 0));
    assert_true(entity_compare(e, 5, bytes + 5, SIZE - 5));
    assert_true(entity_compare(e, SIZE, bytes + SIZE, 0));
    entity_unref(e);
}

static void the_text_of_sums_names_the_bytes(void **unused)
{
    (void)unused;
    struct entity *e = block(), *other = block();
    _cleanup_free_ char *text = entity_sums_text(e);
    other->sums[2] ^= 1;
    _cleanup_free_ char *differs = entity_sums_text(other);
    assert_string_not_equal(text, differs);
    assert_string_equal(entity_version("", text), text);
    assert_string_equal(entity_version("\"1\"", "xxh3:00"), "\"1\"");
    assert_null(entity_version("W/\"1\"", "xxh3:00"));
    assert_null(entity_version("", ""));
    entity_unref(e);
    entity_unref(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_whole_part_of_a_range_is_compared),
        cmocka_unit_test(the_text_of_sums_names_the_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
