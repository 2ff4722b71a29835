#include "mount/volume/trash.h"

#include <errno.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "mount/volume/check/repair.h"
#include "mount/volume/testing/clients.h"
#include "mount/volume/trees/trees.h"

#define HOUR "1970-01-01-00"

static const struct volume_caller root = {.uid = 0}, owner = {.uid = 1, .gid = 2},
                                  user = {.uid = 5, .gid = 5};

static void keep_days(uint64_t days)
{
    struct volume_format was, format;
    struct error err = ERROR_INIT;
    assert_int_equal(format_read(f.m, &was, &err), 0);
    format = was;
    format.trash_days = days;
    assert_int_equal(format_change(f.m, &was, &format, &err), 0);
    assert_int_equal(volume_beat(f.a), 0);
    assert_int_equal(volume_beat(f.b), 0);
}

static int setup(void **state)
{
    clients_setup(state);
    keep_days(2);
    return 0;
}

static int setup_limits(void **state)
{
    clients_setup_limits(state);
    keep_days(2);
    return 0;
}

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

static void clean_all(void)
{
    bool more = true;
    advance(GRACE_MS + 1);
    assert_int_equal(volume_beat(f.a), 0);
    assert_int_equal(volume_beat(f.b), 0);
    assert_int_equal(volume_trash_clean(f.a, &root, 0), 0);
    while (more)
        assert_int_equal(volume_clean(f.a, &more), 0);
}

/* The names of the hour that the caller may have, each with a space behind. */
static const char *trashed(const struct volume_caller *caller)
{
    static char text[1000];
    struct volume_trash_page page;
    text[0] = '\0';
    assert_int_equal(volume_trash_list(f.b, HOUR, "", 100, caller, f.arena, &page), 0);
    assert_false(page.more);
    for (size_t i = 0; i < page.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", page.rows[i].name);
    return text;
}

static const char *name_of(uint64_t directory, uint64_t ino, const char *name)
{
    static char text[META_NAME_MAX + 1];
    snprintf(text, sizeof text, "%llu-%llu-%s", (unsigned long long)directory,
             (unsigned long long)ino, name);
    return text;
}

static uint64_t lookup(uint64_t directory, const char *name)
{
    struct volume_inode found;
    return volume_lookup(f.b, directory, name, &found) == 0 ? found.ino : 0;
}

static void test_a_file_comes_back(void **state)
{
    struct volume_inode linked;
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "f", S_IFREG | 0644);
    assert_int_equal(volume_link(f.a, ino, VOLUME_ROOT, "g", &linked), 0);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "g"), 0); /* not the last name */
    assert_string_equal(trashed(&root), "");
    assert_int_equal(volume_unlink(f.b, VOLUME_ROOT, "f"), 0);
    assert_int_equal(lookup(VOLUME_ROOT, "f"), 0);
    assert_int_equal(attr_of(ino).nlink, 1);
    assert_int_equal(attr_of(VOLUME_ROOT).entries, 0);
    assert_string_equal(trashed(&root), "1-2-f ");
    assert_string_equal(trashed(&owner), "1-2-f ");
    assert_string_equal(trashed(&user), "");
    check_all();
    assert_int_equal(volume_restore(f.a, HOUR, "1-2-f", &user), -EACCES);
    assert_int_equal(volume_restore(f.a, HOUR, "1-3-f", &root), -ENOENT);
    assert_int_equal(volume_restore(f.a, "1970-01-01-01", "1-2-f", &root), -ENOENT);
    assert_int_equal(volume_restore(f.a, HOUR, "1-2-f", &owner), -EACCES); /* the root is 7's */
    make(VOLUME_ROOT, "f", S_IFREG | 0644);
    assert_int_equal(volume_restore(f.a, HOUR, "1-2-f", &root), -EEXIST);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "f", VOLUME_ROOT, "g", 0), 0);
    assert_int_equal(volume_restore(f.a, HOUR, "1-2-f", &root), 0);
    assert_int_equal(lookup(VOLUME_ROOT, "f"), ino);
    assert_int_equal(attr_of(ino).parent, VOLUME_ROOT);
    assert_string_equal(trashed(&root), "");
    assert_int_equal(volume_unlink(f.b, VOLUME_ROOT, "f"), 0); /* and once more */
    assert_string_equal(trashed(&root), "1-2-f ");
    assert_int_equal(check_all(), 5);
}

static void test_directories_come_back_first(void **state)
{
    struct volume_inode made;
    const struct volume_new what = {.mode = S_IFREG | 0644};
    (void)state;
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    uint64_t ino = make(d, "f", S_IFREG | 0644);
    assert_int_equal(volume_rmdir(f.a, VOLUME_ROOT, "d"), -ENOTEMPTY);
    assert_int_equal(volume_unlink(f.a, d, "f"), 0);
    assert_int_equal(volume_rmdir(f.a, VOLUME_ROOT, "d"), 0);
    assert_int_equal(attr_of(VOLUME_ROOT).nlink, 2);
    assert_int_equal(volume_create(f.b, d, "new", &what, &made), -ENOENT);
    assert_int_equal(volume_link(f.b, ino, d, "new", &made), -ENOENT);
    make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(volume_rename(f.b, VOLUME_ROOT, "x", d, "x", 0), -ENOENT);
    check_all();
    char file[META_NAME_MAX + 1];
    snprintf(file, sizeof file, "%s", name_of(d, ino, "f"));
    assert_int_equal(volume_restore(f.a, HOUR, file, &root), -ENOENT);
    assert_int_equal(volume_restore(f.a, HOUR, name_of(VOLUME_ROOT, d, "d"), &root), 0);
    assert_int_equal(volume_restore(f.a, HOUR, file, &root), 0);
    assert_int_equal(lookup(lookup(VOLUME_ROOT, "d"), "f"), ino);
    assert_int_equal(attr_of(d).parent, VOLUME_ROOT);
    check_all();
}

static void test_what_is_replaced(void **state)
{
    (void)state;
    uint64_t old = make(VOLUME_ROOT, "old", S_IFREG | 0644);
    uint64_t new = make(VOLUME_ROOT, "new", S_IFREG | 0644);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "new", VOLUME_ROOT, "old", 0), 0);
    assert_int_equal(lookup(VOLUME_ROOT, "old"), new);
    assert_string_equal(trashed(&root), "1-2-old ");
    assert_int_equal(attr_of(old).nlink, 1);
    uint64_t a = make(VOLUME_ROOT, "a", S_IFDIR | 0755), b = make(VOLUME_ROOT, "b", S_IFDIR | 0755);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "a", VOLUME_ROOT, "b", 0), 0);
    assert_int_equal(lookup(VOLUME_ROOT, "b"), a);
    assert_int_equal(attr_of(b).parent, trash_hour_of(f.now_ms));
    assert_int_equal(attr_of(VOLUME_ROOT).nlink, 3);
    check_all();
}

static void test_a_tree_is_one_move(void **state)
{
    struct volume_tally tally;
    (void)state;
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    uint64_t sub = make(d, "sub", S_IFDIR | 0755);
    make(sub, "f", S_IFREG | 0644);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "d", &user, false, &tally), -EACCES);
    assert_string_equal(tally.name, "d");
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "d", &root, false, &tally), 0);
    assert_true(tally.is_moved);
    assert_int_equal(tally.inodes, 1);
    assert_int_equal(attr_of(d).entries, 1);
    check_all();
    assert_int_equal(volume_restore(f.a, HOUR, name_of(VOLUME_ROOT, d, "d"), &root), 0);
    assert_true(lookup(sub, "f") != 0);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "d", &root, true, &tally), 0);
    assert_false(tally.is_moved);
    assert_int_equal(tally.inodes, 3);
    assert_string_equal(trashed(&root), "");
    clean_all();
    assert_int_equal(check_all(), 3);
}

/* One file is a tree, too: --skip-trash means what it says. */
static void test_a_file_skips_the_trash(void **state)
{
    struct volume_tally tally;
    struct volume_inode linked;
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "f", S_IFREG | 0644);
    assert_int_equal(volume_link(f.a, ino, VOLUME_ROOT, "g", &linked), 0);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "f", &root, true, &tally), 0);
    assert_int_equal(attr_of(ino).nlink, 1);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "g", &root, true, &tally), 0);
    assert_int_equal(tally.inodes, 1);
    assert_int_equal(attr_of(ino).nlink, 0);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "g", &root, true, &tally), -ENOENT);
    assert_string_equal(tally.name, "g");
    clean_all();
    assert_int_equal(check_all(), 1);
}

static void own(uint64_t ino, uint32_t uid, uint32_t mode)
{
    const struct volume_set set = {
        .fields = VOLUME_SET_UID | VOLUME_SET_MODE, .uid = uid, .mode = mode};
    assert_int_equal(volume_setattr(f.a, ino, &set, NULL), 0);
}

/* The move needs the rights that a removal one by one would need. */
static void test_the_move_needs_rights(void **state)
{
    struct volume_tally tally;
    (void)state;
    own(VOLUME_ROOT, 0, 0777);
    uint64_t top = make(VOLUME_ROOT, "top", S_IFDIR | 0755);
    uint64_t others = make(top, "others", S_IFDIR | 0755);
    uint64_t ino = make(others, "f", S_IFREG | 0644);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "top", &user, false, &tally), -EACCES);
    own(top, 5, 0755);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "top", &user, false, &tally), -EACCES);
    assert_string_equal(tally.name, "others");
    assert_false(tally.is_moved);
    assert_int_equal(tally.inodes, 0);
    assert_int_equal(lookup(others, "f"), ino);
    assert_int_equal(volume_unlink(f.a, others, "f"), 0);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "top", &user, false, &tally), 0);
    assert_true(tally.is_moved);
    check_all();
}

static void test_the_end_of_days(void **state)
{
    char hour[META_NAME_MAX + 1];
    (void)state;
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    uint64_t ino = make(d, "f", S_IFREG | 0644);
    struct volume_tally tally;
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "d", &root, false, &tally), 0);
    assert_int_equal(volume_unlink(f.a, TRASH_INO, HOUR), -EPERM);
    assert_int_equal(volume_rmr(f.a, TRASH_INO, HOUR, &root, true, &tally), -EPERM);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, ".trash", &root, true, &tally), -EPERM);
    advance(2 * TRASH_DAY_MS);
    clean_all();
    assert_string_equal(trashed(&root), "1-2-d ");
    advance(TRASH_HOUR_MS);
    clean_all();
    assert_int_equal(volume_trash_hour(f.a, "", hour), -ENOENT);
    clean_all();
    struct attr gone;
    assert_int_equal(volume_getattr(f.a, ino, &gone), -ENOENT);
    assert_int_equal(check_all(), 2); /* the root and the trash */
}

static void test_removed_for_ever(void **state)
{
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "f", S_IFREG | 0644);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "f"), 0);
    uint64_t hour = lookup(TRASH_INO, HOUR);
    assert_int_equal(volume_unlink(f.a, hour, "1-2-f"), 0); /* root empties it */
    assert_int_equal(attr_of(ino).nlink, 0);
    keep_days(0);
    ino = make(VOLUME_ROOT, "g", S_IFREG | 0644);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "g"), 0);
    assert_int_equal(attr_of(ino).nlink, 0);
    clean_all();
    assert_int_equal(check_all(), 3);
}

static size_t xattrs_of(uint64_t ino)
{
    _cleanup_buf_ struct buf names = BUF_INIT;
    assert_int_equal(volume_listxattr(f.b, ino, true, &names), 0);
    return names.len;
}

static void test_long_names(void **state)
{
    char name[META_NAME_MAX + 1];
    struct volume_trash_page page;
    (void)state;
    memset(name, 'n', META_NAME_MAX);
    name[META_NAME_MAX] = '\0';
    name[META_NAME_MAX - 1] = 'e';
    uint64_t ino = make(VOLUME_ROOT, name, S_IFREG | 0644);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, name), 0);
    assert_int_equal(volume_trash_list(f.b, HOUR, "", 1, &root, f.arena, &page), 0);
    assert_int_equal(strlen(page.rows[0].name), META_NAME_MAX);
    check_all();
    assert_int_equal(volume_restore(f.b, HOUR, page.rows[0].name, &root), 0);
    assert_int_equal(lookup(VOLUME_ROOT, name), ino);
    assert_int_equal(xattrs_of(ino), 0);
    /* Moved by hand, and with a tree: the next whole name is another one. */
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, name), 0);
    assert_true(xattrs_of(ino) > 0);
    assert_int_equal(
        volume_rename(f.b, lookup(TRASH_INO, HOUR), page.rows[0].name, VOLUME_ROOT, "f", 0), 0);
    assert_int_equal(xattrs_of(ino), 0);
    uint64_t d = make(VOLUME_ROOT, name, S_IFDIR | 0755);
    struct volume_tally tally;
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, name, &root, false, &tally), 0);
    assert_int_equal(volume_trash_list(f.b, HOUR, "", 1, &root, f.arena, &page), 0);
    assert_int_equal(volume_restore(f.b, HOUR, page.rows[0].name, &root), 0);
    assert_int_equal(lookup(VOLUME_ROOT, name), d);
    check_all();
}

static void damage(struct meta_step step)
{
    struct error err = ERROR_INIT;
    struct meta_commit c = {.steps = &step, .count = 1};
    assert_int_equal(f.m->ops->commit(f.m, &c, &err), 0);
}

static void make_unreadable(uint64_t ino)
{
    damage((struct meta_step){
        .kind = META_PUT, .key = meta_key_point(META_ATTR, ino), .data = "?", .size = 1});
}

static bool is_gone(uint64_t ino)
{
    struct attr a;
    return volume_getattr(f.a, ino, &a) == -ENOENT;
}

/* Of two hours, the first with a damaged file among others and a damaged tree. */
static void test_damage_stops_nothing_else(void **state)
{
    char name[8];
    bool more = true;
    (void)state;
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    uint64_t sub = make(d, "sub", S_IFDIR | 0755), beside[5];
    uint64_t below = make(sub, "below", S_IFREG | 0644), inodes[5];
    beside[0] = make(sub, "after", S_IFREG | 0644);
    beside[1] = make(sub, "tree", S_IFDIR | 0755);
    beside[2] = make(beside[1], "f", S_IFREG | 0644);
    beside[3] = make(d, "a", S_IFREG | 0644);
    beside[4] = make(d, "z", S_IFREG | 0644);
    for (unsigned i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "f%u", i);
        inodes[i] = make(VOLUME_ROOT, name, S_IFREG | 0644);
    }
    for (unsigned i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "f%u", i);
        assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, name), 0);
    }
    struct volume_tally tally;
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "d", &root, false, &tally), 0);
    advance(TRASH_HOUR_MS);
    assert_int_equal(volume_beat(f.a), 0);
    assert_int_equal(volume_beat(f.b), 0);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "f4"), 0);
    make_unreadable(inodes[1]);
    make_unreadable(below);
    advance(4 * TRASH_DAY_MS);
    assert_int_equal(volume_beat(f.a), 0);
    assert_int_equal(volume_beat(f.b), 0);
    assert_int_equal(volume_trash_clean(f.a, &root, 0), -EIO);
    advance(GRACE_MS + 1);
    assert_int_equal(volume_beat(f.a), 0);
    while (more)
        assert_int_equal(volume_clean(f.a, &more), 0);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(is_gone(inodes[i]), i != 1);
    for (unsigned i = 0; i < 5; i++)
        assert_true(is_gone(beside[i]));
    assert_false(is_gone(below) || is_gone(sub) || is_gone(d));
    assert_int_equal(lookup(TRASH_INO, "1970-01-01-01"), 0); /* the second hour */
    assert_true(lookup(TRASH_INO, HOUR) != 0);
}

static bool stops_after(void *left)
{
    return --*(int *)left < 0;
}

static void test_a_wrong_count_stops_nothing_else(void **state)
{
    int left = 1000;
    struct volume_tally tally;
    const struct volume_caller patient = {.stops = stops_after, .context = &left};
    (void)state;
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755), sub = make(d, "sub", S_IFDIR | 0755);
    uint64_t after = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "d", &root, false, &tally), 0);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "x"), 0);
    damage((struct meta_step){.kind = META_ADD,
                              .key = meta_key_point(META_ATTR, sub),
                              .offset = ATTR_ENTRIES,
                              .number = 1});
    advance(3 * TRASH_DAY_MS);
    assert_int_equal(volume_trash_clean(f.a, &patient, 0), -EIO);
    assert_int_equal(attr_of(after).nlink, 0);
    assert_int_equal(lookup(d, "sub"), sub);
}

enum { LEASE_MS = 90000 };

/* Each question of the removal takes a third of a lease. */
static bool takes_long(void *context)
{
    bool held, *stolen = context;
    advance(LEASE_MS / 3);
    assert_int_equal(volume_beat(f.a), 0);
    assert_int_equal(volume_beat(f.b), 0);
    assert_int_equal(volume_lease(f.b, LEASE_MS, &held), 0);
    *stolen |= held;
    return false;
}

static void test_the_lease_is_renewed(void **state)
{
    bool held, stolen = false;
    char name[8];
    const struct volume_caller slow = {.stops = takes_long, .context = &stolen};
    (void)state;
    for (unsigned i = 0; i < 300; i++) { /* some pages */
        snprintf(name, sizeof name, "f%u", i);
        make(VOLUME_ROOT, name, S_IFREG | 0644);
        assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, name), 0);
    }
    advance(3 * TRASH_DAY_MS);
    assert_int_equal(volume_beat(f.a), 0);
    assert_int_equal(volume_beat(f.b), 0);
    assert_int_equal(volume_lease(f.a, LEASE_MS, &held), 0);
    assert_true(held);
    assert_int_equal(volume_trash_clean(f.a, &slow, LEASE_MS), 0);
    assert_false(stolen);
    assert_int_equal(lookup(TRASH_INO, HOUR), 0);
}

/* Another client has the lease by now: it cleans. */
static void test_without_the_lease_cleaning_ends(void **state)
{
    bool held;
    (void)state;
    make(VOLUME_ROOT, "f", S_IFREG | 0644);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "f"), 0);
    advance(3 * TRASH_DAY_MS);
    assert_int_equal(volume_beat(f.a), 0);
    assert_int_equal(volume_beat(f.b), 0);
    assert_int_equal(volume_lease(f.b, LEASE_MS, &held), 0);
    assert_int_equal(volume_trash_clean(f.a, &root, 1), -EINTR);
    assert_true(lookup(TRASH_INO, HOUR) != 0);
}

/* Three inodes at most: the trash and its hour have no room beside a file. */
static void test_a_full_volume_keeps_nothing(void **state)
{
    struct volume_tally tally;
    (void)state;
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    uint64_t ino = make(d, "f", S_IFREG | 0644);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "d", &root, false, &tally), 0);
    assert_false(tally.is_moved);
    assert_int_equal(attr_of(ino).nlink, 0);
    assert_int_equal(lookup(VOLUME_ROOT, ".trash"), 0);
    clean_all();
    assert_int_equal(check_all(), 1);
}

/* ---- files with several names, and quotas ---- */

static void set_quota(uint64_t directory)
{
    struct volume_quota q;
    const struct volume_quota_limits limits = {10, 100};
    assert_int_equal(volume_quota_set(f.a, directory, &limits, NULL, &q), 0);
}

/* Inodes that count for the quota that the inode is below; -1: there is none. */
static int64_t counted(uint64_t ino)
{
    struct volume_quota q;
    return volume_quota_of(f.b, ino, &q) == 0 ? q.inodes : -1;
}

static void test_a_file_with_another_name_stays_out_of_a_quota(void **state)
{
    struct volume_inode linked;
    (void)state;
    const uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    const uint64_t ino = make(d, "f", S_IFREG | 0644);
    assert_int_equal(volume_unlink(f.a, d, "f"), 0);
    assert_int_equal(volume_link(f.a, ino, VOLUME_ROOT, "g", &linked), 0);
    set_quota(d);
    assert_int_equal(volume_restore(f.b, HOUR, name_of(d, ino, "f"), &root), -EXDEV);
    assert_int_equal(counted(d), 0);
    assert_int_equal(counted(ino), -1);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "g"), 0);
    assert_int_equal(volume_restore(f.b, HOUR, name_of(d, ino, "f"), &root), 0);
    assert_int_equal(counted(ino), 1);
    check_all();
}

static void test_so_does_its_tree(void **state)
{
    struct volume_inode linked;
    struct volume_tally tally;
    (void)state;
    const uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    const uint64_t tree = make(d, "tree", S_IFDIR | 0755);
    const uint64_t ino = make(tree, "f", S_IFREG | 0644);
    assert_int_equal(volume_link(f.a, ino, VOLUME_ROOT, "g", &linked), 0);
    assert_int_equal(volume_rmr(f.a, d, "tree", &root, false, &tally), 0);
    set_quota(d);
    assert_int_equal(volume_restore(f.b, HOUR, name_of(d, tree, "tree"), &root), -EXDEV);
    assert_int_equal(counted(d), 0);
    assert_int_equal(counted(tree), -1); /* nothing of it stays */
    check_all();
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "g"), 0);
    assert_int_equal(volume_restore(f.b, HOUR, name_of(d, tree, "tree"), &root), 0);
    assert_int_equal(counted(ino), 2);
    check_all();
}

static void test_names_of_one_quota_come_back(void **state)
{
    struct volume_inode linked;
    struct volume_tally tally;
    (void)state;
    const uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    const uint64_t tree = make(d, "tree", S_IFDIR | 0755);
    const uint64_t ino = make(tree, "f", S_IFREG | 0644);
    assert_int_equal(volume_link(f.a, ino, d, "g", &linked), 0);
    set_quota(d);
    assert_int_equal(volume_rmr(f.a, d, "tree", &root, false, &tally), 0);
    assert_int_equal(counted(ino), 1);
    assert_int_equal(volume_restore(f.b, HOUR, name_of(d, tree, "tree"), &root), 0);
    assert_int_equal(counted(ino), 2);
    check_all();
}

/* Names from before the quota: the file counts, until a check says that it is not below. */
static void test_names_on_both_sides_before_the_quota(void **state)
{
    struct volume_inode linked;
    struct check c;
    struct error err = ERROR_INIT;
    (void)state;
    const uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    const uint64_t ino = make(d, "f", S_IFREG | 0644);
    assert_int_equal(volume_link(f.a, ino, VOLUME_ROOT, "g", &linked), 0);
    set_quota(d);
    check_all();
    assert_int_equal(volume_unlink(f.a, d, "f"), 0);
    assert_int_equal(counted(d), 1);
    assert_int_equal(check_run(&c, f.m, volume_format(f.a), &err), 0);
    assert_int_equal(c.count, 1);
    assert_int_equal(c.findings[0].kind, CHECK_QUOTA_OF);
    assert_int_equal(repair_finding(f.a, &c.findings[0]), 0);
    check_done(&c);
    assert_int_equal(counted(d), 0);
    check_all();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, clients_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_file_comes_back),
        TEST(test_directories_come_back_first),
        TEST(test_what_is_replaced),
        TEST(test_a_tree_is_one_move),
        TEST(test_a_file_skips_the_trash),
        TEST(test_the_move_needs_rights),
        TEST(test_the_end_of_days),
        TEST(test_removed_for_ever),
        TEST(test_long_names),
        TEST(test_damage_stops_nothing_else),
        TEST(test_a_wrong_count_stops_nothing_else),
        TEST(test_the_lease_is_renewed),
        TEST(test_without_the_lease_cleaning_ends),
        TEST(test_a_file_with_another_name_stays_out_of_a_quota),
        TEST(test_so_does_its_tree),
        TEST(test_names_of_one_quota_come_back),
        TEST(test_names_on_both_sides_before_the_quota),
        cmocka_unit_test_setup_teardown(test_a_full_volume_keeps_nothing, setup_limits,
                                        clients_teardown),
    };
    return cmocka_run_group_tests_name("mount_trash", tests, NULL, NULL);
}
