/* Which directories a target takes for its mountpaths, and which it refuses. */
#include "target/testing/store_fixture.h"

#include <fcntl.h>
#include <sys/wait.h>

static void test_another_targets_is_refused(void **state)
{
    (void)state;
    fixture_open();
    fixture_close();
    fixture_refused("1,2", (struct mountpaths_config){.target_id = "t2"}, "belongs to target 't1'");
    fixture_open(); /* and is still ours */
}

static void test_the_same_directory_twice_is_refused(void **state)
{
    (void)state;
    fixture_refused("1,2,1", (struct mountpaths_config){0}, "in use");
    char link[128];
    snprintf(link, sizeof link, "%s/mp3", fx.dir);
    assert_int_equal(symlink("mp1", link), 0);
    fixture_refused("1,3", (struct mountpaths_config){0}, "in use");
    fixture_refused("", (struct mountpaths_config){0}, "no mountpath");
}

static void assert_list_refused(const char *list)
{
    struct error err = ERROR_INIT;
    struct mountpaths *m = NULL;
    const struct mountpaths_config config = {.target_id = "t1",
                                             .list = list,
                                             .index_map_size = 1 << 30,
                                             .disk_depth = 8,
                                             .readers = 1,
                                             .readers_queue = 8};
    assert_int_equal(mountpaths_open(&config, &m, &err), E_MOUNTPATH);
    if (strstr(err.message, "inside another") == NULL)
        fail_msg("%s", err.message);
}

static void test_one_inside_another_is_refused(void **state)
{
    (void)state;
    char list[300], sub[100];
    struct error err = ERROR_INIT;
    snprintf(list, sizeof list, "%s/mp1,%s/mp1/sub", fx.dir, fx.dir);
    assert_list_refused(list);
    snprintf(list, sizeof list, "%s/mp1/sub,%s/mp1", fx.dir, fx.dir);
    assert_list_refused(list);
    fixture_open(); /* nothing was left that is in its way */
    snprintf(sub, sizeof sub, "%s/mp1/sub", fx.dir);
    assert_int_equal(mountpaths_attach(fx.mountpaths, sub, &err), E_MOUNTPATH_STATE);
    snprintf(sub, sizeof sub, "%s/mp1/.dfc/jobs", fx.dir);
    assert_int_equal(mountpaths_attach(fx.mountpaths, sub, &err), E_MOUNTPATH_STATE);
    assert_int_equal(mountpaths_attach(fx.mountpaths, fx.dir, &err), E_MOUNTPATH_STATE);
    assert_non_null(strstr(err.message, "inside another"));
    snprintf(sub, sizeof sub, "%s/mp10", fx.dir); /* its name only begins so */
    assert_int_equal(mountpaths_attach(fx.mountpaths, sub, &err), 0);
    fixture_close();
    fixture_open();
}

static void test_inside_another_targets_is_refused(void **state)
{
    (void)state;
    char list[300];
    fixture_open_with("1", (struct mountpaths_config){.target_id = "t9"});
    snprintf(list, sizeof list, "%s/mp1/here", fx.dir);
    assert_list_refused(list);
}

static void test_two_daemons_never_share_one(void **state)
{
    (void)state;
    fixture_open();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct error err = ERROR_INIT;
        fx.mountpaths = NULL;
        _exit(fixture_try_open("1,2", (struct mountpaths_config){0}, &err) == E_MOUNTPATH ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_copies_and_moved_ones_are_refused(void **state)
{
    (void)state;
    fixture_open();
    put_text("a", "1");
    fixture_close();
    fixture_run("cp -a A B", "mp1", "mp3");
    fixture_refused("3,2", (struct mountpaths_config){0}, "mountpath-moved-ok");
    fixture_refused("1,2,3", (struct mountpaths_config){.moved_ok = true}, "is a copy of");
    fixture_run("rm -r A", "mp3", "");
    fixture_run("mv A B", "mp1", "mp3");
    fixture_refused("3,2", (struct mountpaths_config){0}, "mountpath-moved-ok");
    fixture_open_with("3,2", (struct mountpaths_config){.moved_ok = true});
    assert_text("a", "1");
    fixture_close();
    fixture_open_with("3,2", (struct mountpaths_config){0}); /* once was enough */
    assert_text("a", "1");
}

static void test_another_clusters_is_refused(void **state)
{
    (void)state;
    fixture_open_with("1", (struct mountpaths_config){0});
    assert_string_equal(mountpaths_cluster(fx.mountpaths), "");
    assert_int_equal(mountpaths_set_cluster(fx.mountpaths, "c-1", NULL), 0);
    fixture_close();
    fixture_open_with("2", (struct mountpaths_config){0});
    assert_int_equal(mountpaths_set_cluster(fx.mountpaths, "c-2", NULL), 0);
    fixture_close();
    fixture_refused("1,2", (struct mountpaths_config){0}, "belongs to cluster");
    fixture_open_with("1,3", (struct mountpaths_config){0}); /* a new one joins */
    fixture_close();
    fixture_open_with("1,3", (struct mountpaths_config){0});
    assert_string_equal(mountpaths_cluster(fx.mountpaths), "c-1");
}

static void test_without_a_cluster_nothing_is_formatted(void **state)
{
    (void)state;
    const struct mountpaths_config config = {.joined_only = true};
    fixture_run("mkdir -p A", "mp1", "");
    fixture_refused("1,2", config, "has not joined before");
    fixture_run("test ! -e A/.dfc && test ! -e B", "mp1", "mp2");
    fixture_open_with("1", (struct mountpaths_config){0});
    fixture_close();
    fixture_refused("1,2", config, "has not joined before"); /* formatted, and never let in */
    fixture_run("test ! -e A", "mp2", "");
    fixture_open_with("1", (struct mountpaths_config){0});
    assert_int_equal(mountpaths_set_cluster(fx.mountpaths, "c-1", NULL), 0);
    fixture_close();
    fixture_open_with("1,2", config);
}

static void *let_go_soon(void *set)
{
    usleep(200000);
    mountpath_set_unref(set);
    return NULL;
}

/* A request or a job holds what it was until it was disabled. */
static void test_enabling_waits_for_who_holds_it(void **state)
{
    (void)state;
    fixture_open();
    struct error err = ERROR_INIT;
    char path[100];
    pthread_t holder;
    snprintf(path, sizeof path, "%s/mp1", fx.dir);
    const struct mountpath_set *held = mountpaths_current(fx.mountpaths);
    assert_int_equal(mountpaths_disable(fx.mountpaths, path, "test", false, &err), 0);
    assert_int_equal(pthread_create(&holder, NULL, let_go_soon, (void *)held), 0);
    if (mountpaths_enable(fx.mountpaths, path, &err) != 0)
        fail_msg("%s", err.message);
    pthread_join(holder, NULL);
}

/* Where enable may not wait it says so, and what could be changed. */
static void test_enabling_waits_no_longer_than_it_may(void **state)
{
    (void)state;
    fixture_open_with("1,2", (struct mountpaths_config){.close_wait_ms = 1});
    struct error err = ERROR_INIT;
    char path[100];
    snprintf(path, sizeof path, "%s/mp1", fx.dir);
    const struct mountpath_set *held = mountpaths_current(fx.mountpaths);
    assert_int_equal(mountpaths_disable(fx.mountpaths, path, "test", false, &err), 0);
    assert_int_equal(mountpaths_enable(fx.mountpaths, path, &err), E_MOUNTPATH_STATE);
    assert_non_null(strstr(err.message, "mountpath_close_wait"));
    _cleanup_free_ char *id = xstrdup(held->roster->members[0].id);
    mountpath_set_unref(held);
    assert_true(mountpaths_wait_closed(fx.mountpaths, id, 20000));
    if (mountpaths_enable(fx.mountpaths, path, &err) != 0)
        fail_msg("%s", err.message);
}

/* What a release without weights and generations has written. */
static void test_format_1_is_read(void **state)
{
    (void)state;
    fixture_open();
    put_text("a", "1");
    fixture_close();
    for (unsigned i = 1; i <= 2; i++) {
        char name[8];
        snprintf(name, sizeof name, "mp%u", i);
        fixture_run("sed -i -E 's/\"format\":2/\"format\":1/; s/,\"generation\":[0-9]+//; "
                    "s/,\"anywhere\".*/}/; s/,\"(weight|since_ms)\":[0-9]+//g' A/.dfc/format.json",
                    name, "");
    }
    fixture_open();
    assert_true(fixture_set()->settled);
    assert_int_equal(fixture_set()->roster->members[0].weight, ROSTER_WEIGHT_DEFAULT);
    assert_text("a", "1");
    fixture_close();
    fixture_open();
    assert_int_equal(fixture_set()->roster->members[1].weight, ROSTER_WEIGHT_DEFAULT);
}

/* Objects that HRW would now put elsewhere are still found, listed once, replaced and deleted. */
static void test_an_added_one_loses_nothing(void **state)
{
    (void)state;
    enum { COUNT = 60 };
    fixture_open_with("1", (struct mountpaths_config){0});
    char name[16];
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "o%02u", i);
        put_text(name, "old");
    }
    fixture_close();
    fixture_open();
    assert_false(fixture_set()->settled);
    unsigned moved = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "o%02u", i);
        assert_text(name, "old");
        struct version before = version_of(name);
        moved += fixture_pick(name) != fixture_mp(0);
        if (i % 3 == 0) {
            put_text(name, "newer");
            assert_text(name, "newer");
            struct version after = version_of(name);
            assert_true(version_compare(&after, &before) > 0);
        } else if (i % 3 == 1) {
            assert_int_equal(delete_name(name), 0);
            assert_text(name, NULL);
        }
    }
    assert_in_range(moved, 10, COUNT - 10);
    for (int restart = 0; restart < 2; restart++) {
        _cleanup_free_ char *list = list_text();
        assert_int_equal(strlen(list), COUNT * 2 / 3 * strlen("o00:3 "));
        assert_null(strstr(list, "o01:"));
        fixture_close();
        fixture_forget_markers();
        fixture_open();
    }
    assert_false(fixture_set()->settled);
    assert_int_equal(mountpath_capacity(fixture_mp(0), &(uint64_t){0}, &(uint64_t){0}, NULL), 0);
}

static void test_an_empty_one_that_is_added_settles(void **state)
{
    (void)state;
    fixture_open_with("1", (struct mountpaths_config){0});
    fixture_close();
    fixture_open();
    assert_true(fixture_set()->settled);
}

static void test_objects_without_a_format_are_refused(void **state)
{
    (void)state;
    fixture_open();
    put_text("a", "1");
    fixture_close();
    fixture_run("rm A/.dfc/format.json", "mp1", "");
    fixture_run("mkdir -p A/.dfc/obj/7", "mp1", "");
    fixture_refused("1,2", (struct mountpaths_config){0}, "format.json is gone");
    fixture_run("echo '{\"format\": 3}' > A/.dfc/format.json", "mp1", "");
    fixture_refused("1,2", (struct mountpaths_config){0}, "format is 3");
    fixture_run("echo '{\"format\": 1' > A/.dfc/format.json", "mp1", "");
    fixture_refused("1,2", (struct mountpaths_config){0}, "format.json");
}

static void test_unfinished_writes_go_at_the_start(void **state)
{
    (void)state;
    fixture_open();
    fixture_close();
    fixture_run("echo x > A/.dfc/tmp/5; mkdir -p A/.dfc/tmp/6/ab", "mp1", "");
    fixture_open();
    assert_no_leftovers();
}

static void test_rebuilding_tells_loss_from_damage(void **state)
{
    (void)state;
    fixture_open_with("1", (struct mountpaths_config){0});
    put_text("async", "hello");
    assert_int_equal(put_text_as("sync", "hello", DURABILITY_SYNC, NULL), 0);
    put_text("fine", "hello");
    assert_int_equal(delete_name("fine"), 0);
    put_text("fine", "again");
    /* What power loss does to a file that was never synced: its length is not there. */
    fixture_run(
        "for f in $(find A/.dfc/obj -type f -size -6c -size +4c); do truncate -s 2 $f; done", "mp1",
        "");
    put_text("fine", "again");
    fixture_run("mkdir -p A/.dfc/obj/7/00; touch A/.dfc/obj/7/00/stray", "mp1", "");
    fixture_close();
    fixture_run("rm A/.dfc/index/complete A/.dfc/index/session", "mp1", "");
    fixture_open_with("1", (struct mountpaths_config){0});
    assert_text("async", NULL);
    assert_text("fine", "again");
    struct object o;
    assert_int_equal(object_open(fx.store, BUCKET, "sync", &o, NULL), E_CORRUPT);
    assert_list("fine:5 sync:5 "); /* damage is listed: it must not seem never to have been */
}

static void count_files(void *files, unsigned more, size_t bytes)
{
    (void)bytes;
    atomic_fetch_add((atomic_uint *)files, more);
}

static void test_reindex_can_be_asked_for(void **state)
{
    (void)state;
    atomic_uint files = 0;
    fixture_open();
    put_text("a", "1");
    put_text("b", "2");
    fixture_close();
    fixture_open_with("1,2", (struct mountpaths_config){.reindex = true,
                                                        .on_progress = count_files,
                                                        .progress_ctx = &files});
    assert_list("a:1 b:1 ");
    assert_int_equal(files, 2); /* a start that takes long shows how far it is */
}

/* A full disk must not keep its objects from being read after a restart. */
static void test_a_full_disk_starts(void **state)
{
    (void)state;
    fixture_open();
    put_text("a", "1");
    fixture_close();
    assert_int_equal(fault_configure("disk.write=ENOSPC,index.write=ENOSPC", NULL), 0);
    fixture_open();
    assert_text("a", "1");
    assert_list("a:1 ");
    assert_int_equal(put_text_as("b", "2", DURABILITY_SYNC, NULL), E_NO_SPACE);
    fixture_close();
    fixture_forget_markers();
    fixture_open(); /* the index could not be filled again */
    assert_text("a", "1");
    struct list_request req = {
        .bucket_id = BUCKET, .prefix = "", .delimiter = "", .start_after = "", .limit = 10};
    struct list_page page;
    struct error err = ERROR_INIT;
    assert_int_equal(list_page(fx.store, &req, &page, &err), E_IO);
    fixture_close();
    assert_int_equal(fault_configure(NULL, NULL), 0);
    fixture_open();
    assert_list("a:1 ");
}

static void test_a_file_system_without_attributes_is_refused(void **state)
{
    (void)state;
    /* /proc takes no directories, so use what every kernel has that keeps no user attributes. */
    char path[128];
    snprintf(path, sizeof path, "%s/ram", fx.dir);
    assert_int_equal(mkdir(path, 0700), 0);
    char command[300];
    snprintf(command, sizeof command, "mount -t ramfs none %s 2>/dev/null", path);
    if (system(command) != 0)
        skip(); /* not root */
    char list[160];
    snprintf(list, sizeof list, "%s/x", path);
    struct mountpaths_config config = {
        .target_id = "t1", .list = list, .index_map_size = 1 << 30, .disk_depth = 8};
    struct error err = ERROR_INIT;
    int code = mountpaths_open(&config, &fx.mountpaths, &err);
    snprintf(command, sizeof command, "umount %s", path);
    assert_int_equal(system(command), 0);
    assert_int_equal(code, E_MOUNTPATH);
    assert_non_null(strstr(err.message, "does not keep user attributes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        closed_test(test_another_targets_is_refused),
        closed_test(test_the_same_directory_twice_is_refused),
        closed_test(test_one_inside_another_is_refused),
        closed_test(test_inside_another_targets_is_refused),
        closed_test(test_two_daemons_never_share_one),
        closed_test(test_copies_and_moved_ones_are_refused),
        closed_test(test_another_clusters_is_refused),
        closed_test(test_without_a_cluster_nothing_is_formatted),
        closed_test(test_enabling_waits_for_who_holds_it),
        closed_test(test_enabling_waits_no_longer_than_it_may),
        closed_test(test_format_1_is_read),
        closed_test(test_an_added_one_loses_nothing),
        closed_test(test_an_empty_one_that_is_added_settles),
        closed_test(test_objects_without_a_format_are_refused),
        closed_test(test_unfinished_writes_go_at_the_start),
        closed_test(test_rebuilding_tells_loss_from_damage),
        closed_test(test_reindex_can_be_asked_for),
        closed_test(test_a_full_disk_starts),
        closed_test(test_a_file_system_without_attributes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
