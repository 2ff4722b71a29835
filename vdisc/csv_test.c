#include "vdisc/csv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"

/* "1:a|b;3:c;" */
static int show(void *context, uint64_t line, const char *const *fields, size_t count,
                struct error *err)
{
    (void)err;
    buf_printf(context, "%llu:", (unsigned long long)line);
    for (size_t i = 0; i < count; i++)
        buf_printf(context, "%s%s", i > 0 ? "|" : "", fields[i]);
    buf_putc(context, ';');
    return 0;
}

static int parse(const char *text, size_t piece, struct buf *out, struct error *err)
{
    _cleanup_(csv_freep)
    struct csv *c = csv_new(show, out);
    size_t len = strlen(text);
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < len; at += piece)
        rc = csv_feed(c, text + at, len - at < piece ? len - at : piece, err);
    return rc == 0 ? csv_end(c, err) : rc;
}

static const struct {
    const char *text, *rows; /* NULL: an error */
} cases[] = {
    {"", ""},
    {"a,b\n", "1:a|b;"},
    {"a,b", "1:a|b;"},
    {"a,b\r\nc\r\n", "1:a|b;2:c;"},
    {"a,,\n", "1:a||;"},
    {"a,\r\n", "1:a|;"},
    {",\n", "1:|;"},
    {"\n\na\n\n", "3:a;"},
    {"\r\na\r\n", "2:a;"},
    {"\"a,b\",\"c\"\"d\"\n", "1:a,b|c\"d;"},
    {"\"a\nb\",c\nd\n", "1:a\nb|c;3:d;"},
    {"\"a\"\r\n\"b\"\r\n", "1:a;2:b;"},
    {"\"\"\n", "1:;"},
    {"\"\",\"\"", "1:|;"},
    {" a , b \n", "1: a | b ;"},
    {"\xef\xbb\xbf\"a\",b\n", "1:a|b;"},
    {"\xef\xbb\xbf", ""},
    {"\xef\xbbz\n", "1:\xef\xbbz;"},
    {"\xef\xbb", "1:\xef\xbb;"},
    {"\xef\xbb\xbf\xef\xbb\xbfz\n", "1:\xef\xbb\xbfz;"},
    {"a\"b\n", NULL},
    {"\"a\"b\n", NULL},
    {"\"a", NULL},
    {"a\rb\n", NULL},
    {"a\r", NULL},
    {"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17\n", NULL},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t piece = 1; piece < 8; piece++) {
            _cleanup_buf_ struct buf out = BUF_INIT;
            struct error err = ERROR_INIT;
            int rc = parse(cases[i].text, piece, &out, &err);
            if ((rc == 0) != (cases[i].rows != NULL))
                fail_msg("'%s': %d %s", cases[i].text, rc, err.message);
            if (rc == 0 && strcmp(buf_str(&out), cases[i].rows) != 0)
                fail_msg("'%s': %s", cases[i].text, out.data);
        }
    }
}

static void test_an_open_quote_has_the_line_where_it_begins(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf out = BUF_INIT;
    struct error err = ERROR_INIT;
    assert_int_equal(parse("a\n\"b\nc\",\"d\"\"\ne\nf\n", 3, &out, &err), E_INVALID);
    assert_string_equal(err.message, "line 3: a quote that begins here is not closed");
}

static void test_a_row_has_an_end(void **state)
{
    (void)state;
    static char text[CSV_ROW_MAX + 2];
    _cleanup_buf_ struct buf out = BUF_INIT;
    struct error err = ERROR_INIT;
    memset(text, 'a', CSV_ROW_MAX - 1);
    assert_int_equal(parse(text, 1000, &out, &err), 0);
    memset(text, 'a', CSV_ROW_MAX);
    assert_int_equal(parse(text, 1000, &out, &err), E_INVALID);
    assert_non_null(strstr(err.message, "line 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_an_open_quote_has_the_line_where_it_begins),
        cmocka_unit_test(test_a_row_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
