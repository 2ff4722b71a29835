#include "api/ctl/restore_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/jsonx.h"

static json_t *parse(const char *text)
{
    json_t *doc = NULL;
    assert_int_equal(json_parse(text, strlen(text), &doc, NULL), 0);
    return doc;
}

static void every_difference_is_one_line(void **unused)
{
    (void)unused;
    static const char now[] =
        "{\"bmd\": {\"buckets\": [{\"id\": 1, \"name\": \"same\", \"props\": {\"copies\": 1}},"
        "{\"id\": 2, \"name\": \"new\", \"props\": {}}, {\"id\": 5, \"name\": \"other\"},"
        "{\"id\": 3, \"name\": \"changed\", \"props\": {\"d\": \"sync\"}}]},"
        "\"config\": {\"values\": {\"jobs_max\": \"9\", \"nodes_max\": \"7\", \"x\": \"1\"}}}";
    static const char then[] =
        "{\"bmd\": {\"buckets\": [{\"id\": 1, \"name\": \"same\", \"props\": {\"copies\": 1}},"
        "{\"id\": 4, \"name\": \"old\", \"props\": {}}, {\"id\": 6, \"name\": \"other\"},"
        "{\"id\": 3, \"name\": \"changed\", \"props\": {\"d\": \"async\"}}]},"
        "\"config\": {\"values\": {\"jobs_max\": \"8\", \"buckets_max\": \"3\", \"x\": \"1\"}}}";
    static const char *const lines[] = {
        "+ bucket 'old' comes back, without objects if it was destroyed: id 4",
        "! bucket 'other' becomes another one, and WHAT IS IN IT NOW GOES: id 5 -> 6",
        "~ bucket 'changed' changes: {\"d\":\"sync\"} -> {\"d\":\"async\"}",
        "- bucket 'new' goes, WITH EVERYTHING IN IT: id 2",
        "~ setting 'jobs_max' changes: \"9\" -> \"8\"",
        "~ setting 'buckets_max' changes: its default -> \"3\"",
        "~ setting 'nodes_max' changes: \"7\" -> its default",
    };
    _cleanup_json_ json_t *present = parse(now);
    _cleanup_json_ json_t *wanted = parse(then);
    _cleanup_json_ json_t *plan = restore_plan(present, wanted);
    size_t i;
    json_t *one;
    assert_int_equal(json_array_size(plan), sizeof lines / sizeof lines[0]);
    json_array_foreach(plan, i, one)
    {
        _cleanup_(buf_done)
        struct buf line = BUF_INIT;
        restore_plan_line(one, &line);
        assert_string_equal(buf_str(&line), lines[i]);
    }
}

static void the_same_is_no_change(void **unused)
{
    (void)unused;
    _cleanup_json_ json_t *doc = parse("{\"bmd\": {\"buckets\": [{\"id\": 1, \"name\": \"b\"}]}, "
                                       "\"config\": {\"values\": {\"a\": \"1\"}}}");
    _cleanup_json_ json_t *plan = restore_plan(doc, doc);
    assert_int_equal(json_array_size(plan), 0);
    _cleanup_json_ json_t *nothing = parse("{}"); /* never a crash */
    _cleanup_json_ json_t *odd = restore_plan(nothing, nothing);
    assert_int_equal(json_array_size(odd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_difference_is_one_line),
        cmocka_unit_test(the_same_is_no_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
