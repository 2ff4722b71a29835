#include "target/archive/batch_spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"

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
    batch_entry_name(&s.entries[1], false, &name);
    assert_string_equal(buf_str(&name), "b/o/m");
    buf_clear(&name);
    batch_entry_name(&s.entries[0], true, &name);
    assert_string_equal(buf_str(&name), "__404__/b/o/x");
    buf_done(&name);
    batch_spec_done(&s);
    assert_int_equal(parse("{\"entries\": []}", &s, NULL), 0);
    assert_int_equal(s.count, 0);
    batch_spec_done(&s);
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
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
