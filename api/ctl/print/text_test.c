#include "api/ctl/print/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

static void what_deceives_is_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *text, *clean;
    } rows[] = {
        {"", ""},
        {"shard-\xc3\xa9 \xe2\x80\xa6", "shard-\xc3\xa9 \xe2\x80\xa6"}, /* é … */
        {"a\x1b[2J", "a\\x1b[2J"},
        {"\xe2\x80\xaegpj.exe", "\\xe2\\x80\\xaegpj.exe"}, /* U+202E */
        {"\xe2\x81\xa6x", "\\xe2\\x81\\xa6x"},             /* U+2066 */
        {"\xc2\x9bx", "\\xc2\\x9bx"},
        {"\xff", "\\xff"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *clean = text_clean(rows[i].text);
        assert_string_equal(clean, rows[i].clean);
        free(clean);
    }
}

static void a_field_is_named_as_its_flag(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", ""},
        {"no shard", "no shard"},
        {"no shard (set allow_empty to accept that)", "no shard (--allow-empty accepts that)"},
        {"t1: none (set allow_empty to accept that) at all",
         "t1: none (--allow-empty accepts that) at all"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = text_with_flags(rows[i][0]);
        assert_string_equal(text, rows[i][1]);
        free(text);
    }
}

static void a_name_is_said_once(void **state)
{
    (void)state;
    static const struct {
        const char *message, *what;
        bool names;
    } rows[] = {
        {"bucket 'b' does not exist", "show bucket 'b'", true},
        {"no job has the id 'srt-1'", "job 'srt-1'", true},
        {"disable: target 't1' has no mountpath '/a'", "node 't1'", true},
        {"object 'x' does not exist", "get 'b/x'", false},
        {"bucket 'bb' does not exist", "show bucket 'b'", false},
        {"job 'srt-1' is gone", "job 'srt-1' failed", false},
        {"'' is no name", "bucket ''", false},
        {"'", "'", false},
        {"anything", "list buckets", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(text_names(rows[i].message, rows[i].what), rows[i].names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_deceives_is_escaped),
                                       cmocka_unit_test(a_field_is_named_as_its_flag),
                                       cmocka_unit_test(a_name_is_said_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
