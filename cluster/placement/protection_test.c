#include "cluster/placement/protection.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/testing/test_state.h"

static const struct cluster_state *s;

static void apply(struct command cmd)
{
    test_state_apply(&s, &cmd);
}

static void join(const char *id)
{
    test_state_join(&s, id, "b", false);
}

static void set(const char *id, enum node_state state)
{
    apply((struct command){.kind = CMD_NODE_STATE, .name = id, .node_state = state});
}

static void moves_done(void)
{
    apply((struct command){.kind = CMD_MOVES_DONE, .placed = s->smap.placed});
}

static void create(const char *name, uint32_t copies)
{
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    props.copies = copies;
    apply((struct command){.kind = CMD_BUCKET_CREATE, .name = name, .props = &props});
}

/* words: part of the reason; "" for none. */
static void is_so(const char *bucket, enum protection p, const char *words)
{
    _cleanup_(buf_done)
    struct buf why = BUF_INIT;
    const struct bucket *b = bmd_bucket(&s->bmd, bucket);
    assert_string_equal(protection_name(protection_of(s, b)), protection_name(p));
    protection_why(s, b, &why);
    if (*words == '\0' ? why.len > 0 : strstr(buf_str(&why), words) == NULL)
        fail_msg("'%s' is not '%s'", buf_str(&why), words);
}

static int begin(void **unused)
{
    (void)unused;
    s = state_new("c");
    join("t0");
    join("t1");
    create("two", 2);
    create("one", 1);
    return 0;
}

static int end(void **unused)
{
    (void)unused;
    state_unref(s);
    return 0;
}

static void several_copies_are_as_their_owners(void **unused)
{
    (void)unused;
    is_so("two", PROTECTION_WHOLE, "");
    set("t0", NODE_UNREACHABLE);
    is_so("two", PROTECTION_DEGRADED, "target 't0' is unreachable");
    set("t0", NODE_ACTIVE);
    is_so("two", PROTECTION_DEGRADED,
          "target 't0' lacks writes that it missed, which a repair brings");
    set("t1", NODE_UNREACHABLE);
    is_so("two", PROTECTION_UNAVAILABLE, "target 't1' is unreachable"); /* t0 missed something */
    set("t1", NODE_ACTIVE);
    apply(
        (struct command){.kind = CMD_LAG_DONE, .lagged = s->smap.lagged, .placed = s->smap.placed});
    is_so("two", PROTECTION_WHOLE, "");
}

static void copies_that_are_not_there_yet_are_missed(void **unused)
{
    (void)unused;
    create("three", 3);
    is_so("three", PROTECTION_DEGRADED, "3 copies are asked for, and there are 2 targets");
    join("t2");
    is_so("three", PROTECTION_DEGRADED, "moved");
    is_so("two", PROTECTION_DEGRADED, "moved");
    moves_done();
    is_so("three", PROTECTION_WHOLE, "");
    json_t *patch = json_pack("{s:i}", "copies", 3);
    apply((struct command){.kind = CMD_BUCKET_PROPS, .name = "two", .patch = patch});
    json_decref(patch);
    is_so("two", PROTECTION_DEGRADED, "raised from 2 to 3");
}

static void slices_want_a_target_each(void **unused)
{
    (void)unused;
    _cleanup_(buf_done)
    struct buf why = BUF_INIT;
    struct bucket b = *bmd_bucket(&s->bmd, "two");
    b.props.ec_data = 2;
    b.props.ec_parity = 1;
    assert_int_equal(protection_of(s, &b), PROTECTION_DEGRADED);
    protection_why(s, &b, &why);
    assert_string_equal(
        buf_str(&why),
        "3 slices are asked for, and there are 2 targets: too few to store a large object");
    join("t2");
    moves_done();
    b = *bmd_bucket(&s->bmd, "two");
    b.props.ec_data = 2;
    b.props.ec_parity = 1;
    assert_int_equal(protection_of(s, &b), PROTECTION_WHOLE);
}

static void absent(const char *id, bool is)
{
    apply((struct command){.kind = CMD_NODE_ABSENT, .name = id, .absent = is});
}

static void who_is_absent_is_missed(void **unused)
{
    (void)unused;
    absent("t0", true);
    is_so("two", PROTECTION_DEGRADED,
          "target 't0' serves no copies until it reports all its disks");
    is_so("one", PROTECTION_UNAVAILABLE,
          "target 't0' serves no copies until it reports all its disks");
    absent("t0", false);
    is_so("two", PROTECTION_DEGRADED,
          "target 't0' lacks writes that it missed, which a repair brings");
    is_so("one", PROTECTION_ONE_COPY, "");
    apply(
        (struct command){.kind = CMD_LAG_DONE, .lagged = s->smap.lagged, .placed = s->smap.placed});
    set("t0", NODE_MAINTENANCE);
    absent("t0", true);
    is_so("two", PROTECTION_DEGRADED, "target 't0' does not answer, and the rebalance waits");
    is_so("one", PROTECTION_UNAVAILABLE, "target 't0' does not answer, and the rebalance waits");
    moves_done();
    is_so("one", PROTECTION_ONE_COPY, ""); /* it has nothing any more */
}

static void one_copy_is_called_so(void **unused)
{
    (void)unused;
    is_so("one", PROTECTION_ONE_COPY, "");
    join("t2"); /* what is to be moved is there */
    is_so("one", PROTECTION_ONE_COPY, "");
    set("t1", NODE_UNREACHABLE);
    is_so("one", PROTECTION_UNAVAILABLE, "target 't1' is unreachable");
    set("t1", NODE_ACTIVE); /* its lag is of no meaning there */
    is_so("one", PROTECTION_ONE_COPY, "");
}

static void no_target_at_all(void **unused)
{
    (void)unused;
    state_unref(s);
    s = state_new("c");
    create("two", 2);
    create("one", 1);
    is_so("one", PROTECTION_UNAVAILABLE, "there is no active target");
    is_so("two", PROTECTION_UNAVAILABLE, "2 copies are asked for, and there are 0 targets");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(several_copies_are_as_their_owners, begin, end),
        cmocka_unit_test_setup_teardown(copies_that_are_not_there_yet_are_missed, begin, end),
        cmocka_unit_test_setup_teardown(slices_want_a_target_each, begin, end),
        cmocka_unit_test_setup_teardown(who_is_absent_is_missed, begin, end),
        cmocka_unit_test_setup_teardown(one_copy_is_called_so, begin, end),
        cmocka_unit_test_setup_teardown(no_target_at_all, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
