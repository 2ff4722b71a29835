#include "common/build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void commit_and_date(void **state)
{
    (void)state;
    const struct {
        const char *set, *commit, *date, *text;
    } rows[] = {
        {"", "", "", DFC_VERSION},
        {"abc 2026-11-29", "abc", "2026-11-29", DFC_VERSION " (abc), built 2026-11-29"},
        {"- 2026-11-29", "", "2026-11-29", DFC_VERSION ", built 2026-11-29"},
        {"abc+changes", "abc+changes", "", DFC_VERSION " (abc+changes)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        build_set(rows[i].set);
        assert_string_equal(build_commit(), rows[i].commit);
        assert_string_equal(build_date(), rows[i].date);
        assert_string_equal(build_text(), rows[i].text);
        assert_string_equal(build_release(), DFC_VERSION);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(commit_and_date)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
