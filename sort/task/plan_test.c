#include "sort/task/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/jsonx.h"

static const char plan_text[] =
    "{\"salt\": \"00000000000000ff\", \"input_bucket_id\": 3, \"output_bucket_id\": 4,"
    " \"output_props\": {\"durability\": \"async\"},"
    " \"targets\": [{\"id\": \"t1\", \"weight\": 1024, \"data_url\": \"http://a:1\"},"
    "               {\"id\": \"t2\", \"weight\": 2048, \"data_url\": \"http://a:2\"}]}";

static json_t *parse(const char *text)
{
    json_t *doc = NULL;
    assert_int_equal(json_parse(text, strlen(text), &doc, NULL), 0);
    return doc;
}

static void test_round_trip(void **state)
{
    (void)state;
    _cleanup_json_ json_t *doc = parse(plan_text);
    _cleanup_(sort_plan_freep)
    struct sort_plan *p = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(sort_plan_parse(doc, &p, &err), 0);
    assert_int_equal(p->salt, 255);
    assert_int_equal(p->count, 2);
    assert_string_equal(p->data_urls[1], "http://a:2");
    assert_int_equal(sort_plan_number(p, "t2"), 1);
    assert_int_equal(sort_plan_number(p, "t3"), -1);
    _cleanup_json_ json_t *again = sort_plan_json(p);
    assert_true(json_equal(doc, again));
}

/* A target with twice the weight owns about twice the names, and the buckets differ. */
static void test_owner_follows_weight(void **state)
{
    (void)state;
    _cleanup_json_ json_t *doc = parse(plan_text);
    _cleanup_(sort_plan_freep)
    struct sort_plan *p = NULL;
    assert_int_equal(sort_plan_parse(doc, &p, NULL), 0);
    unsigned owned[2] = {0}, differs = 0;
    for (int i = 0; i < 6000; i++) {
        char name[32];
        snprintf(name, sizeof name, "shard-%06d.tar", i);
        unsigned owner = sort_plan_owner(p, 3, name);
        owned[owner]++;
        differs += owner != sort_plan_owner(p, 4, name);
    }
    assert_in_range(owned[0], 1800, 2200);
    assert_true(differs > 1000);
}

/* What one that leaves owned goes to whom HRW names next; nobody else's changes. */
static void test_owners_when_targets_leave(void **state)
{
    (void)state;
    _cleanup_json_ json_t *doc = parse(plan_text);
    json_array_append_new(
        json_object_get(doc, "targets"),
        json_pack("{s:s, s:i, s:s}", "id", "t3", "weight", 1024, "data_url", "http://a:3"));
    _cleanup_(sort_plan_freep)
    struct sort_plan *p = NULL;
    assert_int_equal(sort_plan_parse(doc, &p, NULL), 0);
    unsigned first[300], moved = 0;
    char name[32];
    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "shard-%06u.tar", i);
        first[i] = sort_plan_owner(p, 3, name);
        assert_int_equal(sort_plan_owned_since(p, 3, name, first[i]), 0);
    }
    sort_plan_leave_out(p, 1);
    sort_plan_leave_out(p, 1);
    assert_int_equal(p->left_count, 1);
    for (unsigned i = 0; i < 300; i++) {
        size_t ranked[2];
        snprintf(name, sizeof name, "shard-%06u.tar", i);
        unsigned owner = sort_plan_owner(p, 3, name);
        assert_int_equal(hrw_rank(hrw_key(3, name, strlen(name)), p->nodes, 3, 2, ranked), 2);
        assert_int_equal(owner, first[i] == 1 ? ranked[1] : first[i]);
        assert_int_equal(sort_plan_owned_since(p, 3, name, owner), first[i] == 1);
        assert_int_equal(sort_plan_owned_since(p, 3, name, 1), -1);
        moved += first[i] == 1;
    }
    assert_true(moved > 100);
    sort_plan_leave_out(p, 0);
    for (unsigned i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "shard-%06u.tar", i);
        int since = sort_plan_owned_since(p, 3, name, 2);
        assert_int_equal(sort_plan_owner(p, 3, name), 2);
        assert_true(first[i] == 2 ? since == 0 : first[i] == 0 ? since == 2 : since > 0);
    }
}

static void assert_refused(const char *text, const char *message)
{
    _cleanup_json_ json_t *doc = parse(text);
    struct sort_plan *p = NULL;
    struct error err = ERROR_INIT;
    assert_true(sort_plan_parse(doc, &p, &err) != 0);
    if (strstr(err.message, message) == NULL)
        fail_msg("'%s' is not in '%s'", message, err.message);
}

static void test_malformed_plans(void **state)
{
    (void)state;
    assert_refused("{}", "salt");
    assert_refused("{\"salt\": \"xy\"}", "plan.salt");
    assert_refused("{\"salt\": \"00000000000000ff\", \"input_bucket_id\": -1}", "input_bucket_id");
    assert_refused("{\"salt\": \"00000000000000ff\", \"input_bucket_id\": 1,"
                   " \"output_bucket_id\": 2}",
                   "output_props");
    assert_refused("{\"salt\": \"00000000000000ff\", \"input_bucket_id\": 1,"
                   " \"output_bucket_id\": 2, \"output_props\": {}, \"targets\": []}",
                   "targets");
    assert_refused("{\"salt\": \"00000000000000ff\", \"input_bucket_id\": 1,"
                   " \"output_bucket_id\": 2, \"output_props\": {},"
                   " \"targets\": [{\"id\": \"t1\", \"weight\": 1}]}",
                   "data_url");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_owner_follows_weight),
        cmocka_unit_test(test_owners_when_targets_leave),
        cmocka_unit_test(test_malformed_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
