#include "cluster/members/node_stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/jsonx.h"

static int parse(const char *text, struct node_stats *out)
{
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *doc = NULL;
    assert_int_equal(json_parse(text, strlen(text), &doc, &err), 0);
    return node_stats_from_json(doc, out, &err);
}

static void all_come_back(void **state)
{
    (void)state;
    struct node_stats in, out;
    for (size_t i = 0; i < NODE_STATS; i++)
        in.values[i] = i == 0 ? INT64_MAX : i * 1000;
    _cleanup_json_ json_t *doc = node_stats_to_json(&in);
    assert_int_equal(node_stats_from_json(doc, &out, NULL), 0);
    assert_memory_equal(&in, &out, sizeof in);
}

static void another_release_has_other_fields(void **state)
{
    (void)state;
    struct node_stats out;
    assert_int_equal(parse("{\"writes\": 3, \"of_next_year\": [1]}", &out), 0);
    assert_int_equal(out.values[STAT_writes], 3);
    assert_int_equal(out.values[STAT_reads], 0);
    assert_int_equal(node_stats_from_json(NULL, &out, NULL), 0);
    assert_int_equal(out.values[STAT_writes], 0);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    struct node_stats out;
    assert_int_not_equal(parse("{\"writes\": -1}", &out), 0);
    assert_int_not_equal(parse("{\"writes\": \"many\"}", &out), 0);
    assert_int_not_equal(parse("[1]", &out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_come_back),
        cmocka_unit_test(another_release_has_other_fields),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
