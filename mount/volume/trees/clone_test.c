#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "mount/volume/check/check.h"
#include "mount/volume/testing/clients.h"
#include "mount/volume/trash.h"
#include "mount/volume/trees/trees.h"

static const struct volume_caller root = {.uid = 0}, user = {.uid = 5, .gid = 5};

static void write_at(uint64_t ino, int64_t at, uint32_t length)
{
    struct volume_piece p = {.at = at, .length = length, .size = length};
    assert_int_equal(volume_new_slice(f.a, &p.slice), 0);
    assert_int_equal(volume_write(f.a, ino, &p, 1, 0, NULL), 0);
}

/* The volume is whole; returns the inodes. */
static uint64_t check_all(void)
{
    struct check c;
    struct error err = ERROR_INIT;
    assert_int_equal(check_run(&c, f.m, volume_format(f.a), &err), 0);
    for (size_t i = 0; i < c.count; i++)
        fail_msg("%s", check_text(&c.findings[i]));
    const uint64_t inodes = c.inodes;
    check_done(&c);
    return inodes;
}

static int64_t bytes_in_use(void)
{
    struct volume_use use;
    assert_int_equal(volume_use(f.a, &use), 0);
    return use.bytes;
}

static uint64_t lookup(uint64_t directory, const char *name)
{
    struct volume_inode found;
    assert_int_equal(volume_lookup(f.b, directory, name, &found), 0);
    return found.ino;
}

static void assert_same_extents(uint64_t one, uint64_t two)
{
    struct volume_extent *a, *b;
    size_t a_count, b_count;
    assert_int_equal(volume_extents(f.b, one, 0, 100000, f.arena, &a, &a_count), 0);
    assert_int_equal(volume_extents(f.b, two, 0, 100000, f.arena, &b, &b_count), 0);
    assert_int_equal(a_count, b_count);
    for (size_t i = 0; i < a_count; i++) {
        assert_int_equal(a[i].at, b[i].at);
        assert_int_equal(a[i].length, b[i].length);
        assert_int_equal(a[i].offset, b[i].offset);
        assert_true((a[i].entry == NULL) == (b[i].entry == NULL));
        if (a[i].entry != NULL)
            assert_int_equal(a[i].entry->slice, b[i].entry->slice);
    }
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

static int clone_here(uint64_t ino, const char *name, const struct volume_caller *caller)
{
    struct volume_tally tally;
    return volume_clone(f.a, ino, VOLUME_ROOT, name, caller, &tally);
}

static void test_a_file_shares_its_slices(void **state)
{
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "f", S_IFREG | 04754);
    write_at(ino, 0, 100); /* crosses a chunk */
    write_at(ino, 10, 20);
    assert_int_equal(clone_here(ino, "g", &root), 0);
    assert_int_equal(clone_here(ino, "h", &root), 0);
    uint64_t copy = lookup(VOLUME_ROOT, "g");
    assert_same_extents(ino, copy);
    const struct attr a = attr_of(copy), was = attr_of(ino);
    assert_int_equal(a.mode, was.mode);
    assert_int_equal(a.uid, was.uid);
    assert_int_equal(a.length, 100);
    assert_int_equal(a.mtime_ns, was.mtime_ns);
    assert_int_equal(a.nlink, 1);
    assert_int_equal(a.parent, VOLUME_ROOT);
    assert_int_equal(bytes_in_use(), 120);
    check_all();
    write_at(copy, 0, 50); /* of this one alone */
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "f"), 0);
    clean_all();
    assert_int_equal(bytes_in_use(), 170);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "g"), 0);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "h"), 0);
    clean_all();
    assert_int_equal(bytes_in_use(), 0);
    assert_int_equal(check_all(), 3); /* the root, the trash, its hour */
}

static void test_a_large_file_comes_in_parts(void **state)
{
    char name[32];
    const uint8_t *value;
    size_t size;
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "f", S_IFREG | 0644);
    for (int64_t i = 0; i < 100; i++)
        write_at(ino, i * CHUNK, 60);
    for (unsigned i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "user.%u", i);
        assert_int_equal(volume_setxattr(f.a, ino, name, &i, sizeof i, 0), 0);
    }
    assert_int_equal(clone_here(ino, "g", &root), 0);
    uint64_t copy = lookup(VOLUME_ROOT, "g");
    assert_same_extents(ino, copy);
    for (unsigned i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "user.%u", i);
        assert_int_equal(volume_getxattr(f.b, copy, name, f.arena, &value, &size), 0);
        assert_memory_equal(value, &i, sizeof i);
    }
    assert_int_equal(bytes_in_use(), 6000);
    check_all();
}

/* dir/{f, link, fifo, sub/g}, and many files. */
static uint64_t make_tree(void)
{
    struct volume_inode made;
    char name[16];
    const struct volume_new link = {.mode = S_IFLNK | 0777, .target = "f"};
    uint64_t top = make(VOLUME_ROOT, "dir", S_IFDIR | 0755);
    write_at(make(top, "f", S_IFREG | 0644), 0, 10);
    make(top, "fifo", S_IFIFO | 0644);
    assert_int_equal(volume_create(f.a, top, "link", &link, &made), 0);
    uint64_t sub = make(top, "sub", S_IFDIR | 0755);
    write_at(make(sub, "g", S_IFREG | 0644), 0, 10);
    for (unsigned i = 0; i < 150; i++) {
        snprintf(name, sizeof name, "%03u", i);
        make(sub, name, S_IFREG | 0644);
    }
    return top;
}

static void test_a_tree(void **state)
{
    struct volume_tally tally;
    char *target;
    (void)state;
    uint64_t top = make_tree();
    uint64_t place = make(top, "place", S_IFDIR | 0755); /* in the tree itself */
    assert_int_equal(volume_clone(f.a, top, place, "copy", &root, &tally), 0);
    assert_int_equal(tally.inodes, 157);
    uint64_t copy = lookup(place, "copy");
    const struct attr a = attr_of(copy);
    assert_int_equal(a.entries, 5);
    assert_int_equal(a.nlink, 4);
    assert_int_equal(a.parent, place);
    assert_int_equal(attr_of(lookup(copy, "sub")).entries, 151);
    assert_int_equal(attr_of(lookup(copy, "place")).entries, 0);
    assert_same_extents(lookup(top, "f"), lookup(copy, "f"));
    assert_int_equal(volume_readlink(f.b, lookup(copy, "link"), f.arena, &target), 0);
    assert_string_equal(target, "f");
    assert_true(S_ISFIFO(attr_of(lookup(copy, "fifo")).mode));
    assert_int_equal(bytes_in_use(), 20);
    check_all();
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "dir", &root, false, &tally), 0);
    clean_all();
    assert_int_equal(bytes_in_use(), 0);
    assert_int_equal(check_all(), 3);
}

static void test_what_is_refused(void **state)
{
    struct volume_tally tally;
    struct volume_inode found;
    (void)state;
    uint64_t top = make_tree();
    assert_int_equal(clone_here(top, "dir", &root), -EEXIST);
    assert_int_equal(clone_here(12345, "x", &root), -ENOENT);
    assert_int_equal(clone_here(top, "a/b", &root), -EINVAL);
    assert_int_equal(clone_here(top, ".trash", &root),
                     -EEXIST); /* it is there since the last but one */
    assert_int_equal(volume_clone(f.a, top, 12345, "x", &root, &tally), -ENOENT);
    assert_int_equal(volume_clone(f.a, top, lookup(top, "f"), "x", &root, &tally), -ENOTDIR);
    assert_int_equal(volume_clone(f.a, top, TRASH_INO, "x", &root, &tally), -ENOENT);
    assert_int_equal(clone_here(top, "x", &user), -EACCES); /* the root is not the user's */
    const struct volume_set open = {.fields = VOLUME_SET_MODE, .mode = 0777};
    const struct volume_set closed = {.fields = VOLUME_SET_MODE, .mode = 0700};
    assert_int_equal(volume_setattr(f.a, VOLUME_ROOT, &open, NULL), 0);
    assert_int_equal(volume_setattr(f.a, lookup(top, "sub"), &closed, NULL), 0);
    assert_int_equal(volume_clone(f.a, top, VOLUME_ROOT, "x", &user, &tally), -EACCES);
    assert_string_equal(tally.name, "sub");
    assert_int_equal(volume_lookup(f.a, VOLUME_ROOT, "x", &found), -ENOENT);
    clean_all();
    assert_int_equal(check_all(), 159); /* nothing is left of it */
    assert_int_equal(volume_setattr(f.a, lookup(top, "sub"), &open, NULL), 0);
    assert_int_equal(clone_here(top, "x", &user), 0);
    assert_int_equal(attr_of(lookup(VOLUME_ROOT, "x")).uid, 5);
}

/* A copy of the hour in which it is built would have itself below. */
static void test_the_trash_is_not_cloned(void **state)
{
    uint64_t hour;
    (void)state;
    assert_int_equal(trash_need_hour(f.a, &hour), 0);
    assert_int_equal(clone_here(hour, "x", &root), -EINVAL);
    assert_int_equal(clone_here(TRASH_INO, "x", &root), -EINVAL);
    assert_int_equal(check_all(), 3);
}

/* Set-id bits of another owner's copy go, and so do capabilities. */
static void test_rights_of_a_program_stay(void **state)
{
    const uint8_t *value;
    size_t size;
    char name[32];
    static const char *const kept[] = {"user.x"}, *const dropped[] = {"security.capability",
                                                                      "trusted.x"};
    const struct volume_set open = {.fields = VOLUME_SET_MODE, .mode = 0777};
    (void)state;
    assert_int_equal(volume_setattr(f.a, VOLUME_ROOT, &open, NULL), 0);
    uint64_t small = make(VOLUME_ROOT, "small", S_IFREG | 04755);
    uint64_t large = make(VOLUME_ROOT, "large", S_IFREG | 04755);
    for (unsigned i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "user.%u", i);
        assert_int_equal(volume_setxattr(f.a, large, name, "1", 1, 0), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(volume_setxattr(f.a, small, dropped[i], "1", 1, 0), 0);
        assert_int_equal(volume_setxattr(f.a, large, dropped[i], "1", 1, 0), 0);
    }
    assert_int_equal(volume_setxattr(f.a, small, kept[0], "1", 1, 0), 0);
    assert_int_equal(volume_setxattr(f.a, large, kept[0], "1", 1, 0), 0);
    assert_int_equal(clone_here(small, "s", &user), 0);
    assert_int_equal(clone_here(large, "l", &user), 0);
    assert_int_equal(clone_here(small, "r", &root), 0);
    static const char *const copies[] = {"s", "l", "r"};
    for (unsigned c = 0; c < 3; c++) {
        uint64_t copy = lookup(VOLUME_ROOT, copies[c]);
        assert_int_equal(volume_getxattr(f.b, copy, kept[0], f.arena, &value, &size), 0);
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(volume_getxattr(f.b, copy, dropped[i], f.arena, &value, &size),
                             c == 2 ? 0 : -ENODATA);
    }
    check_all();
}

static bool stops(void *context)
{
    unsigned *left = context;
    return (*left)-- == 0;
}

static void test_interrupted(void **state)
{
    struct volume_inode found;
    unsigned left = 3;
    const struct volume_caller caller = {.stops = stops, .context = &left};
    (void)state;
    uint64_t top = make_tree();
    assert_int_equal(clone_here(top, "x", &caller), -EINTR);
    assert_int_equal(volume_lookup(f.a, VOLUME_ROOT, "x", &found), -ENOENT);
    clean_all();
    assert_int_equal(check_all(), 159);
}

/* What a client leaves that dies: an inode in the trash, which goes with its hour. */
static void test_what_was_left(void **state)
{
    uint64_t hour;
    char name[TRASH_HOUR_NAME];
    struct volume_inode found;
    const struct volume_new what = {.mode = S_IFREG | 0644};
    (void)state;
    assert_int_equal(volume_trash_clean(f.b, NULL, 0), 0); /* there is none */
    assert_int_equal(trash_need_hour(f.a, &hour), 0);
    assert_int_equal(trash_need_hour(f.b, &hour), 0);
    trash_hour_name(hour, name);
    assert_string_equal(name, "1970-01-01-00");
    assert_int_equal(lookup(lookup(VOLUME_ROOT, ".trash"), name), hour);
    assert_int_equal(volume_create(f.a, hour, "x", &what, &found), -EPERM);
    assert_int_equal(volume_create(f.a, TRASH_INO, "x", &what, &found), -EPERM);
    assert_int_equal(volume_create(f.a, VOLUME_ROOT, ".trash", &what, &found), -EPERM);
    assert_int_equal(volume_rmdir(f.a, TRASH_INO, name), -EPERM);
    assert_int_equal(volume_rmdir(f.a, VOLUME_ROOT, ".trash"), -EPERM);
    uint64_t file = make(VOLUME_ROOT, "f", S_IFREG | 0644);
    assert_int_equal(volume_link(f.a, file, hour, "x", &found), -EPERM);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "f", hour, "x", 0), -EPERM);
    assert_int_equal(volume_rename(f.a, TRASH_INO, name, VOLUME_ROOT, "x", 0), -EPERM);
    assert_int_equal(check_all(), 4);
    advance(TRASH_DAY_MS);
    assert_int_equal(volume_trash_clean(f.b, NULL, 0), 0);
    assert_int_equal(attr_of(hour).nlink, 2);
    advance(TRASH_HOUR_MS);
    assert_int_equal(volume_trash_clean(f.b, NULL, 0), 0);
    assert_int_equal(attr_of(hour).nlink, 0);
    assert_int_equal(attr_of(TRASH_INO).entries, 0);
    clean_all();
    assert_int_equal(check_all(), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clients_setup, clients_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_file_shares_its_slices),
        TEST(test_a_large_file_comes_in_parts),
        TEST(test_a_tree),
        TEST(test_what_is_refused),
        TEST(test_the_trash_is_not_cloned),
        TEST(test_rights_of_a_program_stay),
        TEST(test_interrupted),
        TEST(test_what_was_left),
    };
    return cmocka_run_group_tests_name("mount_clone", tests, NULL, NULL);
}
