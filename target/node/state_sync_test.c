/* Taking in states, and finding them again after a restart. */
#include "target/node/state_sync.h"

#include "common/jsonx.h"
#include "target/disk/state_file.h"
#include "target/testing/store_fixture.h"

static struct state_sync *taker;
static struct state_holder *holder;
static unsigned changes;

static void count_change(void *ctx, const struct cluster_state *s)
{
    (void)ctx;
    (void)s;
    changes++;
}

static int try_open_keeper(struct error *err)
{
    const struct state_sync_hooks hooks = {.changed = count_change};
    return state_sync_new(fx.mountpaths, "t1", &hooks, &taker, &holder, err);
}

static void open_keeper(void)
{
    struct error err = ERROR_INIT;
    if (try_open_keeper(&err) != 0)
        fail_msg("%s", err.message);
}

static int setup(void **state)
{
    int rc = fixture_setup(state);
    changes = 0;
    open_keeper();
    return rc;
}

static int teardown(void **state)
{
    state_sync_free(taker);
    return fixture_teardown(state);
}

static void restart(void)
{
    state_sync_free(taker);
    fixture_close();
    fixture_open();
    open_keeper();
}

/* A state with these versions; a map or bucket version that differs is a change of placement. */
static char *state_text(const char *cluster, uint64_t term, uint64_t version, uint64_t map)
{
    return xprintf("{\"format\": 1, \"cluster\": \"%s\", \"term\": %llu, \"version\": %llu, "
                   "\"next_bucket_id\": 1, \"primary\": \"p1\", \"smap\": {\"version\": %llu, "
                   "\"nodes\": []}, \"bmd\": {\"version\": 0, \"buckets\": []}, \"config\": "
                   "{\"version\": 0, \"values\": {}}, \"jobs\": {\"version\": 0, \"jobs\": []}}",
                   cluster, (unsigned long long)term, (unsigned long long)version,
                   (unsigned long long)map);
}

static int take(const char *cluster, uint64_t term, uint64_t version, uint64_t map)
{
    _cleanup_free_ char *text = state_text(cluster, term, version, map);
    return state_sync_take_json(taker, text, strlen(text), NULL);
}

static void assert_holds_state(uint64_t term, uint64_t version)
{
    _cleanup_state_ const struct cluster_state *s = state_current(holder);
    assert_int_equal(s->term, term);
    assert_int_equal(s->version, version);
}

static void test_the_greatest_state_is_kept_over_a_restart(void **state)
{
    (void)state;
    assert_false(state_sync_has_state(taker));
    assert_int_equal(take("c-1", 1, 7, 1), 0);
    assert_int_equal(take("c-1", 1, 6, 1), 0); /* older: no error, no change */
    assert_int_equal(take("c-1", 1, 7, 1), 0);
    assert_int_equal(changes, 1);
    assert_holds_state(1, 7);
    assert_int_equal(take("c-1", 2, 1, 1), 0);
    assert_holds_state(2, 1);
    restart();
    assert_true(state_sync_has_state(taker));
    assert_holds_state(2, 1);
    assert_int_equal(changes, 2);
}

/* Else a target that came without its disks would have been let in by a push. */
static void test_the_first_state_is_what_registering_gave(void **state)
{
    (void)state;
    _cleanup_free_ char *pushed = state_text("c-1", 1, 8, 1);
    assert_int_equal(state_sync_renew_json(taker, pushed, strlen(pushed), NULL), 0);
    assert_int_equal(state_sync_take_push(taker, pushed, strlen(pushed), NULL), 0);
    assert_false(state_sync_has_state(taker));
    assert_string_equal(mountpaths_cluster(fx.mountpaths), "");
    assert_int_equal(take("c-1", 1, 7, 1), 0);
    assert_int_equal(state_sync_renew_json(taker, pushed, strlen(pushed), NULL), 0);
    assert_holds_state(1, 8);
}

static void test_another_cluster_is_refused_for_ever(void **state)
{
    (void)state;
    assert_int_equal(take("c-1", 1, 7, 1), 0);
    assert_int_equal(take("c-2", 9, 9, 9), E_WRONG_CLUSTER);
    assert_holds_state(1, 7);
    restart();
    assert_int_equal(take("c-2", 9, 9, 9), E_WRONG_CLUSTER);
    assert_string_equal(mountpaths_cluster(fx.mountpaths), "c-1");
}

static void test_what_is_no_state_is_refused(void **state)
{
    (void)state;
    assert_int_equal(state_sync_take_json(taker, "{", 1, NULL), E_JSON);
    assert_int_equal(state_sync_take_json(taker, "{}", 2, NULL), E_JSON);
    assert_false(state_sync_has_state(taker));
    assert_string_equal(mountpaths_cluster(fx.mountpaths), "");
}

static void test_placement_ages_with_map_and_buckets_only(void **state)
{
    (void)state;
    uint64_t term, version;
    assert_int_equal(take("c-1", 1, 7, 1), 0);
    assert_int_equal(take("c-1", 1, 9, 1), 0); /* a job has moved */
    state_sync_placement(taker, &term, &version);
    assert_int_equal(term, 1);
    assert_int_equal(version, 7);
    assert_int_equal(take("c-1", 1, 12, 2), 0);
    state_sync_placement(taker, &term, &version);
    assert_int_equal(version, 12);
}

static void spoil(const char *mountpath, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s/.dfc/docs/state.json", fx.dir, mountpath);
    assert_int_equal(file_replace(path, text, strlen(text), 0640, NULL), 0);
}

/* But never what was found on the disks: it may be old. */
static void test_what_is_in_force_is_told_again(void **state)
{
    (void)state;
    state_sync_tell_again(taker);
    assert_int_equal(changes, 0);
    assert_int_equal(take("c-1", 1, 2, 1), 0);
    assert_int_equal(changes, 1);
    state_sync_tell_again(taker);
    assert_int_equal(changes, 2);
    restart();
    state_sync_tell_again(taker);
    assert_int_equal(changes, 2);
    assert_holds_state(1, 2);
}

static void test_nobody_is_told_at_the_end(void **state)
{
    (void)state;
    assert_int_equal(take("c-1", 1, 2, 1), 0);
    state_sync_quiet(taker);
    assert_int_equal(take("c-1", 1, 3, 1), 0);
    state_sync_tell_again(taker);
    assert_int_equal(changes, 1);
    assert_holds_state(1, 3);
}

static void test_one_good_copy_is_enough(void **state)
{
    (void)state;
    assert_int_equal(take("c-1", 1, 7, 1), 0);
    spoil("mp1", "{\"format\": 1, \"clus");
    restart();
    assert_holds_state(1, 7);
    _cleanup_free_ char *older = state_text("c-1", 1, 3, 1);
    spoil("mp1", older);
    restart();
    assert_holds_state(1, 7);
    spoil("mp1", "");
    spoil("mp2", "");
    restart();
    assert_false(state_sync_has_state(taker));
}

static void test_a_foreign_copy_is_refused_at_the_start(void **state)
{
    (void)state;
    assert_int_equal(take("c-1", 1, 7, 1), 0);
    _cleanup_free_ char *foreign = state_text("c-9", 5, 5, 1);
    spoil("mp2", foreign);
    state_sync_free(taker);
    taker = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(try_open_keeper(&err), E_MOUNTPATH);
    assert_non_null(strstr(err.message, "c-9"));
}

static int take_difference(uint64_t from, uint64_t to)
{
    _cleanup_free_ char *text =
        xprintf("{\"from\": {\"cluster\": \"c-1\", \"term\": 1, \"version\": %llu}, \"delta\": "
                "{\"term\": 1, \"version\": %llu, \"next_bucket_id\": 1, \"primary\": \"p1\"}}",
                (unsigned long long)from, (unsigned long long)to);
    return state_sync_take_push(taker, text, strlen(text), NULL);
}

static void assert_replies(uint64_t version)
{
    struct push_reply r = state_sync_reply(taker);
    assert_int_equal(r.version, version);
    assert_true(r.deltas);
}

static void test_a_difference_from_the_present_state_is_taken(void **state)
{
    (void)state;
    assert_int_equal(take_difference(0, 8), 0);
    assert_false(state_sync_has_state(taker)); /* registering comes first */
    assert_int_equal(take("c-1", 1, 7, 1), 0);
    assert_replies(7);
    assert_int_equal(take_difference(7, 9), 0);
    assert_replies(9);
    assert_int_equal(take_difference(7, 10), 0); /* it has 9: the primary is told so */
    assert_replies(9);
    restart();
    assert_int_equal(take_difference(9, 10), 0); /* its sum would tell if the disk had another 9 */
    assert_replies(10);
}

/* With full disks the newest state is in force all the same. */
static void test_full_disks_do_not_stop_the_state(void **state)
{
    (void)state;
    assert_int_equal(take("c-1", 1, 7, 1), 0);
    assert_int_equal(fault_configure("disk.write=ENOSPC", NULL), 0);
    assert_int_equal(take("c-1", 1, 8, 1), 0);
    assert_holds_state(1, 8);
    restart(); /* and starting needs no space either */
    assert_holds_state(1, 7);
}

#define state_sync_unit_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        state_sync_unit_test(test_the_greatest_state_is_kept_over_a_restart),
        state_sync_unit_test(test_the_first_state_is_what_registering_gave),
        state_sync_unit_test(test_another_cluster_is_refused_for_ever),
        state_sync_unit_test(test_what_is_no_state_is_refused),
        state_sync_unit_test(test_placement_ages_with_map_and_buckets_only),
        state_sync_unit_test(test_what_is_in_force_is_told_again),
        state_sync_unit_test(test_nobody_is_told_at_the_end),
        state_sync_unit_test(test_one_good_copy_is_enough),
        state_sync_unit_test(test_a_foreign_copy_is_refused_at_the_start),
        state_sync_unit_test(test_a_difference_from_the_present_state_is_taken),
        state_sync_unit_test(test_full_disks_do_not_stop_the_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
