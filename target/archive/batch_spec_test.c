#include "target/archive/batch_spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "sort/shard/format.h"

static int parse(const char *text, struct batch_spec *out, struct error *err)
{
    return batch_spec_parse(text, strlen(text), 3, out, err);
}

static void test_entries(void **state)
{
    (void)state;
    struct batch_spec s;
    struct buf name = BUF_INIT;
    assert_int_equal(
        parse("{\"entries\": [{\"bucket\": \"b\", \"object\": \"o/x\"},"
              " {\"bucket\": \"b\", \"object\": \"o\", \"member\": \"m\", \"offset\": 5},"
              " {\"bucket\": \"b\", \"object\": \"o\", \"length\": 7}], \"on_missing\": \"empty\"}",
              &s, NULL),
        0);
    assert_int_equal(s.count, 3);
    assert_true(s.empty_if_missing);
    assert_false(s.entries[0].ranged);
    assert_true(s.entries[1].ranged && s.entries[1].offset == 5 && s.entries[1].length == 0);
    assert_true(s.entries[2].ranged && s.entries[2].offset == 0 && s.entries[2].length == 7);
    batch_entry_name(&s, &s.entries[1], false, &name);
    assert_string_equal(buf_str(&name), "b/o/m");
    buf_clear(&name);
    batch_entry_name(&s, &s.entries[0], true, &name);
    assert_string_equal(buf_str(&name), "__404__/b/o/x");
    buf_done(&name);
    batch_spec_done(&s);
    assert_int_equal(parse("{\"entries\": []}", &s, NULL), 0);
    assert_int_equal(s.count, 0);
    batch_spec_done(&s);
}

static void test_the_form_of_the_reply(void **state)
{
    (void)state;
    struct batch_spec s;
    _cleanup_buf_ struct buf name = BUF_INIT;
    assert_int_equal(parse("{\"entries\": []}", &s, NULL), 0);
    assert_true(!s.bare_names && !s.report && !s.empty_if_missing);
    assert_string_equal(s.format->content_type, "application/x-tar");
    batch_spec_done(&s);
    assert_int_equal(parse("{\"entries\": [{\"bucket\": \"b\", \"object\": \"o\", \"member\": "
                           "\"m\", \"opaque\": \"x\"}], \"format\": \".zip\", \"names\": "
                           "\"object\", \"report\": true}",
                           &s, NULL),
                     0);
    assert_true(s.bare_names && s.report);
    assert_string_equal(s.format->content_type, "application/zip");
    assert_string_equal(s.entries[0].opaque, "x");
    batch_entry_name(&s, &s.entries[0], true, &name);
    assert_string_equal(buf_str(&name), "__404__/o/m");
    batch_spec_done(&s);
}

static void test_the_size_of_a_range(void **state)
{
    (void)state;
    static const struct {
        struct batch_entry e;
        uint64_t whole, size;
        int code;
    } rows[] = {
        {{.object = "o"}, 0, 0, 0},
        {{.object = "o"}, 9, 9, 0},
        {{.ranged = true, .offset = 4}, 9, 5, 0},
        {{.ranged = true, .offset = 4, .length = 2}, 9, 2, 0},
        {{.ranged = true, .length = 20}, 9, 9, 0},
        {{.ranged = true, .offset = 8, .length = 2}, 9, 1, 0},
        {{.ranged = true, .offset = 9}, 9, 0, E_RANGE},
        {{.ranged = true, .length = 1}, 0, 0, E_RANGE},
        {{.ranged = true, .offset = INT64_MAX}, UINT64_MAX, UINT64_MAX - INT64_MAX, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t size = 0;
        assert_int_equal(batch_entry_size(&rows[i].e, rows[i].whole, &size, NULL), rows[i].code);
        assert_int_equal(size, rows[i].size);
    }
}

static void test_what_is_refused(void **state)
{
    (void)state;
#define O "\"bucket\": \"b\", \"object\": \"o\""
    static const struct {
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {"", E_JSON, ""},
        {"[]", E_JSON, ""},
        {"{}", E_JSON, "entries"},
        {"{\"entries\": {}}", E_JSON, "entries"},
        {"{\"entries\": [], \"x\": 1}", E_JSON, "x"},
        {"{\"entries\": [1]}", E_JSON, "entries[0]"},
        {"{\"entries\": [{" O "}, {\"bucket\": \"b\"}]}", E_JSON, "entries[1]"},
        {"{\"entries\": [{" O ", \"member\": \"\"}]}", E_INVALID, "member"},
        {"{\"entries\": [{" O ", \"length\": 0}]}", E_INVALID, "length"},
        {"{\"entries\": [{" O ", \"offset\": 9223372036854775807, \"length\": 1}]}", E_INVALID,
         "2^63"},
        {"{\"entries\": [{\"bucket\": \"B/\", \"object\": \"o\"}]}", E_NAME, "entries[0]"},
        {"{\"entries\": [{\"bucket\": \"b\", \"object\": \"\"}]}", E_NAME, "entries[0]"},
        {"{\"entries\": [], \"on_missing\": \"skip\"}", E_INVALID, "on_missing"},
        {"{\"entries\": [], \"names\": \"member\"}", E_INVALID, "names"},
        {"{\"entries\": [], \"format\": \"\"}", E_INVALID, "format"},
        {"{\"entries\": [], \"format\": \".rar\"}", E_INVALID, ".rar"},
        {"{\"entries\": [], \"format\": \".cpio\"}", E_INVALID, ".cpio"},
        {"{\"entries\": [], \"format\": \".tfrecord\"}", E_INVALID, ".tfrecord"},
        {"{\"entries\": [], \"report\": 1}", E_JSON, "report"},
        {"{\"entries\": [{" O ", \"opaque\": 1}]}", E_JSON, "opaque"},
        {"{\"entries\": [{" O "}, {" O "}, {" O "}, {" O "}]}", E_TOO_LARGE, "batch_entries_max"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct batch_spec s;
        struct error err = ERROR_INIT;
        int code = parse(rows[i].text, &s, &err);
        if (code != rows[i].code || strstr(err.message, rows[i].words) == NULL)
            fail_msg("%s: %s, '%s'", rows[i].text, error_name(code), err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_the_form_of_the_reply),
        cmocka_unit_test(test_the_size_of_a_range),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
