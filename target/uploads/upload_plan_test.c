#include "target/uploads/upload_plan.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { UNIT = 8 << 20 };

/* Parts 1, 2 and 3 in place, the last of 10 bytes, and part 7 in a side file. */
static struct part parts[] = {
    {.number = 1, .size = UNIT, .unit = UNIT, .md5 = {1}},
    {.number = 2, .size = UNIT, .unit = UNIT, .md5 = {2}},
    {.number = 3, .size = 10, .unit = UNIT, .md5 = {3}},
    {.number = 7, .size = UNIT + 1, .side = 1, .md5 = {7}},
};

static const struct part_table table = {
    .parts = parts, .count = sizeof parts / sizeof parts[0], .unit = UNIT};

/* The list of these numbers, with the MD5s of the parts. */
static struct upload_plan plan_of(const unsigned *numbers, size_t count)
{
    struct listed_part list[8] = {{.number = 0}};
    for (size_t i = 0; i < count; i++)
        list[i] = (struct listed_part){.number = numbers[i], .md5 = {(unsigned char)numbers[i]}};
    return upload_plan_make(&table, list, count);
}

#define PLAN(...)                            \
    plan_of((const unsigned[]){__VA_ARGS__}, \
            sizeof(const unsigned[]){__VA_ARGS__} / sizeof(unsigned))

static void parts_in_place_need_no_copy(void **unused)
{
    (void)unused;
    struct upload_plan plan = PLAN(1, 2, 3);
    assert_int_equal(plan.verdict, UPLOAD_COMPLETE);
    assert_true(plan.in_place);
    assert_int_equal(plan.size, 2 * UNIT + 10);
    assert_string_equal(plan.tag, "73abfaa81f4eb3cc0ae223090f330f51-3");
    assert_string_equal(plan.parts, "2x8388608,1x10");
    assert_true(PLAN(1).in_place);
}

static void other_parts_are_copied(void **unused)
{
    (void)unused;
    assert_false(PLAN(1, 2, 7).in_place); /* a side file */
    assert_false(PLAN(2, 3).in_place);    /* not from the beginning */
    assert_false(PLAN(1, 3).in_place);    /* a gap */
    assert_int_equal(PLAN(1, 3).verdict, UPLOAD_COMPLETE);
    assert_int_equal(PLAN(1, 3).size, UNIT + 10);
    assert_string_equal(PLAN(1, 7).parts, "1x8388608,1x8388609");
}

/* Part 2 is shorter than the unit, so that part 3 does not lie where part 2 ends. */
static void a_short_part_leaves_a_hole(void **unused)
{
    (void)unused;
    struct part short_part = parts[1];
    parts[1].size = 6 << 20;
    struct upload_plan plan = PLAN(1, 2, 3), last = PLAN(1, 2);
    parts[1] = short_part;
    assert_int_equal(plan.verdict, UPLOAD_COMPLETE);
    assert_false(plan.in_place);
    assert_true(last.in_place);
}

static void bad_lists_are_refused(void **unused)
{
    (void)unused;
    struct upload_plan plan = upload_plan_make(&table, NULL, 0);
    assert_int_equal(plan.verdict, UPLOAD_EMPTY);
    plan = PLAN(1, 3, 2);
    assert_int_equal(plan.verdict, UPLOAD_SMALL); /* the first fault counts */
    assert_int_equal(plan.at, 1);
    plan = PLAN(2, 1);
    assert_int_equal(plan.verdict, UPLOAD_ORDER);
    assert_int_equal(plan.at, 1);
    assert_int_equal(PLAN(1, 1).verdict, UPLOAD_ORDER);
    assert_int_equal(PLAN(1, 4).verdict, UPLOAD_MISSING);
    assert_int_equal(PLAN(0).verdict, UPLOAD_MISSING);
    plan = upload_plan_make(&table, &(struct listed_part){.number = 1, .md5 = {9}}, 1);
    assert_int_equal(plan.verdict, UPLOAD_OTHER_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_in_place_need_no_copy),
        cmocka_unit_test(other_parts_are_copied),
        cmocka_unit_test(a_short_part_leaves_a_hole),
        cmocka_unit_test(bad_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
