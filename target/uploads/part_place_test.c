#include "target/uploads/part_place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "target/uploads/part_log.h"

enum { MIB = 1 << 20 };

static void the_first_large_part_fixes_the_unit(void **unused)
{
    (void)unused;
    uint64_t unit = 0;
    assert_false(part_place_choose(&unit, false, 9, PART_SIZE_MIN - 1).in_body);
    assert_int_equal(unit, 0);
    struct part_place place = part_place_choose(&unit, false, 3, PART_SIZE_MIN);
    assert_true(place.in_body && place.offset == 2 * PART_SIZE_MIN);
    assert_int_equal(unit, PART_SIZE_MIN);
}

static void later_parts_lie_by_their_number(void **unused)
{
    (void)unused;
    uint64_t unit = 8 * MIB;
    struct part_place place = part_place_choose(&unit, false, 1, unit);
    assert_true(place.in_body && place.offset == 0);
    place = part_place_choose(&unit, false, 10, 0);
    assert_true(place.in_body && place.offset == 9 * unit);
    assert_false(part_place_choose(&unit, false, 2, unit + 1).in_body);
    assert_int_equal(unit, 8 * MIB);
}

static void a_part_sent_again_never_lies_in_the_body(void **unused)
{
    (void)unused;
    uint64_t unit = 8 * MIB, none = 0;
    assert_false(part_place_choose(&unit, true, 1, MIB).in_body);
    assert_false(part_place_choose(&none, true, 1, 8 * MIB).in_body);
    assert_int_equal(none, 0);
}

static void a_place_that_no_file_may_have_is_none(void **unused)
{
    (void)unused;
    uint64_t unit = PART_SIZE_MAX;
    unsigned last = (unsigned)(PART_PLACE_MAX / PART_SIZE_MAX);
    struct part_place place = part_place_choose(&unit, false, last, PART_SIZE_MAX);
    assert_true(place.in_body && place.offset + PART_SIZE_MAX <= PART_PLACE_MAX);
    assert_false(part_place_choose(&unit, false, last + 1, 1).in_body);
    assert_false(part_place_choose(&unit, false, PARTS_MAX, PART_SIZE_MAX).in_body);
    unit = 800ULL << 20; /* all places of a part of this size are some */
    assert_true(part_place_choose(&unit, false, PARTS_MAX, unit).in_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_large_part_fixes_the_unit),
        cmocka_unit_test(later_parts_lie_by_their_number),
        cmocka_unit_test(a_part_sent_again_never_lies_in_the_body),
        cmocka_unit_test(a_place_that_no_file_may_have_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
