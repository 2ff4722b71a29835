#include "proxy/jobs/job_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Two targets, of which t1 has `count` warnings, and t2 never had a status. */
static json_t *reports_with(size_t count)
{
    json_t *warnings = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(warnings, json_sprintf("warning %zu", i));
    return json_pack("{s:{s:s, s:{s:o, s:i}}, s:{s:s}}", "t1", "state", "committed", "status",
                     "warnings", warnings, "records", 7, "t2", "state", "committed");
}

static const json_t *status_of(const json_t *reports)
{
    return json_object_get(json_object_get(reports, "t1"), "status");
}

static size_t warnings_left(size_t count, enum job_brevity brevity)
{
    json_t *brief = job_report_brief(reports_with(count), brevity);
    assert_int_equal(json_object_size(brief), 2);
    assert_int_equal(json_integer_value(json_object_get(status_of(brief), "records")), 7);
    size_t left = json_array_size(json_object_get(status_of(brief), "warnings"));
    json_decref(brief);
    return left;
}

static void test_warnings(void **state)
{
    (void)state;
    assert_int_equal(warnings_left(100, JOB_REPORT_WHOLE), 100);
    assert_int_equal(warnings_left(100, JOB_REPORT_FEW_WARNINGS), JOB_REPORT_FEW + 1);
    assert_int_equal(warnings_left(JOB_REPORT_FEW, JOB_REPORT_FEW_WARNINGS), JOB_REPORT_FEW);
    assert_int_equal(warnings_left(100, JOB_REPORT_FIGURES), 1);
    assert_int_equal(warnings_left(0, JOB_REPORT_FIGURES), 0);
}

static void test_what_is_said_of_the_rest(void **state)
{
    (void)state;
    json_t *brief = job_report_brief(reports_with(100), JOB_REPORT_FEW_WARNINGS);
    const json_t *warnings = json_object_get(status_of(brief), "warnings");
    assert_string_equal(json_string_value(json_array_get(warnings, 0)), "warning 0");
    const char *rest = json_string_value(json_array_get(warnings, JOB_REPORT_FEW));
    assert_non_null(strstr(rest, "100 warnings"));
    json_decref(brief);
}

static void test_nothing(void **state)
{
    (void)state;
    json_t *brief = job_report_brief(reports_with(3), JOB_REPORT_NONE);
    assert_int_equal(json_object_size(brief), 0);
    json_decref(brief);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_what_is_said_of_the_rest),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
