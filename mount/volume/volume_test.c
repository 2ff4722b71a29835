/* Names and attributes, as two clients of one volume see them.  What many clients do at once is in
 * testing/sim.c. */
#include "mount/volume/volume.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <cmocka.h>

#include "mount/meta/memory.h"
#include "mount/volume/testing/clients.h"

static void a_volume_is_made_once(void **state)
{
    struct error err = ERROR_INIT;
    struct volume_format format = small_format(), back;
    struct meta *empty;
    struct volume *v;
    struct volume_env env;
    (void)state;
    assert_int_equal(format_write(f.m, &format, 0, 0, &err), E_EXISTS);
    assert_int_equal(format_read(f.m, &back, &err), 0);
    assert_string_equal(back.bucket, "dfc://b");
    assert_int_equal(back.chunk_bytes, CHUNK);
    assert_int_equal(meta_memory_ops.open("", true, &empty, &err), 0);
    volume_env_init(&env);
    assert_int_equal(volume_open(empty, &env, &v, &err), E_NOT_FOUND);
    format.block_bytes = 48;
    assert_int_equal(format_write(empty, &format, 0, 0, &err), E_INVALID);
    format = small_format();
    format.grace_ms = format.session_ms;
    assert_int_equal(format_write(empty, &format, 0, 0, &err), E_INVALID);
    format_init(&format, "a/b", "dfc://b");
    assert_int_equal(format_write(empty, &format, 0, 0, &err), E_INVALID);
    meta_close(empty);
    struct attr root = attr_of(VOLUME_ROOT);
    assert_int_equal(root.mode, S_IFDIR | 0755);
    assert_int_equal(root.uid, 7);
    assert_int_equal(root.nlink, 2);
}

static void what_is_created_is_found_by_all(void **state)
{
    struct volume_inode found;
    (void)state;
    advance(5);
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0700);
    uint64_t x = make(d, "x", S_IFREG | 0640);
    assert_int_equal(volume_lookup(f.b, VOLUME_ROOT, "d", &found), 0);
    assert_int_equal(found.ino, d);
    assert_int_equal(volume_lookup(f.b, d, "x", &found), 0);
    assert_int_equal(found.ino, x);
    assert_int_equal(found.attr.mode, S_IFREG | 0640);
    assert_int_equal(found.attr.uid, 1);
    assert_int_equal(found.attr.gid, 2);
    assert_int_equal(found.attr.nlink, 1);
    assert_int_equal(found.attr.parent, d);
    assert_int_equal(found.attr.mtime_ns, (START_MS + 5) * 1000000LL);
    assert_int_equal(attr_of(d).entries, 1);
    assert_int_equal(attr_of(VOLUME_ROOT).nlink, 3);
    assert_int_equal(attr_of(VOLUME_ROOT).mtime_ns, (START_MS + 5) * 1000000LL);
    assert_int_equal(volume_lookup(f.b, d, "y", &found), -ENOENT);
    assert_int_equal(volume_lookup(f.b, 999, "y", &found), -ENOENT);
}

static void names_are_checked(void **state)
{
    struct volume_inode out;
    struct volume_new file = {.mode = S_IFREG | 0644};
    char name[META_NAME_MAX + 2];
    (void)state;
    memset(name, 'n', sizeof name);
    name[META_NAME_MAX] = '\0';
    assert_int_equal(volume_create(f.a, VOLUME_ROOT, name, &file, &out), 0);
    name[META_NAME_MAX] = 'n';
    name[META_NAME_MAX + 1] = '\0';
    assert_int_equal(volume_create(f.a, VOLUME_ROOT, name, &file, &out), -ENAMETOOLONG);
    assert_int_equal(volume_lookup(f.a, VOLUME_ROOT, name, &out), -ENAMETOOLONG);
    assert_int_equal(volume_create(f.a, VOLUME_ROOT, "", &file, &out), -ENOENT);
    assert_int_equal(volume_create(f.a, VOLUME_ROOT, "..", &file, &out), -EEXIST);
    assert_int_equal(volume_create(f.a, VOLUME_ROOT, "a/b", &file, &out), -EINVAL);
    uint64_t x = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(volume_create(f.a, VOLUME_ROOT, "x", &file, &out), -EEXIST);
    assert_int_equal(volume_create(f.a, x, "y", &file, &out), -ENOTDIR);
}

static void a_directory_is_removed_when_it_is_empty(void **state)
{
    struct volume_inode out;
    struct volume_new file = {.mode = S_IFREG | 0644};
    (void)state;
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    make(d, "x", S_IFREG | 0644);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "d"), -EISDIR);
    assert_int_equal(volume_rmdir(f.a, VOLUME_ROOT, "d"), -ENOTEMPTY);
    assert_int_equal(volume_rmdir(f.a, d, "x"), -ENOTDIR);
    assert_int_equal(volume_unlink(f.b, d, "x"), 0);
    assert_int_equal(volume_unlink(f.b, d, "x"), -ENOENT);
    assert_int_equal(volume_rmdir(f.a, VOLUME_ROOT, "d"), 0);
    assert_int_equal(volume_create(f.b, d, "y", &file, &out), -ENOENT);
    assert_int_equal(attr_of(d).nlink, 0);
    assert_int_equal(attr_of(VOLUME_ROOT).entries, 0);
    assert_int_equal(attr_of(VOLUME_ROOT).nlink, 2);
}

static void a_file_may_have_several_names(void **state)
{
    struct volume_inode out;
    (void)state;
    uint64_t x = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    assert_int_equal(volume_link(f.b, x, d, "y", &out), 0);
    assert_int_equal(out.attr.nlink, 2);
    assert_int_equal(volume_link(f.b, x, d, "y", &out), -EEXIST);
    assert_int_equal(volume_link(f.b, d, VOLUME_ROOT, "e", &out), -EPERM);
    assert_int_equal(volume_rename(f.a, d, "y", VOLUME_ROOT, "x", 0), 0); /* nothing */
    assert_int_equal(attr_of(x).nlink, 2);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "x"), 0);
    assert_int_equal(attr_of(x).nlink, 1);
    assert_int_equal(volume_unlink(f.a, d, "y"), 0);
    assert_int_equal(attr_of(x).nlink, 0);
    assert_int_equal(volume_link(f.b, x, d, "z", &out), -ENOENT);
}

static void a_symbolic_link_is_read(void **state)
{
    struct volume_inode out;
    char *target;
    char long_target[5000];
    struct volume_new link = {.mode = S_IFLNK | 0777, .target = "../a b"};
    (void)state;
    assert_int_equal(volume_create(f.a, VOLUME_ROOT, "l", &link, &out), 0);
    assert_int_equal(out.attr.length, 6);
    assert_int_equal(volume_readlink(f.b, out.ino, f.arena, &target), 0);
    assert_string_equal(target, "../a b");
    assert_int_equal(volume_readlink(f.b, VOLUME_ROOT, f.arena, &target), -EINVAL);
    memset(long_target, 'x', sizeof long_target);
    long_target[4096] = '\0';
    link.target = long_target;
    assert_int_equal(volume_create(f.a, VOLUME_ROOT, "m", &link, &out), -ENAMETOOLONG);
    link.target = "";
    assert_int_equal(volume_create(f.a, VOLUME_ROOT, "m", &link, &out), -ENOENT);
}

static void a_rename_replaces(void **state)
{
    struct volume_inode out;
    (void)state;
    uint64_t x = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    uint64_t y = make(VOLUME_ROOT, "y", S_IFREG | 0644);
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    uint64_t e = make(VOLUME_ROOT, "e", S_IFDIR | 0755);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "x", VOLUME_ROOT, "y", RENAME_NOREPLACE),
                     -EEXIST);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "x", VOLUME_ROOT, "d", 0), -EISDIR);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "d", VOLUME_ROOT, "x", 0), -ENOTDIR);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "z", VOLUME_ROOT, "x", 0), -ENOENT);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "x", VOLUME_ROOT, "y", 0), 0);
    assert_int_equal(volume_lookup(f.b, VOLUME_ROOT, "x", &out), -ENOENT);
    assert_int_equal(volume_lookup(f.b, VOLUME_ROOT, "y", &out), 0);
    assert_int_equal(out.ino, x);
    assert_int_equal(attr_of(y).nlink, 0);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "y", d, "y", 0), 0);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "e", VOLUME_ROOT, "d", 0), -ENOTEMPTY);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "d", VOLUME_ROOT, "e", 0), 0);
    assert_int_equal(attr_of(e).nlink, 0);
    assert_int_equal(attr_of(VOLUME_ROOT).entries, 1);
    assert_int_equal(attr_of(VOLUME_ROOT).nlink, 3);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "e", d, "e", 0), -EINVAL);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "e", VOLUME_ROOT, "f", 8), -EINVAL);
}

static void an_exchange_keeps_both(void **state)
{
    struct volume_inode out;
    (void)state;
    uint64_t x = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    uint64_t e = make(d, "e", S_IFDIR | 0755);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "x", d, "e", RENAME_EXCHANGE), 0);
    assert_int_equal(volume_lookup(f.b, d, "e", &out), 0);
    assert_int_equal(out.ino, x);
    assert_int_equal(attr_of(e).parent, VOLUME_ROOT);
    assert_int_equal(attr_of(d).nlink, 2);
    assert_int_equal(attr_of(VOLUME_ROOT).nlink, 4);
    /* A directory with its own ancestor, both ways. */
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "x", d, "g", 0), 0);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "d", d, "g", RENAME_EXCHANGE), -EINVAL);
    assert_int_equal(volume_rename(f.a, d, "g", VOLUME_ROOT, "d", RENAME_EXCHANGE), -EINVAL);
    assert_int_equal(volume_rename(f.a, d, "g", VOLUME_ROOT, "no", RENAME_EXCHANGE), -ENOENT);
}

static void a_directory_is_listed_in_pages(void **state)
{
    struct volume_name *names;
    char name[8], after[8] = "";
    size_t count, seen = 0;
    bool more = true;
    (void)state;
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    for (unsigned i = 0; i < 25; i++) {
        snprintf(name, sizeof name, "n%02u", i);
        make(d, name, i % 2 == 0 ? S_IFREG | 0644 : S_IFDIR | 0755);
    }
    while (more) {
        assert_int_equal(volume_readdir(f.b, d, after, 10, f.arena, &names, &count, &more), 0);
        for (size_t i = 0; i < count; i++, seen++) {
            snprintf(after, sizeof after, "n%02u", (unsigned)seen);
            assert_string_equal(names[i].name, after);
            assert_int_equal(names[i].type, seen % 2 == 0 ? S_IFREG : S_IFDIR);
            assert_true(names[i].known);
            assert_int_equal(names[i].attr.parent, d);
        }
    }
    assert_int_equal(seen, 25);
    uint64_t x = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(volume_readdir(f.b, x, "", 10, f.arena, &names, &count, &more), -ENOTDIR);
    assert_int_equal(volume_readdir(f.b, 999, "", 10, f.arena, &names, &count, &more), -ENOENT);
}

static void attributes_are_set(void **state)
{
    struct attr a;
    (void)state;
    uint64_t x = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    struct volume_set set = {
        .fields =
            VOLUME_SET_MODE | VOLUME_SET_UID | VOLUME_SET_GID | VOLUME_SET_ATIME | VOLUME_SET_MTIME,
        .mode = 04711,
        .uid = UINT32_MAX - 1,
        .gid = 5,
        .atime_ns = -1,
        .mtime_ns = INT64_MAX,
    };
    advance(10);
    assert_int_equal(volume_setattr(f.a, x, &set, &a), 0);
    struct attr b = attr_of(x);
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(a.mode, S_IFREG | 04711);
    assert_int_equal(a.uid, UINT32_MAX - 1);
    assert_int_equal(a.atime_ns, -1);
    assert_int_equal(a.mtime_ns, INT64_MAX);
    assert_int_equal(a.ctime_ns, (START_MS + 10) * 1000000LL);
    set = (struct volume_set){.fields = VOLUME_SET_LENGTH, .length = INT64_MAX};
    assert_int_equal(volume_setattr(f.a, x, &set, NULL), -EFBIG);
    set.length = -1;
    assert_int_equal(volume_setattr(f.a, x, &set, NULL), -EFBIG);
    set.length = 1;
    assert_int_equal(volume_setattr(f.a, VOLUME_ROOT, &set, NULL), -EISDIR);
}

static void a_group_is_inherited(void **state)
{
    (void)state;
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 02755);
    assert_int_equal(attr_of(make(d, "x", S_IFREG | 0644)).gid, 2);
    struct volume_set set = {.fields = VOLUME_SET_GID, .gid = 77};
    assert_int_equal(volume_setattr(f.a, d, &set, NULL), 0);
    assert_int_equal(attr_of(make(d, "y", S_IFREG | 0644)).gid, 77);
    struct attr e = attr_of(make(d, "e", S_IFDIR | 0755));
    assert_int_equal(e.gid, 77);
    assert_int_equal(e.mode, S_IFDIR | 02755);
}

static void extended_attributes(void **state)
{
    const uint8_t *value;
    size_t size;
    static const uint8_t large[65537];
    _cleanup_buf_ struct buf names = BUF_INIT;
    (void)state;
    uint64_t x = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(volume_setxattr(f.a, x, "user.a", "1", 1, XATTR_REPLACE), -ENODATA);
    assert_int_equal(volume_setxattr(f.a, x, "user.a", "1", 1, XATTR_CREATE), 0);
    assert_int_equal(volume_setxattr(f.a, x, "user.a", "2", 1, XATTR_CREATE), -EEXIST);
    assert_int_equal(volume_setxattr(f.a, x, "user.b", NULL, 0, 0), 0);
    assert_int_equal(volume_setxattr(f.a, x, "user.c", large, 65536, 0), 0);
    assert_int_equal(volume_setxattr(f.a, x, "user.d", large, 65537, 0), -E2BIG);
    assert_int_equal(volume_setxattr(f.a, 999, "user.a", "1", 1, 0), -ENOENT);
    assert_int_equal(volume_setxattr(f.a, x, "system.posix_acl_access", "1", 1, 0), -EOPNOTSUPP);
    assert_int_equal(volume_setxattr(f.a, x, "user.", "1", 1, 0), -EINVAL);
    assert_int_equal(volume_setxattr(f.a, x, "trusted.a", "1", 1, 0), 0);
    assert_int_equal(volume_listxattr(f.a, x, false, &names), 0);
    assert_int_equal(names.len, sizeof "user.a\0user.b\0user.c");
    assert_int_equal(volume_removexattr(f.a, x, "trusted.a"), 0);
    assert_int_equal(volume_getxattr(f.b, x, "user.a", f.arena, &value, &size), 0);
    assert_int_equal(size, 1);
    assert_int_equal(value[0], '1');
    assert_int_equal(volume_getxattr(f.b, x, "user.b", f.arena, &value, &size), 0);
    assert_int_equal(size, 0);
    assert_int_equal(volume_getxattr(f.b, x, "user.no", f.arena, &value, &size), -ENODATA);
    assert_int_equal(volume_listxattr(f.b, x, true, &names), 0);
    assert_int_equal(names.len, 21);
    assert_memory_equal(names.data, "user.a\0user.b\0user.c", 21);
    assert_int_equal(volume_removexattr(f.b, x, "user.a"), 0);
    assert_int_equal(volume_removexattr(f.b, x, "user.a"), -ENODATA);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, clients_setup, clients_teardown)

static void limits_change(void **state)
{
    struct volume_format was, format;
    struct error err = ERROR_INIT;
    struct volume_inode out;
    struct volume_use use;
    const struct volume_new what = {.mode = S_IFREG | 0644};
    (void)state;
    assert_int_equal(format_read(f.m, &was, &err), 0);
    format = was;
    format.max_inodes = 1;
    format.max_bytes = 50;
    assert_int_equal(format_change(f.m, &was, &format, &err), 0);
    assert_int_equal(format_change(f.m, &was, &format, &err), E_PRECONDITION);
    assert_int_equal(volume_create(f.a, VOLUME_ROOT, "f", &what, &out), -ENOSPC);
    was = format;
    format.max_inodes = INT64_MAX;
    assert_int_equal(format_change(f.m, &was, &format, &err), 0);
    assert_int_equal(volume_create(f.a, VOLUME_ROOT, "f", &what, &out), 0);
    assert_int_equal(volume_use(f.a, &use), 0);
    assert_int_equal(use.inodes, 2);
    assert_int_equal(use.inodes_left, INT64_MAX - 2);
    assert_int_equal(use.bytes_left, 50);
    was = format;
    format.trash_days = VOLUME_TRASH_DAYS_MAX + 1;
    assert_int_equal(format_change(f.m, &was, &format, &err), E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_volume_is_made_once),
        CASE(limits_change),
        CASE(what_is_created_is_found_by_all),
        CASE(names_are_checked),
        CASE(a_directory_is_removed_when_it_is_empty),
        CASE(a_file_may_have_several_names),
        CASE(a_symbolic_link_is_read),
        CASE(a_rename_replaces),
        CASE(an_exchange_keeps_both),
        CASE(a_directory_is_listed_in_pages),
        CASE(attributes_are_set),
        CASE(a_group_is_inherited),
        CASE(extended_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
