#include "api/ctl/print/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const char *const headers[] = {"NAME", "STATE", "TEXT", NULL};

static char *printed(const struct table *t, bool with_headers, bool colour)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    table_print(t, out, with_headers, colour);
    fclose(out);
    return text;
}

static void columns_are_aligned(void **state)
{
    (void)state;
    struct table *t = table_new(headers);
    table_cell(t, "a");
    table_cell(t, "active");
    table_cellf(t, "%d", 7);
    table_cell(t, "ünïcode");
    table_cell(t, NULL);
    table_cell(t, "");
    assert_int_equal(table_rows(t), 2);
    char *text = printed(t, true, false);
    assert_string_equal(text, "NAME     STATE   TEXT\n"
                              "a        active  7\n"
                              "ünïcode  -       \n");
    free(text);
    text = printed(t, false, true);
    assert_string_equal(text, "a        \033[32mactive\033[0m  7\n"
                              "ünïcode  -       \n");
    free(text);
    table_free(t);
}

static void an_empty_table_has_its_headers(void **state)
{
    (void)state;
    struct table *t = table_new(headers);
    char *text = printed(t, true, false);
    assert_string_equal(text, "NAME  STATE  TEXT\n");
    free(text);
    table_free(t);
    table_free(NULL);
}

static void cells_cannot_move_the_cursor(void **state)
{
    (void)state;
    struct table *t = table_new(headers);
    table_cell(t, "a\033[2J\n\r\t\x7f");
    table_cell(t, "\xc2\x9b"
                  "1m\xff\xc3(");
    table_cell(t, "\xc2\xa0ok");
    char *text = printed(t, false, false);
    assert_string_equal(text,
                        "a\\x1b[2J\\x0a\\x0d\\x09\\x7f  \\xc2\\x9b1m\\xff\\xc3(  \xc2\xa0ok\n");
    free(text);
    table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_aligned),
        cmocka_unit_test(an_empty_table_has_its_headers),
        cmocka_unit_test(cells_cannot_move_the_cursor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
