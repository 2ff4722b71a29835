#include "s3/uploads/part_sums.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "s3/uploads/object_sum.h"
#include "s3/uploads/sum_kind.h"

enum { COUNT_MAX = 200 };

static void fill(struct s3_sum_value *sums, enum s3_sum_type type)
{
    for (unsigned i = 0; i < COUNT_MAX; i++) {
        sums[i] = (struct s3_sum_value){.type = type};
        memset(sums[i].bytes, (int)(i + 1), s3_sum_size(type));
    }
}

static void a_text_has_the_sums_that_have_room(void **unused)
{
    (void)unused;
    static const size_t room[S3_SUM_TYPES] = {189, 189, 94, 37, 23};
    struct s3_sum_value sums[COUNT_MAX], got;
    struct part_sums read;
    char text[PART_SUMS_MAX];
    for (enum s3_sum_type type = 0; type < S3_SUM_TYPES; type++) {
        fill(sums, type);
        assert_false(part_sums_print(sums, 0, text));
        assert_false(part_sums_print(sums, room[type] + 1, text));
        for (size_t count = 1; count <= room[type]; count++) {
            assert_true(part_sums_print(sums, count, text));
            assert_true(part_sums_parse(text, &read));
            assert_int_equal(read.count, count);
            assert_true(part_sums_find(&read, (unsigned)count, &got));
            assert_true(s3_sum_equal(&got, &sums[count - 1]));
            assert_false(part_sums_find(&read, (unsigned)count + 1, &got));
            assert_false(part_sums_find(&read, 0, &got));
        }
    }
}

static void a_text_keeps_its_form(void **unused)
{
    (void)unused;
    const struct s3_sum_value sums[] = {{S3_SUM_CRC32, {1, 2, 3, 4}}, {S3_SUM_CRC32, {5, 6, 7, 8}}};
    char text[PART_SUMS_MAX];
    assert_true(part_sums_print(sums, 2, text));
    assert_string_equal(text, "CRC32:AQIDBAUGBwg");
}

static void other_texts_are_none(void **unused)
{
    (void)unused;
    struct part_sums read;
    static const char *const bad[] = {"",
                                      "CRC32",
                                      "CRC32:",
                                      ":AQIDBA",
                                      "CRC32:AQIDB",
                                      "CRC32:AQID",
                                      "crc32:AQIDBA",
                                      "MD5:AQIDBA",
                                      "CRC32:AQIDBB",
                                      "CRC32:AQIDBA==",
                                      "AQIDBAQIDBAQIDBAQIDBA:AQIDBA"};
    assert_true(part_sums_parse("CRC32:AQIDBA", &read));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(part_sums_parse(bad[i], &read));
}

static void sums_of_objects(void **unused)
{
    (void)unused;
    struct s3_object_sum sum;
    char text[S3_OBJECT_SUM_MAX], value[S3_OBJECT_SUM_VALUE_MAX];
    static const char *const good[] = {"CRC32C:yZRlqg==", "CRC32C:yZRlqg==-1",
                                       "CRC32C:yZRlqg==-10000",
                                       "SHA256:arcu6553sHVAiX4MjW0j7I7vD4w6R+Gz9Ok0Q9lTa+0=-10000"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(s3_object_sum_parse(good[i], &sum));
        assert_string_equal(s3_object_sum_print(&sum, text), good[i]);
        assert_string_equal(s3_object_sum_value(&sum, value), strchr(good[i], ':') + 1);
        assert_string_equal(s3_object_sum_type(&sum), i > 0 ? "COMPOSITE" : "FULL_OBJECT");
    }
    static const char *const bad[] = {"",
                                      "CRC32C",
                                      "CRC32C:",
                                      "CRC32C:yZRlqg==-",
                                      "CRC32C:yZRlqg==-0",
                                      "CRC32C:yZRlqg==-01",
                                      "x",
                                      "crc32c:yZRlqg==",
                                      "CRC32C:yZRlqg==-10001",
                                      "CRC32C:yZRlqg==-+1",
                                      "SHA1:yZRlqg=="};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(s3_object_sum_parse(bad[i], &sum));
}

static void kinds_in_one_text(void **unused)
{
    (void)unused;
    struct s3_sum_kind kind;
    char text[S3_SUM_KIND_MAX];
    static const char *const good[] = {"CRC32 COMPOSITE", "CRC32 FULL_OBJECT", "CRC32C COMPOSITE",
                                       "CRC64NVME FULL_OBJECT", "SHA256 COMPOSITE"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(s3_sum_kind_parse(good[i], &kind));
        assert_true(kind.is_asked);
        assert_string_equal(s3_sum_kind_print(&kind, text), good[i]);
    }
    static const char *const bad[] = {"",
                                      "CRC32",
                                      "CRC32 ",
                                      "CRC32  COMPOSITE",
                                      "crc32 COMPOSITE",
                                      "SHA1 FULL_OBJECT",
                                      "MD5 COMPOSITE",
                                      "CRC64NVME COMPOSITE",
                                      "CRC32 COMPOSITE "};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(s3_sum_kind_parse(bad[i], &kind));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_has_the_sums_that_have_room),
        cmocka_unit_test(a_text_keeps_its_form),
        cmocka_unit_test(other_texts_are_none),
        cmocka_unit_test(sums_of_objects),
        cmocka_unit_test(kinds_in_one_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
