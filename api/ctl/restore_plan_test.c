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
        "{\"id\": 3, \"name\": \"changed\", \"props\": {\"d\": \"sync\"},"
        " \"texts\": {\"cors\": \"<C/>\"}}]},"
        "\"config\": {\"values\": {\"jobs_max\": \"9\", \"nodes_max\": \"7\", \"x\": \"1\"}}}";
    static const char then[] =
        "{\"bmd\": {\"buckets\": [{\"id\": 1, \"name\": \"same\", \"props\": {\"copies\": 1}},"
        "{\"id\": 4, \"name\": \"old\", \"props\": {}}, {\"id\": 6, \"name\": \"other\"},"
        "{\"id\": 3, \"name\": \"changed\", \"props\": {\"d\": \"async\"}}]},"
        "\"config\": {\"values\": {\"jobs_max\": \"8\", \"buckets_max\": \"3\", \"x\": \"1\"}}}";
    static const char *const lines[] = {
        "+ bucket 'old' comes back: a new one, without objects",
        ("! bucket 'other' becomes another one, and WHAT IS IN IT NOW IS DESTROYED: id 5 -> a new "
         "one, "
         "without objects"),
        "~ bucket 'changed' changes: {\"d\":\"sync\"} -> {\"d\":\"async\"}",
        "~ S3 documents of bucket 'changed' change: {\"cors\":\"<C/>\"} -> its default",
        "- bucket 'new' is destroyed, WITH EVERYTHING IN IT: id 2",
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

static void assert_line(const char *present, const char *wanted, const char *line_or_null)
{
    _cleanup_json_ json_t *now = parse(present);
    _cleanup_json_ json_t *then = parse(wanted);
    _cleanup_json_ json_t *plan = restore_plan(now, then);
    _cleanup_(buf_done)
    struct buf line = BUF_INIT;
    assert_int_equal(json_array_size(plan), line_or_null != NULL);
    if (line_or_null == NULL)
        return;
    restore_plan_line(json_array_get(plan, 0), &line);
    assert_string_equal(buf_str(&line), line_or_null);
}

/* Which one a bucket is its id says, and of one that came back when it was made. */
static void buckets_are_known_again(void **unused)
{
    (void)unused;
#define ONE(id, created) \
    "{\"bmd\": {\"buckets\": [{\"id\": " id ", \"name\": \"b\", \"created\": " created "}]}}"
    assert_line(ONE("9", "77"), ONE("4", "77"), NULL);
    assert_line(
        ONE("9", "78"), ONE("4", "77"),
        "! bucket 'b' becomes another one, and WHAT IS IN IT NOW IS DESTROYED: id 9 -> a new one, "
        "without objects");
    assert_line(ONE("4", "77"), ONE("4", "77"), NULL);
    static const char two[] = "{\"bmd\": {\"buckets\": [{\"id\": 1, \"name\": \"a\"}, "
                              "{\"id\": 2, \"name\": \"c\"}]}}";
    static const char then[] = "{\"bmd\": {\"buckets\": [{\"id\": 1, \"name\": \"c\"}]}}";
    _cleanup_json_ json_t *now = parse(two);
    _cleanup_json_ json_t *wanted = parse(then);
    _cleanup_json_ json_t *plan = restore_plan(now, wanted);
    _cleanup_(buf_done)
    struct buf line = BUF_INIT;
    restore_plan_line(json_array_get(plan, 0), &line);
    assert_string_equal(buf_str(&line), "! bucket 'c' becomes another one, and WHAT IS IN IT NOW "
                                        "IS DESTROYED: id 2 -> 1");
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
        cmocka_unit_test(buckets_are_known_again),
        cmocka_unit_test(the_same_is_no_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
