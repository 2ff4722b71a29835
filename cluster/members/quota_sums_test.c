#include "cluster/members/quota_sums.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "cluster/testing/test_state.h"
#include "common/jsonx.h"

/* t1 and t2, and the buckets `a` and `b` with a quota, `c` without. */
static int setup(void **state)
{
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    const struct cluster_state *s = state_new("c-1");
    test_state_join(&s, "t1", "b1", false);
    test_state_join(&s, "t2", "b2", false);
    test_state_apply(&s,
                     &(struct command){.kind = CMD_BUCKET_CREATE, .name = "c", .props = &props});
    props.quota_bytes = 1000;
    test_state_apply(&s,
                     &(struct command){.kind = CMD_BUCKET_CREATE, .name = "a", .props = &props});
    test_state_apply(&s,
                     &(struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props});
    *state = (void *)(uintptr_t)s;
    return 0;
}

static int teardown(void **state)
{
    state_unref(*state);
    return 0;
}

static uint64_t id_of(const struct cluster_state *s, const char *bucket)
{
    return bmd_bucket(&s->bmd, bucket)->id;
}

static void says(struct quota_sums *q, const struct cluster_state *s, const char *node,
                 const char *bucket, int objects, int bytes)
{
    _cleanup_json_ json_t *list =
        json_pack("[{s:I, s:i, s:i}]", "bucket", (json_int_t)id_of(s, bucket), "objects", objects,
                  "bytes", bytes);
    assert_int_equal(quota_sums_take(q, s, node, list, NULL), 0);
}

static void assert_sum(const struct quota_sums *q, uint64_t id, uint64_t objects, uint64_t bytes)
{
    const struct quota_amount sum = quota_sums_of(q, id);
    assert_int_equal(sum.objects, objects);
    assert_int_equal(sum.bytes, bytes);
}

static void each_hears_what_the_others_have(void **state)
{
    const struct cluster_state *s = *state;
    struct quota_sums *q = quota_sums_new();
    says(q, s, "t1", "a", 1, 100);
    says(q, s, "t1", "a", 2, 200); /* in place of what it said before */
    says(q, s, "t2", "a", 3, 300);
    says(q, s, "t2", "c", 9, 900); /* has no quota */
    assert_sum(q, id_of(s, "a"), 5, 500);
    assert_sum(q, id_of(s, "c"), 0, 0);
    _cleanup_json_ json_t *reply = quota_sums_reply(q, s, "t1");
    _cleanup_json_ json_t *expected =
        json_pack("[{s:I, s:i, s:i, s:{s:i, s:i}}]", "bucket", (json_int_t)id_of(s, "a"), "objects",
                  3, "bytes", 300, "yours", "objects", 2, "bytes", 200);
    assert_true(json_equal(reply, expected));
    quota_sums_free(q);
}

static void a_fresh_primary_says_nothing_before_all_were_heard(void **state)
{
    const struct cluster_state *s = *state;
    struct quota_sums *q = quota_sums_new();
    says(q, s, "t1", "a", 1, 100);
    assert_null(quota_sums_reply(q, s, "t1"));
    assert_int_equal(quota_sums_take(q, s, "t2", NULL, NULL), 0); /* an earlier release */
    _cleanup_json_ json_t *reply = quota_sums_reply(q, s, "t2");
    assert_int_equal(json_array_size(reply), 1);
    quota_sums_free(q);
}

static void an_unreachable_target_counts_with_what_it_said(void **state)
{
    const struct cluster_state *s = state_ref(*state);
    struct quota_sums *q = quota_sums_new();
    says(q, s, "t1", "a", 1, 100);
    test_state_apply(&s, &(struct command){
                             .kind = CMD_NODE_STATE, .name = "t2", .node_state = NODE_UNREACHABLE});
    says(q, s, "t1", "a", 1, 100);
    _cleanup_json_ json_t *alone = quota_sums_reply(q, s, "t1"); /* t2 was never heard */
    assert_non_null(alone);
    says(q, s, "t2", "a", 5, 500); /* its last word */
    says(q, s, "t1", "a", 1, 100);
    assert_sum(q, id_of(s, "a"), 6, 600);
    quota_sums_free(q);
    state_unref(s);
}

static void what_is_gone_is_dropped(void **state)
{
    const struct cluster_state *s = state_ref(*state);
    struct quota_sums *q = quota_sums_new();
    _cleanup_json_ json_t *none = json_pack("{s:i}", "quota_bytes", 0);
    uint64_t a = id_of(s, "a"), b = id_of(s, "b");
    says(q, s, "t1", "a", 1, 100);
    says(q, s, "t2", "a", 2, 200);
    says(q, s, "t2", "b", 4, 400);
    test_state_apply(&s, &(struct command){.kind = CMD_BUCKET_PROPS, .name = "b", .patch = none});
    says(q, s, "t1", "a", 1, 100);
    assert_sum(q, b, 0, 0);
    test_state_apply(&s, &(struct command){
                             .kind = CMD_NODE_STATE, .name = "t2", .node_state = NODE_UNREACHABLE});
    test_state_apply(&s, &(struct command){.kind = CMD_NODE_REMOVE, .name = "t2", .force = true});
    says(q, s, "t1", "a", 1, 100);
    assert_sum(q, a, 1, 100);
    quota_sums_free(q);
    state_unref(s);
}

static void a_wrong_row_is_an_error(void **state)
{
    const struct cluster_state *s = *state;
    struct quota_sums *q = quota_sums_new();
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *list =
        json_pack("[{s:i, s:i, s:i}]", "bucket", 1, "objects", -1, "bytes", 1);
    assert_int_equal(quota_sums_take(q, s, "t1", list, &err), E_JSON);
    quota_sums_free(q);
}

/* A reply to each of which all had their part would be too large for a keepalive. */
static void of_many_buckets_each_has_its_turn(void **state)
{
    const struct cluster_state *s = state_ref(*state);
    struct quota_sums *q = quota_sums_new();
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    size_t heard[2 * QUOTAS_AT_ONCE] = {0};
    char name[16];
    props.quota_objects = 1;
    for (int i = 0; i <= QUOTAS_AT_ONCE; i++) {
        snprintf(name, sizeof name, "many-%d", i);
        test_state_apply(
            &s, &(struct command){.kind = CMD_BUCKET_CREATE, .name = name, .props = &props});
        says(q, s, "t1", name, 1, 1);
        says(q, s, "t2", name, 1, 1);
    }
    for (int turn = 0; turn < 2; turn++) {
        _cleanup_json_ json_t *reply = quota_sums_reply(q, s, "t1");
        assert_int_equal(json_array_size(reply), QUOTAS_AT_ONCE);
        for (size_t i = 0; i < QUOTAS_AT_ONCE; i++)
            heard[json_integer_value(json_object_get(json_array_get(reply, i), "bucket"))]++;
    }
    for (int i = 0; i <= QUOTAS_AT_ONCE; i++) {
        snprintf(name, sizeof name, "many-%d", i);
        assert_in_range(heard[id_of(s, name)], 1, 2);
    }
    quota_sums_free(q);
    state_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_hears_what_the_others_have, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fresh_primary_says_nothing_before_all_were_heard, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_unreachable_target_counts_with_what_it_said, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_gone_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wrong_row_is_an_error, setup, teardown),
        cmocka_unit_test_setup_teardown(of_many_buckets_each_has_its_turn, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
