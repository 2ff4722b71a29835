/* The directories of buckets on one mountpath: made, synced, removed. */
#include "target/testing/store_fixture.h"

static struct object_path path_of(uint64_t bucket_id, const char *name)
{
    struct object_path p;
    object_path_set(&p, bucket_id, name);
    return p;
}

/* Directories that are there may not have reached the disk: whoever comes second does not believe
 * in them, but makes sure. */
static void test_a_directory_counts_when_the_way_to_it_is_on_the_disk(void **state)
{
    (void)state;
    fixture_open_with("1", (struct mountpaths_config){0});
    struct mountpath *mp = fixture_mp(0);
    const struct object_path a = path_of(5, "a"), b = path_of(5, "b");
    assert_int_not_equal(a.fan, b.fan);
    assert_int_equal(mountpath_make_dir(mp, 5, &a, NULL), 0);
    assert_int_equal(mountpath_make_dir(mp, 5, &b, NULL), 0);
    assert_int_equal(fault_configure("disk.sync=EIO@2+", NULL), 0);
    assert_int_equal(mountpath_sync_way(mp, 5, &a, NULL), E_IO); /* the bucket is not synced */
    assert_int_equal(mountpath_sync_way(mp, 5, &a, NULL), E_IO);
    assert_int_equal(fault_configure(NULL, NULL), 0);
    assert_int_equal(mountpath_sync_way(mp, 5, &a, NULL), 0);
    assert_int_equal(fault_configure("disk.sync=EIO", NULL), 0);
    assert_int_equal(mountpath_sync_way(mp, 5, &a, NULL), 0); /* once is enough */
    assert_int_equal(mountpath_sync_way(mp, 5, &b, NULL), E_IO);
    assert_int_equal(fault_configure("disk.sync=EIO@2", NULL), 0);
    assert_int_equal(mountpath_sync_way(mp, 5, &b, NULL), 0); /* the bucket is not synced again */
    fixture_close();
    assert_int_equal(fault_configure(NULL, NULL), 0);
    fixture_open_with("1", (struct mountpaths_config){0});
    mp = fixture_mp(0);
    assert_int_equal(fault_configure("disk.sync=EIO", NULL), 0); /* the last one was killed? */
    assert_int_equal(mountpath_make_dir(mp, 5, &a, NULL), 0);
    assert_int_equal(mountpath_sync_way(mp, 5, &a, NULL), E_IO);
    assert_int_equal(fault_configure(NULL, NULL), 0);
}

static void remove_by(const char *program, const char *what)
{
    char command[512];
    snprintf(command, sizeof command, "%s %s/mp1/.dfc/obj/%s", program, fx.dir, what);
    assert_int_equal(system(command), 0);
}

/* Behind the target's back: what is made anew has to be synced anew. */
static void test_a_directory_that_was_removed_is_made_again(void **state)
{
    (void)state;
    fixture_open_with("1", (struct mountpaths_config){0});
    struct mountpath *mp = fixture_mp(0);
    const struct object_path a = path_of(5, "a");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mountpath_make_dir(mp, 5, &a, NULL), 0);
        assert_int_equal(fault_configure("disk.sync=EIO", NULL), 0);
        assert_int_equal(mountpath_sync_way(mp, 5, &a, NULL), E_IO);
        assert_int_equal(fault_configure(NULL, NULL), 0);
        assert_int_equal(mountpath_sync_way(mp, 5, &a, NULL), 0);
        remove_by(i == 0 ? "rmdir" : "rm -r", i == 0 ? "5/*" : "5");
    }
    struct error err = ERROR_INIT;
    assert_int_equal(mountpath_trash_bucket(mp, 5, NULL), 0);
    assert_int_equal(mountpath_sync_way(mp, 5, &a, &err), E_BUCKET_NOT_FOUND);
    assert_non_null(strstr(err.message, "destroyed"));
}

static void test_buckets_are_made_and_found(void **state)
{
    (void)state;
    fixture_open_with("1", (struct mountpaths_config){0});
    struct mountpath *mp = fixture_mp(0);
    const struct object_path a = path_of(5, "a"), b = path_of(5, "b");
    assert_int_equal(fault_configure("disk.mkdir=ENOSPC", NULL), 0);
    assert_int_equal(mountpath_make_dir(mp, 5, &a, NULL), E_NO_SPACE);
    assert_int_equal(fault_configure(NULL, NULL), 0);
    assert_int_equal(count_in("mp1", "obj"), 0);
    assert_int_equal(mountpath_make_dir(mp, 5, &a, NULL), 0);
    assert_int_equal(mountpath_make_dir(mp, 5, &a, NULL), 0);
    assert_int_equal(count_in("mp1", "obj/5"), 1);
    assert_int_equal(mountpath_make_dir(mp, 5, &b, NULL), 0);
    assert_int_equal(count_in("mp1", "obj/5"), 2);
    _cleanup_free_ uint64_t *ids = NULL;
    size_t count = 0;
    assert_int_equal(mountpath_buckets(mp, &ids, &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(ids[0], 5);
    /* An interrupted removal goes on after a restart. */
    assert_int_equal(mountpath_trash_bucket(mp, 5, NULL), 0);
    assert_int_equal(mountpath_trash_bucket(mp, 5, NULL), 0);
    atomic_bool stop = true;
    assert_int_equal(mountpath_empty_trash(mp, &stop, NULL), 0);
    assert_int_equal(count_in("mp1", "trash"), 1);
    fixture_close();
    fixture_open_with("1", (struct mountpaths_config){0});
    stop = false;
    assert_int_equal(mountpath_empty_trash(fixture_mp(0), &stop, NULL), 0);
    assert_int_equal(count_in("mp1", "trash"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        closed_test(test_a_directory_counts_when_the_way_to_it_is_on_the_disk),
        closed_test(test_a_directory_that_was_removed_is_made_again),
        closed_test(test_buckets_are_made_and_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
