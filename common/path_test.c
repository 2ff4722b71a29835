#include "common/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void names_that_stay_below(void **state)
{
    static const char *const good[] = {"a", "a/b", "...", "a..b", "..a/b.", ".hidden", "\\..", "~"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_null(path_flaw(good[i]));
}

static void names_that_do_not(void **state)
{
    static const char *const rows[][2] = {
        {"", "empty"},     {"/", "empty"},     {"/a", "empty"},    {"a/", "empty"},
        {"a//b", "empty"}, {".", "'.'"},       {"./a", "'.'"},     {"a/./b", "'.'"},
        {"a/.", "'.'"},    {"..", "'..'"},     {"../a", "'..'"},   {"../../a", "'..'"},
        {"a/..", "'..'"},  {"a/../b", "'..'"}, {"a/..//", "'..'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *flaw = path_flaw(rows[i][0]);
        assert_non_null(flaw);
        assert_non_null(strstr(flaw, rows[i][1]));
    }
}

static void the_end_of_a_path(void **state)
{
    (void)state;
    assert_true(path_ends_with("a/b.tar", ".tar"));
    assert_true(path_ends_with(".tar", ".tar"));
    assert_true(path_ends_with("a", ""));
    assert_false(path_ends_with("tar", ".tar"));
    assert_false(path_ends_with("a.tar.gz", ".tar"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_stay_below),
        cmocka_unit_test(names_that_do_not),
        cmocka_unit_test(the_end_of_a_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
