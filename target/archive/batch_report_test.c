/* The two parts around an archive, as a reader of multipart sees them. */
#include "target/archive/batch_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "target/archive/batch_spec.h"

static void test_what_an_entry_says(void **state)
{
    (void)state;
    static const char body[] =
        "{\"entries\": [{\"bucket\": \"b\", \"object\": \"o\"}, {\"bucket\": \"c\", "
        "\"object\": \"\xc3\xa9\", \"member\": \"m\", \"opaque\": \"eA==\"}], \"format\": "
        "\".zip\"}";
    char why[] = "there is none";
    const struct batch_seen seen[] = {{.size = 7}, {.missing = why}};
    _cleanup_buf_ struct buf out = BUF_INIT;
    struct batch_spec s;
    assert_int_equal(batch_spec_parse(body, sizeof body - 1, 9, &s, NULL), 0);
    batch_report_begin(&s, seen, "r1", "B", &out);
    batch_report_end("B", &out);
    assert_string_equal(
        buf_str(&out),
        "--B\r\nContent-Type: application/json\r\n\r\n"
        "{\"out\":[{\"objname\":\"o\",\"bucket\":\"b\",\"provider\":\"ais\",\"size\":7},"
        "{\"objname\":\"\xc3\xa9\",\"bucket\":\"c\",\"provider\":\"ais\",\"archpath\":\"m\","
        "\"opaque\":\"eA==\",\"err_msg\":\"there is none\",\"size\":0}],\"uuid\":\"r1\"}\r\n"
        "--B\r\nContent-Type: application/zip\r\n\r\n"
        "\r\n--B--\r\n");
    batch_spec_done(&s);
}

static void test_boundaries_differ(void **state)
{
    (void)state;
    char one[BATCH_BOUNDARY_MAX], two[BATCH_BOUNDARY_MAX];
    batch_report_boundary(one);
    batch_report_boundary(two);
    assert_int_equal(strlen(one), BATCH_BOUNDARY_MAX - 1);
    assert_string_not_equal(one, two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_an_entry_says),
        cmocka_unit_test(test_boundaries_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
