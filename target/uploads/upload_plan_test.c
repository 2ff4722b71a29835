#include "target/uploads/upload_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

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

static const struct s3_sum_kind no_sums;

/* The list of these numbers, with the MD5s of the parts. */
static struct upload_plan plan_of(const unsigned *numbers, size_t count)
{
    struct listed_part list[8] = {{.number = 0}};
    for (size_t i = 0; i < count; i++)
        list[i] = (struct listed_part){.number = numbers[i], .md5 = {(unsigned char)numbers[i]}};
    return upload_plan_make(&table, &no_sums, list, count);
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

/* The same tag and sizes as with the MD5s. */
static void parts_are_taken_as_they_are_stored(void **unused)
{
    (void)unused;
    const struct listed_part list[] = {{.number = 1, .as_stored = true},
                                       {.number = 3, .as_stored = true},
                                       {.number = 7, .as_stored = true}};
    struct upload_plan plan = upload_plan_make(&table, &no_sums, list, 2);
    assert_int_equal(plan.verdict, UPLOAD_COMPLETE);
    assert_string_equal(plan.tag, PLAN(1, 3).tag);
    plan = upload_plan_make(&table, &no_sums, list, 3); /* part 3 is small */
    assert_int_equal(plan.verdict, UPLOAD_COMPLETE);
    assert_int_equal(plan.size, 2 * UNIT + 11);
    assert_string_equal(plan.parts, "1x8388608,1x10,1x8388609");
    plan = upload_plan_make(&table, &no_sums, &(struct listed_part){.number = 4, .as_stored = true},
                            1);
    assert_int_equal(plan.verdict, UPLOAD_MISSING);
}

static void bad_lists_are_refused(void **unused)
{
    (void)unused;
    struct upload_plan plan = upload_plan_make(&table, &no_sums, NULL, 0);
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
    plan = upload_plan_make(&table, &no_sums, &(struct listed_part){.number = 1, .md5 = {9}}, 1);
    assert_int_equal(plan.verdict, UPLOAD_OTHER_BYTES);
}

/* --- checksums -------------------------------------------------------------------------------- */

static void sum_of(enum s3_sum_type type, const void *data, size_t len, struct s3_sum_value *out)
{
    struct s3_sum *s = s3_sum_new(type);
    s3_sum_update(s, data, len);
    s3_sum_final(s, out);
    s3_sum_free(s);
}

/* Part 1 is zeros of UNIT bytes, and part 3 "0123456789". */
static void set_sums(enum s3_sum_type type)
{
    static const char zeros[UNIT];
    sum_of(type, zeros, sizeof zeros, &parts[0].sum);
    sum_of(type, "0123456789", 10, &parts[2].sum);
    parts[0].has_sum = parts[2].has_sum = true;
}

static struct upload_plan plan_with(const struct s3_sum_kind *kind, const struct s3_sum_value *last)
{
    const struct listed_part list[] = {{.number = 1, .md5 = {1}},
                                       {.number = 3,
                                        .md5 = {3},
                                        .has_sum = last != NULL,
                                        .sum = last != NULL ? *last : parts[2].sum}};
    return upload_plan_make(&table, kind, list, 2);
}

/* Values are those of zlib, hashlib and tests/reference/s3ref.py. */
static void the_object_gets_a_checksum(void **unused)
{
    (void)unused;
    static const struct {
        struct s3_sum_kind kind;
        const char *sum;
    } rows[] = {
        {{true, S3_SUM_CRC32, false}, "CRC32:99GKSg=="},
        {{true, S3_SUM_CRC32, true}, "CRC32:MZ43WA==-2"},
        {{true, S3_SUM_CRC32C, false}, "CRC32C:DRbb2Q=="},
        {{true, S3_SUM_CRC32C, true}, "CRC32C:nDpXhA==-2"},
        {{true, S3_SUM_CRC64NVME, false}, "CRC64NVME:1S6Ur6T7OHM="},
        {{true, S3_SUM_SHA1, true}, "SHA1:g76X0JBu+qZPPrROlqkCUykq+Mc=-2"},
        {{true, S3_SUM_SHA256, true}, "SHA256:4xCz13lu2Du/pddSaQYoP8vTygj0N7pz2xpOsrt1oPk=-2"},
    };
    assert_string_equal(PLAN(1, 3).sum, "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct part_sums sums;
        struct s3_sum_value second;
        set_sums(rows[i].kind.type);
        struct upload_plan plan = plan_with(&rows[i].kind, NULL);
        assert_int_equal(plan.verdict, UPLOAD_COMPLETE);
        assert_string_equal(plan.sum, rows[i].sum);
        assert_true(part_sums_parse(plan.part_sums, &sums));
        assert_int_equal(sums.count, 2);
        assert_true(part_sums_find(&sums, 2, &second));
        assert_true(s3_sum_equal(&second, &parts[2].sum));
    }
}

static void listed_checksums_are_compared(void **unused)
{
    (void)unused;
    const struct s3_sum_kind kind = {true, S3_SUM_CRC32, true};
    set_sums(S3_SUM_CRC32);
    struct s3_sum_value sum = parts[2].sum;
    assert_int_equal(plan_with(&kind, &sum).verdict, UPLOAD_COMPLETE);
    sum.bytes[3] ^= 1;
    struct upload_plan plan = plan_with(&kind, &sum);
    assert_int_equal(plan.verdict, UPLOAD_OTHER_SUM);
    assert_int_equal(plan.at, 1);
    assert_int_equal(plan_with(&no_sums, &sum).verdict, UPLOAD_COMPLETE);
    sum = (struct s3_sum_value){.type = S3_SUM_CRC32C};
    memcpy(sum.bytes, parts[2].sum.bytes, S3_SUM_MAX);
    assert_int_equal(plan_with(&kind, &sum).verdict, UPLOAD_OTHER_SUM);
}

static void checksums_of_many_parts_have_no_room(void **unused)
{
    (void)unused;
    enum { COUNT = 190 };
    static struct part many[COUNT];
    static struct listed_part list[COUNT];
    const struct part_table all = {.parts = many, .count = COUNT};
    const struct s3_sum_kind kind = {true, S3_SUM_CRC32, true};
    for (unsigned i = 0; i < COUNT; i++) {
        many[i] = (struct part){.number = i + 1, .side = i + 1, .size = UNIT, .has_sum = true};
        list[i].number = i + 1;
    }
    struct upload_plan plan = upload_plan_make(&all, &kind, list, COUNT);
    assert_int_equal(plan.verdict, UPLOAD_COMPLETE);
    assert_string_equal(plan.parts, "190x8388608");
    assert_string_equal(plan.part_sums, "");
    assert_non_null(strstr(plan.sum, "-190"));
    plan = upload_plan_make(&all, &kind, list, COUNT - 1);
    assert_string_not_equal(plan.part_sums, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_in_place_need_no_copy),
        cmocka_unit_test(other_parts_are_copied),
        cmocka_unit_test(a_short_part_leaves_a_hole),
        cmocka_unit_test(parts_are_taken_as_they_are_stored),
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(the_object_gets_a_checksum),
        cmocka_unit_test(listed_checksums_are_compared),
        cmocka_unit_test(checksums_of_many_parts_have_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
