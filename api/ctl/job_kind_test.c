#include "api/ctl/job_kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_renamed_kind_has_two_names(void **state)
{
    (void)state;
    assert_string_equal(job_kind_shown("mirror"), "trim_copies");
    assert_string_equal(job_kind_shown("repair"), "repair");
    assert_string_equal(job_kind_asked("trim_copies"), "mirror");
    assert_string_equal(job_kind_asked("mirror"), "mirror");
    assert_string_equal(job_kind_asked("sort"), "sort");
    assert_null(job_kind_asked(NULL));
    assert_string_equal(job_kind_renamed("mirror"), "trim_copies");
    assert_null(job_kind_renamed("trim_copies"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_renamed_kind_has_two_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
