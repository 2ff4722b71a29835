#include "mount/volume/trees/trees.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "mount/volume/testing/clients.h"

static const struct volume_caller root = {.uid = 0}, user = {.uid = 5, .gid = 5};

static int64_t entries(uint64_t directory)
{
    return attr_of(directory).entries;
}

static int64_t inodes_in_use(void)
{
    struct volume_use use;
    assert_int_equal(volume_use(f.a, &use), 0);
    return use.inodes;
}

static void clean_all(void)
{
    bool more = true;
    advance(GRACE_MS + 1);
    assert_int_equal(volume_beat(f.a), 0);
    assert_int_equal(volume_beat(f.b), 0);
    while (more)
        assert_int_equal(volume_clean(f.a, &more), 0);
}

/* ---- removal ---- */

/* top with files, links and directories, more of each than a page has. */
static uint64_t make_tree(void)
{
    struct volume_inode linked;
    uint64_t top = make(VOLUME_ROOT, "top", S_IFDIR | 0755);
    uint64_t deep = top;
    char name[16];
    for (unsigned i = 0; i < 150; i++) {
        snprintf(name, sizeof name, "f%03u", i);
        uint64_t ino = make(top, name, S_IFREG | 0644);
        name[0] = 'l';
        assert_int_equal(volume_link(f.a, ino, top, name, &linked), 0);
    }
    for (unsigned i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "d%03u", i);
        make(make(top, name, S_IFDIR | 0755), "x", S_IFIFO | 0644);
    }
    for (unsigned i = 0; i < 300; i++)
        deep = make(deep, "deep", S_IFDIR | 0755);
    return top;
}

static void test_rmr_removes_all(void **state)
{
    struct volume_tally tally;
    (void)state;
    make_tree();
    make(VOLUME_ROOT, "beside", S_IFREG | 0644);
    assert_int_equal(volume_rmr(f.b, VOLUME_ROOT, "top", &root, false, &tally), 0);
    assert_int_equal(tally.inodes, 300 + 200 + 300 + 1);
    assert_string_equal(tally.name, "");
    assert_int_equal(entries(VOLUME_ROOT), 1);
    assert_int_equal(attr_of(VOLUME_ROOT).nlink, 2);
    clean_all();
    assert_int_equal(inodes_in_use(), 2);
    assert_int_equal(volume_rmr(f.b, VOLUME_ROOT, "top", &root, false, &tally), -ENOENT);
    assert_string_equal(tally.name, "top");
    assert_int_equal(volume_rmr(f.b, VOLUME_ROOT, "..", &root, false, &tally), -EINVAL);
    assert_int_equal(volume_rmr(f.b, VOLUME_ROOT, "", &root, false, &tally), -ENOENT);
    assert_int_equal(volume_rmr(f.b, VOLUME_ROOT, "beside", NULL, false, &tally), 0);
    assert_int_equal(tally.inodes, 1);
    assert_int_equal(entries(VOLUME_ROOT), 0);
}

static bool stops_after(void *left)
{
    return --*(int *)left < 0;
}

static void add_to(uint64_t ino, size_t offset, int64_t number)
{
    struct error err = ERROR_INIT;
    const struct meta_step step = {.kind = META_ADD,
                                   .key = meta_key_point(META_ATTR, ino),
                                   .offset = offset,
                                   .number = number};
    struct meta_commit c = {.steps = &step, .count = 1};
    assert_int_equal(f.m->ops->commit(f.m, &c, &err), 0);
}

/* There is an end. */
static void expect_stuck_in_sub(void)
{
    int left = 1000;
    struct volume_tally tally;
    const struct volume_caller patient = {.stops = stops_after, .context = &left};
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "top", &patient, true, &tally), -EIO);
    assert_string_equal(tally.name, "sub");
}

static uint64_t make_sub(void)
{
    return make(make(VOLUME_ROOT, "top", S_IFDIR | 0755), "sub", S_IFDIR | 0755);
}

/* An empty directory that counts a name. */
static void test_rmr_beside_a_wrong_count(void **state)
{
    (void)state;
    add_to(make_sub(), ATTR_ENTRIES, 1);
    expect_stuck_in_sub();
}

/* A directory with names that is no place for names. */
static void test_rmr_beside_a_wrong_count_of_links(void **state)
{
    (void)state;
    const uint64_t sub = make_sub();
    make(sub, "f", S_IFREG | 0644);
    add_to(sub, ATTR_NLINK, -2);
    expect_stuck_in_sub();
    add_to(sub, ATTR_NLINK, 2);
    make(sub, "d", S_IFDIR | 0755);
    add_to(sub, ATTR_NLINK, -3);
    expect_stuck_in_sub();
}

static void test_rmr_beside_a_wrong_count_and_many_names(void **state)
{
    char name[16];
    (void)state;
    const uint64_t sub = make_sub();
    for (unsigned i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "f%u", i);
        make(sub, name, S_IFREG | 0644);
    }
    add_to(sub, ATTR_NLINK, -2);
    expect_stuck_in_sub();
}

static void own(uint64_t ino, uint32_t uid, uint32_t mode)
{
    const struct volume_set set = {
        .fields = VOLUME_SET_UID | VOLUME_SET_MODE, .uid = uid, .mode = mode};
    assert_int_equal(volume_setattr(f.a, ino, &set, NULL), 0);
}

static void test_rmr_needs_rights(void **state)
{
    struct volume_tally tally;
    (void)state;
    own(VOLUME_ROOT, 0, 0755);
    uint64_t top = make(VOLUME_ROOT, "top", S_IFDIR | 0755);
    own(top, 5, 0755);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "top", &user, false, &tally), -EACCES);
    assert_string_equal(tally.name, "top");
    own(VOLUME_ROOT, 0, 0777);
    uint64_t mine = make(top, "mine", S_IFDIR | 0755);
    own(mine, 5, 0755);
    make(mine, "f", S_IFREG | 0644);
    uint64_t others = make(top, "others", S_IFDIR | 0755); /* its owner is 1 */
    make(others, "f", S_IFREG | 0644);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "top", &user, false, &tally), -EACCES);
    assert_string_equal(tally.name, "others");
    assert_int_equal(volume_unlink(f.a, others, "f"), 0);
    own(others, 1, 0); /* an empty one needs no rights */
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "top", &user, false, &tally), 0);
    own(VOLUME_ROOT, 0, 01777);
    make(VOLUME_ROOT, "f", S_IFREG | 0666);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "f", &user, false, &tally), -EACCES);
}

static bool stops(void *context)
{
    unsigned *left = context;
    return (*left)-- == 0;
}

static void test_rmr_is_interrupted(void **state)
{
    struct volume_tally tally;
    unsigned left = 2;
    const struct volume_caller caller = {.stops = stops, .context = &left};
    (void)state;
    uint64_t top = make_tree();
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "top", &caller, false, &tally), -EINTR);
    assert_true(tally.inodes > 0 && entries(top) > 0);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "top", &root, false, &tally), 0);
}

static void test_many_names_at_once(void **state)
{
    uint64_t removed;
    struct volume_inode linked;
    const char *const names[] = {"a", "b", "d", "none"}, *const bad[] = {"a/b"};
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "a", S_IFREG | 0644);
    assert_int_equal(volume_link(f.a, ino, VOLUME_ROOT, "b", &linked), 0);
    make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    assert_int_equal(volume_unlink_many(f.b, VOLUME_ROOT, names, 4, &removed), 0);
    assert_int_equal(removed, 1);
    assert_int_equal(attr_of(ino).nlink, 1);
    assert_int_equal(entries(VOLUME_ROOT), 2);
    assert_int_equal(volume_unlink_many(f.b, VOLUME_ROOT, names, 4, &removed), 0);
    assert_int_equal(removed, 1);
    assert_int_equal(attr_of(ino).nlink, 0);
    assert_int_equal(volume_unlink_many(f.b, VOLUME_ROOT, names, 0, &removed), 0);
    assert_int_equal(removed, 0);
    assert_int_equal(volume_unlink_many(f.b, ino, names, 1, &removed), -ENOTDIR);
    assert_int_equal(volume_unlink_many(f.b, VOLUME_ROOT, bad, 1, &removed), -EINVAL);
    assert_int_equal(volume_unlink_many(f.b, 12345, names, 1, &removed), -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clients_setup, clients_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rmr_removes_all),
        TEST(test_rmr_beside_a_wrong_count),
        TEST(test_rmr_beside_a_wrong_count_of_links),
        TEST(test_rmr_beside_a_wrong_count_and_many_names),
        TEST(test_rmr_needs_rights),
        TEST(test_rmr_is_interrupted),
        TEST(test_many_names_at_once),
    };
    return cmocka_run_group_tests_name("mount_trees", tests, NULL, NULL);
}
