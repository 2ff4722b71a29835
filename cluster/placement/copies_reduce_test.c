#include "cluster/placement/copies_reduce.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/command/command.h"
#include "cluster/placement/lag.h"
#include "cluster/placement/owners.h"
#include "cluster/testing/test_state.h"
#include "common/jsonx.h"
#include "common/mem.h"

static const struct cluster_state *s;

static int try_to(struct command cmd, struct error *err)
{
    const struct cluster_state *next;
    int r = command_apply(s, &cmd, &next, err);
    if (r != 0)
        return r;
    state_unref(s);
    s = next;
    return 0;
}

static void apply(struct command cmd)
{
    test_state_apply(&s, &cmd);
}

static void join(const char *id, const char *boot)
{
    test_state_join(&s, id, boot, false);
}

static void set(const char *id, enum node_state state)
{
    apply((struct command){.kind = CMD_NODE_STATE, .name = id, .node_state = state, .force = true});
}

static int try_copies(int copies, const char *words)
{
    _cleanup_json_ json_t *patch = json_pack("{s:i}", "copies", copies);
    struct error err = ERROR_INIT;
    int r = try_to((struct command){.kind = CMD_BUCKET_PROPS, .name = "b", .patch = patch}, &err);
    if (words != NULL && strstr(err.message, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, err.message);
    return r;
}

static const struct bucket *bucket(void)
{
    return bmd_bucket(&s->bmd, "b");
}

static void repaired(void)
{
    const struct command done = {
        .kind = CMD_LAG_DONE, .lagged = s->smap.lagged, .placed = s->smap.placed};
    apply(done);
}

static void filled(void)
{
    apply((struct command){.kind = CMD_COPIES_FILLED,
                           .lagged = s->smap.lagged,
                           .placed = s->smap.placed,
                           .raised = bucket()->raised});
}

/* What a job that is made now would be for. */
static struct copies_reduce_fence fence(void)
{
    return copies_reduce_fence(s, bucket());
}

/* Each target was through with a job for this. */
static int trimmed_for(struct copies_reduce_fence f)
{
    return try_to((struct command){.kind = CMD_COPIES_LOWERED, .fence = f}, NULL);
}

static void trimmed(void)
{
    assert_int_equal(trimmed_for(fence()), 0);
}

/* t0 to t3, and three copies. */
static int begin(void **unused)
{
    static const char *const ids[] = {"t0", "t1", "t2", "t3"};
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    (void)unused;
    props.copies = 3;
    s = state_new("c");
    for (size_t i = 0; i < 4; i++)
        join(ids[i], "b");
    apply((struct command){.kind = CMD_MOVES_DONE, .placed = s->smap.placed});
    apply((struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props});
    return 0;
}

static int end(void **unused)
{
    (void)unused;
    state_unref(s);
    return 0;
}

static void it_is_remembered_until_a_job_has_removed_what_is_too_many(void **unused)
{
    (void)unused;
    assert_int_equal(copies_reduce_latest(&s->bmd), 0);
    assert_int_equal(try_copies(2, NULL), 0);
    assert_int_equal(copies_reduce_latest(&s->bmd), s->bmd.version);
    assert_int_equal(bucket()->lowered_from, 3);
    assert_int_equal(bucket()->filled, 2);
    const struct copies_reduce_fence first = fence();
    assert_int_equal(first.lowered, s->bmd.version);
    assert_int_equal(try_copies(1, NULL), 0);
    assert_int_equal(bucket()->lowered_from, 3);
    assert_true(fence().lowered > first.lowered);
    assert_int_equal(trimmed_for(first), E_STALE_MAP); /* it knew of the first time only */
    assert_true(bucket_has_surplus(bucket()));
    assert_true(bucket_has_copies(bucket()));
    assert_int_equal(state_format(s), 2);
    trimmed();
    assert_false(bucket_has_surplus(bucket()));
    assert_false(bucket_has_copies(bucket()));
    assert_int_equal(state_format(s), 1);
}

static void one_bucket_ends_without_another(void **unused)
{
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    (void)unused;
    props.copies = 2;
    apply((struct command){.kind = CMD_BUCKET_CREATE, .name = "c", .props = &props});
    _cleanup_json_ json_t *patch = json_pack("{s:i}", "copies", 1);
    assert_int_equal(try_copies(1, NULL), 0);
    const struct copies_reduce_fence first = fence();
    apply((struct command){.kind = CMD_BUCKET_PROPS, .name = "c", .patch = patch});
    assert_int_equal(trimmed_for(copies_reduce_fence(s, bmd_bucket(&s->bmd, "c"))), 0);
    assert_false(bucket_has_surplus(bmd_bucket(&s->bmd, "c")));
    assert_true(bucket_has_surplus(bucket()));
    assert_false(lag_lets_forget(s));                                /* of any bucket */
    assert_int_equal(copies_reduce_check_fence(s, &first, NULL), 0); /* nor is its job overtaken */
    trimmed();
    assert_true(lag_lets_forget(s));
}

static void a_fence_is_of_the_bucket_and_the_map(void **unused)
{
    struct copies_reduce_fence f, read;
    struct error err = ERROR_INIT;
    (void)unused;
    assert_int_equal(try_copies(2, NULL), 0);
    f = fence();
    assert_int_equal(copies_reduce_check_fence(s, &f, NULL), 0);
    _cleanup_json_ json_t *doc = copies_reduce_fence_to_json(&f);
    assert_int_equal(copies_reduce_fence_from_json(doc, &read, NULL), 0);
    assert_memory_equal(&f, &read, sizeof f);
    json_object_del(doc, "bucket"); /* of a release that had one job for all */
    assert_int_equal(copies_reduce_fence_from_json(doc, &read, NULL), E_JSON);
    apply((struct command){.kind = CMD_BUCKET_RENAME, .name = "b", .text = "d"});
    assert_int_equal(copies_reduce_check_fence(s, &f, NULL), 0);
    apply((struct command){.kind = CMD_BUCKET_RENAME, .name = "d", .text = "b"});
    join("t1", "again");
    assert_int_equal(copies_reduce_check_fence(s, &f, &err), E_STALE_MAP);
    assert_non_null(strstr(err.message, "fallen behind"));
    repaired();
    f = fence();
    assert_int_equal(try_copies(3, NULL), 0);
    assert_int_equal(copies_reduce_check_fence(s, &f, &err), E_STALE_MAP);
    assert_non_null(strstr(err.message, "copies have changed"));
    f = fence();
    apply((struct command){.kind = CMD_BUCKET_DESTROY, .name = "b"});
    assert_int_equal(copies_reduce_check_fence(s, &f, NULL), E_STALE_MAP);
}

static void it_outlives_documents(void **unused)
{
    struct cluster_state *read;
    (void)unused;
    assert_int_equal(try_copies(1, NULL), 0);
    _cleanup_json_ json_t *doc = state_to_json(s);
    assert_int_equal(state_from_json(doc, &read, NULL), 0);
    const struct bucket *b = bmd_bucket(&read->bmd, "b");
    assert_int_equal(b->lowered_from, 3);
    assert_int_equal(b->lowered, bucket()->lowered);
    state_unref(read);
}

static void it_waits_until_all_targets_are_there_and_whole(void **unused)
{
    (void)unused;
    set("t1", NODE_UNREACHABLE);
    assert_int_equal(try_copies(2, "'t1' is unreachable"), E_NODE_STATE);
    set("t1", NODE_ACTIVE);
    assert_int_equal(try_copies(2, "'t1' is to be repaired first"), E_NODE_STATE);
    repaired();
    join("t1", "again"); /* another owner acts, who is not the first */
    assert_int_equal(try_copies(2, "'t1' is to be repaired first"), E_NODE_STATE);
    repaired();
    apply((struct command){.kind = CMD_NODE_ABSENT, .name = "t1", .absent = true});
    assert_int_equal(try_copies(2, "'t1' is without some"), E_NODE_STATE);
    apply((struct command){.kind = CMD_NODE_ABSENT, .name = "t1", .absent = false});
    repaired();
    join("t4", "b");
    assert_int_equal(try_copies(2, "moved"), E_JOB_STATE);
    apply((struct command){.kind = CMD_MOVES_DONE, .placed = s->smap.placed});
    assert_int_equal(try_copies(2, NULL), 0);
}

static void it_goes_below_what_a_raise_has_not_filled(void **unused)
{
    (void)unused;
    assert_int_equal(try_copies(4, NULL), 0);
    assert_int_equal(bucket()->filled, 3);
    assert_int_equal(try_copies(2, NULL), 0);
    assert_int_equal(bucket()->filled, 2);
    assert_int_equal(bucket()->raised, 0);
    assert_int_equal(bucket()->lowered_from, 4);
}

static void more_copies_than_targets_become_as_many(void **unused)
{
    (void)unused;
    assert_int_equal(try_copies(8, NULL), 0);
    filled();
    assert_int_equal(try_copies(4, NULL), 0);
    trimmed();
    assert_false(bucket_has_surplus(bucket()));
}

static void raised_again_it_ends_after_that(void **unused)
{
    (void)unused;
    assert_int_equal(try_copies(1, NULL), 0);
    const uint64_t before = fence().lowered;
    assert_int_equal(try_copies(2, NULL), 0);
    assert_true(fence().lowered > before); /* a job that is under way begins anew */
    assert_int_equal(bucket()->filled, 1);
    assert_false(copies_reduce_may_end(s, bucket()));
    trimmed();
    assert_true(bucket_has_surplus(bucket()));
    filled();
    assert_true(copies_reduce_may_end(s, bucket()));
    trimmed();
    assert_false(bucket_has_surplus(bucket()));
}

static void it_does_not_end_while_one_is_away_that_may_have_more(void **unused)
{
    (void)unused;
    assert_int_equal(try_copies(1, NULL), 0);
    const struct copies_reduce_fence before = fence();
    set("t2", NODE_UNREACHABLE);
    trimmed();
    assert_true(bucket_has_surplus(bucket()));
    set("t2", NODE_ACTIVE); /* it lags, though no bucket keeps several copies */
    assert_int_equal(smap_node(&s->smap, "t2")->lag, LAG_MISSED);
    trimmed();
    assert_true(bucket_has_surplus(bucket()));
    repaired();
    assert_int_equal(trimmed_for(before), E_STALE_MAP);
    assert_true(bucket_has_surplus(bucket()));
    trimmed();
    assert_false(bucket_has_surplus(bucket()));
}

static void deletions_are_remembered_meanwhile(void **unused)
{
    (void)unused;
    assert_true(lag_lets_forget(s));
    assert_int_equal(try_copies(1, NULL), 0);
    assert_false(lag_lets_forget(s));
    trimmed();
    assert_true(lag_lets_forget(s));
}

static size_t showing(const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < s->smap.count; i++)
        count += copies_reduce_shows(s, bucket(), name, s->smap.nodes[i].id);
    return count;
}

static void a_target_shows_what_it_owns(void **unused)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    (void)unused;
    assert_int_equal(try_copies(1, NULL), 0);
    for (size_t i = 0; i < 8; i++) {
        struct owners o;
        owners_of(s, bucket(), names[i], &o);
        assert_int_equal(o.count, 1);
        assert_true(copies_reduce_shows(s, bucket(), names[i], o.acting->id));
        assert_int_equal(showing(names[i]), 1);
    }
    assert_int_equal(try_copies(3, NULL), 0);
    for (size_t i = 0; i < 8; i++) /* the others are not filled yet */
        assert_int_equal(showing(names[i]), 1);
    filled();
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(showing(names[i]), 3);
}

static void an_earlier_owner_shows_what_it_owned(void **unused)
{
    (void)unused;
    assert_int_equal(try_copies(1, NULL), 0);
    struct owners before, now;
    owners_of(s, bucket(), "a", &before);
    _cleanup_free_ char *first = xstrdup(before.acting->id); /* the map goes */
    set(first, NODE_MAINTENANCE);
    owners_of(s, bucket(), "a", &now);
    assert_string_not_equal(now.acting->id, first);
    assert_true(copies_reduce_shows(s, bucket(), "a", now.acting->id));
    assert_true(copies_reduce_shows(s, bucket(), "a", first));
    assert_int_equal(showing("a"), 2);
}

static size_t strays(const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < s->smap.count; i++)
        count += copies_reduce_is_stray(s, bucket(), name, s->smap.nodes[i].id);
    return count;
}

/* Who owned a name by the earlier map, too, has no stray: the rebalance moves what it has. */
static void one_that_joins_leaves_strays_to_the_job(void **unused)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    size_t moved = 0;
    (void)unused;
    assert_int_equal(strays("a"), 0);
    assert_int_equal(try_copies(1, NULL), 0);
    const struct copies_reduce_fence before = fence();
    assert_int_equal(strays("a"), 3);
    join("t4", "b");
    assert_false(copies_reduce_may_end(s, bucket()));
    for (size_t i = 0; i < 8; i++) {
        struct owners o;
        owners_of(s, bucket(), names[i], &o);
        bool is_new = strcmp(o.acting->id, "t4") == 0;
        assert_int_equal(strays(names[i]), is_new ? 3 : 4);
        assert_false(copies_reduce_is_stray(s, bucket(), names[i], o.acting->id));
        moved += is_new;
    }
    assert_in_range(moved, 1, 7);
    trimmed();
    assert_true(bucket_has_surplus(bucket()));
    apply((struct command){.kind = CMD_MOVES_DONE, .placed = s->smap.placed});
    assert_int_equal(strays("a"), 4);
    assert_true(copies_reduce_may_end(s, bucket()));
    assert_int_equal(trimmed_for(before), E_STALE_MAP);
    trimmed();
    assert_int_equal(strays("a"), 0);
}

static void it_waits_for_jobs_that_use_the_bucket(void **unused)
{
    (void)unused;
    struct job *job = job_new("srt-1", "sort");
    job->state = JOB_QUEUED;
    job->plan = json_pack("{s:I}", "output_bucket_id", (json_int_t)bucket()->id);
    job->spec = json_object();
    apply((struct command){.kind = CMD_JOB_CREATE, .name = job->id, .job = job});
    assert_int_equal(try_copies(1, "job 'srt-1'"), E_JOB_STATE);
    assert_int_equal(try_copies(4, NULL), 0);
    job_unref(job);
}

static int try_restore(const struct cluster_state *from, const char *words)
{
    struct error err = ERROR_INIT;
    int r = try_to((struct command){.kind = CMD_RESTORE,
                                    .restored = from,
                                    .term = 1,
                                    .seen_bmd = s->bmd.version,
                                    .seen_config = s->config.version},
                   &err);
    if (words != NULL && strstr(err.message, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, err.message);
    return r;
}

static void a_restore_changes_no_copies(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *three = state_ref(s);
    assert_int_equal(try_copies(2, NULL), 0);
    _cleanup_state_ const struct cluster_state *two = state_ref(s);
    assert_int_equal(try_restore(three, "set copies to 3 first"), E_PRECONDITION);
    trimmed();
    assert_int_equal(try_restore(two, NULL), 0);
    assert_false(bucket_has_surplus(bucket())); /* as it is now, not as it was */
    assert_int_equal(fence().lowered, 0);
    assert_int_equal(try_copies(3, NULL), 0);
    const uint64_t raised = bucket()->raised;
    assert_int_equal(try_restore(three, NULL), 0);
    assert_int_equal(bucket()->filled, 2);
    assert_int_equal(bucket()->raised, raised);
    apply((struct command){.kind = CMD_BUCKET_DESTROY, .name = "b"});
    assert_int_equal(try_restore(two, NULL), 0);
    assert_int_equal(bucket()->props.copies, 2);
}

#define reduce_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        reduce_test(it_is_remembered_until_a_job_has_removed_what_is_too_many),
        reduce_test(one_bucket_ends_without_another),
        reduce_test(a_fence_is_of_the_bucket_and_the_map),
        reduce_test(it_outlives_documents),
        reduce_test(it_waits_until_all_targets_are_there_and_whole),
        reduce_test(it_goes_below_what_a_raise_has_not_filled),
        reduce_test(more_copies_than_targets_become_as_many),
        reduce_test(raised_again_it_ends_after_that),
        reduce_test(it_does_not_end_while_one_is_away_that_may_have_more),
        reduce_test(deletions_are_remembered_meanwhile),
        reduce_test(a_target_shows_what_it_owns),
        reduce_test(an_earlier_owner_shows_what_it_owned),
        reduce_test(one_that_joins_leaves_strays_to_the_job),
        reduce_test(it_waits_for_jobs_that_use_the_bucket),
        reduce_test(a_restore_changes_no_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
