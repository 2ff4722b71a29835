/* Mountpaths that are not there, and directories that are no disk of ours. */
#include "target/testing/store_fixture.h"

static void test_a_missing_one_is_missed(void **state)
{
    (void)state;
    fixture_open();
    fixture_close();
    fixture_run("mv A B", "mp1", "away");
    fixture_refused("2", (struct mountpaths_config){0}, "mp1' is missing");
    fixture_refused("1,2", (struct mountpaths_config){0}, "mp1' is missing");
    fixture_run("test ! -e A", "mp1", ""); /* nothing was begun in its place */
    fixture_open_with("2", (struct mountpaths_config){.lost_ok = true});
    assert_true(fixture_set()->settled);
    fixture_close();
    fixture_open_with("2", (struct mountpaths_config){0});
}

static void test_one_that_is_not_named_is_remembered(void **state)
{
    (void)state;
    fixture_open();
    put_text("a", "1");
    fixture_close();
    fixture_open_with("2", (struct mountpaths_config){0});
    assert_int_equal(fixture_set()->count, 2);
    assert_text("a", "1");
}

/* Its names are refused, not unknown, until it is back. */
static void test_a_missing_one_may_be_disabled(void **state)
{
    (void)state;
    fixture_open();
    for (char name[2] = "a"; *name <= 'z'; (*name)++)
        put_text(name, name);
    fixture_close();
    fixture_run("mv A B", "mp1", "away");
    fixture_open_with("1,2", (struct mountpaths_config){.missing_ok = true});
    unsigned refused = 0;
    for (char name[2] = "a"; *name <= 'z'; (*name)++) {
        struct object o;
        int code = object_head(fx.store, BUCKET, name, &o, NULL);
        assert_true(code == 0 || code == E_MOUNTPATH_DISABLED);
        refused += code != 0;
        assert_int_equal(put_text_as(name, name, DURABILITY_ASYNC, NULL), code);
    }
    assert_in_range(refused, 1, 25);
    fixture_close();
    fixture_open(); /* remembered, without being told again */
    struct error err = ERROR_INIT;
    char path[100];
    snprintf(path, sizeof path, "%s/mp1", fx.dir);
    assert_int_equal(mountpaths_enable(fx.mountpaths, path, &err), E_MOUNTPATH_STATE);
    fixture_run("mv A B", "away", "mp1");
    assert_int_equal(mountpaths_enable(fx.mountpaths, path, &err), 0);
    for (char name[2] = "a"; *name <= 'z'; (*name)++)
        assert_text(name, name);
}

static const struct roster_member *member_at(const char *name)
{
    char path[100];
    snprintf(path, sizeof path, "%s/%s", fx.dir, name);
    size_t i = roster_find_path(fixture_set()->roster, path);
    assert_int_not_equal(i, SIZE_MAX);
    return &fixture_set()->roster->members[i];
}

/* One of two is there, and mp1's place is not touched. */
static void assert_mp1_is_missed(const char *words)
{
    fixture_open_with("1,2", (struct mountpaths_config){.missing_ok = true});
    assert_int_equal(fixture_set()->count, 1);
    assert_int_equal(fixture_set()->roster->count, 2);
    assert_true(member_at("mp1")->missing && member_at("mp1")->disabled);
    if (strstr(member_at("mp1")->why, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, member_at("mp1")->why);
    fixture_close();
}

static void test_an_empty_directory_is_no_disk(void **state)
{
    (void)state;
    fixture_open();
    fixture_close();
    fixture_run("mv A B", "mp1", "away");
    fixture_run("mkdir A", "mp1", "");
    assert_mp1_is_missed("missing at the start");
    fixture_run("test ! -e A/.dfc", "mp1", "");
    fixture_run("mkdir A/.dfc", "mp1", ""); /* of a start that was cut short there */
    assert_mp1_is_missed("missing at the start");
    fixture_run("test ! -e A/.dfc/format.json", "mp1", "");
}

static void test_another_targets_disk_is_not_ours(void **state)
{
    (void)state;
    fixture_open_with("1", (struct mountpaths_config){.target_id = "t2"});
    fixture_close();
    fixture_run("mv A B", "mp1", "theirs");
    fixture_open();
    fixture_close();
    fixture_run("mv A B", "mp1", "away");
    fixture_run("mv A B", "theirs", "mp1");
    assert_mp1_is_missed("of target 't2'");
    fixture_run("grep -q '\"target\":\"t2\"' A/.dfc/format.json", "mp1", "");
}

/* The machine has started without its disks, and then with one of them: what the first start has
 * made in the empty directories counts for nothing. */
static void test_what_was_begun_without_disks_counts_for_nothing(void **state)
{
    (void)state;
    fixture_open();
    assert_int_equal(mountpaths_set_cluster(fx.mountpaths, "c-1", NULL), 0);
    _cleanup_free_ char *id = xstrdup(member_at("mp1")->id);
    for (char name[2] = "a"; *name <= 'z'; (*name)++)
        put_text(name, name);
    fixture_close();
    fixture_run("mv A B", "mp1", "away1");
    fixture_run("mv A B", "mp2", "away2");
    fixture_open_with("1,2", (struct mountpaths_config){.missing_ok = true});
    fixture_close();
    fixture_run("rm -r A", "mp2", "");
    fixture_run("mv A B", "away2", "mp2");
    assert_mp1_is_missed("another mountpath is there");
    fixture_open_with("1,2", (struct mountpaths_config){.missing_ok = true});
    assert_string_equal(member_at("mp1")->id, id);
    for (char name[2] = "a"; *name <= 'z'; (*name)++) {
        struct object o;
        int code = object_head(fx.store, BUCKET, name, &o, NULL);
        assert_true(code == 0 || code == E_MOUNTPATH_DISABLED);
    }
}

static void test_a_link_that_leads_nowhere_is_a_missing_disk(void **state)
{
    (void)state;
    fixture_run("mkdir A", "disk", "");
    fixture_run("ln -s disk A", "mp1", "");
    fixture_open();
    fixture_close();
    fixture_run("mv A B", "disk", "away");
    fixture_open_with("1,2", (struct mountpaths_config){.missing_ok = true});
    assert_true(member_at("disk")->missing);
    assert_int_equal(fixture_set()->count, 1);
    fixture_run("test ! -e A", "disk", "");
}

static void test_without_any_disk_nothing_starts(void **state)
{
    (void)state;
    const struct mountpaths_config missing_ok = {.missing_ok = true};
    fixture_open();
    fixture_close();
    fixture_run("mv A B", "mp1", "away");
    fixture_run("sh -c 'echo damaged >A/.dfc/life.json'", "mp2", "");
    fixture_run("rm -r A/.dfc/index", "mp2", "");
    fixture_run("touch A/.dfc/index", "mp2", "");
    fixture_refused("1,2", missing_ok, "no mountpath works");
    fixture_refused("1,2,3", missing_ok, "no mountpath works"); /* a new one holds nothing of it */
    fixture_run("test ! -e A", "mp1", "");
}

static void test_a_moved_one_is_not_a_missing_one(void **state)
{
    (void)state;
    fixture_open();
    fixture_close();
    fixture_run("mv A B", "mp1", "mp3");
    fixture_refused("2,3", (struct mountpaths_config){.missing_ok = true}, "mountpath-moved-ok");
}

static void test_a_missing_one_is_attached_again(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char path[100];
    fixture_open();
    put_text("a", "1");
    fixture_close();
    fixture_run("mv A B", "mp1", "away");
    fixture_open_with("1,2", (struct mountpaths_config){.missing_ok = true});
    snprintf(path, sizeof path, "%s/mp1", fx.dir);
    fixture_run("mkdir A", "mp1", "");
    assert_int_equal(mountpaths_attach(fx.mountpaths, path, &err), E_MOUNTPATH_STATE);
    fixture_run("test ! -e A/.dfc", "mp1", "");
    fixture_run("rmdir A", "mp1", "");
    fixture_run("mv A B", "away", "mp1");
    assert_int_equal(mountpaths_attach(fx.mountpaths, path, &err), 0);
    assert_false(member_at("mp1")->missing || member_at("mp1")->disabled);
    assert_text("a", "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        closed_test(test_a_missing_one_is_missed),
        closed_test(test_one_that_is_not_named_is_remembered),
        closed_test(test_a_missing_one_may_be_disabled),
        closed_test(test_an_empty_directory_is_no_disk),
        closed_test(test_another_targets_disk_is_not_ours),
        closed_test(test_what_was_begun_without_disks_counts_for_nothing),
        closed_test(test_a_link_that_leads_nowhere_is_a_missing_disk),
        closed_test(test_without_any_disk_nothing_starts),
        closed_test(test_a_moved_one_is_not_a_missing_one),
        closed_test(test_a_missing_one_is_attached_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
