/* Damage of each kind is found, and put right where that can be. */
#include "mount/volume/check/repair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "mount/volume/counters.h"
#include "mount/volume/testing/clients.h"

static void run(struct check *c)
{
    struct error err = ERROR_INIT;
    const struct volume_format format = small_format();
    if (check_run(c, f.m, &format, &err) != 0)
        fail_msg("%s", err.message);
}

static void damage(struct meta_step step)
{
    struct error err = ERROR_INIT;
    struct meta_commit c = {.steps = &step, .count = 1};
    assert_int_equal(f.m->ops->commit(f.m, &c, &err), 0);
}

static void expect_clean(void)
{
    struct check c;
    run(&c);
    if (c.count > 0) {
        _cleanup_free_ char *text = check_text(&c.findings[0]);
        fail_msg("%s", text);
    }
    check_done(&c);
}

/* One finding with this text, which a repair takes away, or cannot (ENOTSUP). */
static void expect(const char *text, int repaired)
{
    struct check c;
    run(&c);
    assert_true(c.count > 0);
    _cleanup_free_ char *got = check_text(&c.findings[0]);
    assert_string_equal(got, text);
    assert_int_equal(c.count, 1);
    assert_int_equal(repair_finding(f.a, &c.findings[0]), repaired);
    check_done(&c);
    if (repaired == 0)
        expect_clean();
}

static uint64_t slice_of(uint64_t ino, int64_t at, uint32_t length)
{
    uint64_t slice;
    assert_int_equal(volume_new_slice(f.a, &slice), 0);
    const struct volume_piece p = {.at = at, .length = length, .slice = slice, .size = length};
    assert_int_equal(volume_write(f.a, ino, &p, 1, 0, NULL), 0);
    return slice;
}

static uint64_t file(void)
{
    return make(VOLUME_ROOT, "x", S_IFREG | 0644); /* inode 2 */
}

static struct meta_key attr_key(uint64_t ino)
{
    return meta_key_point(META_ATTR, ino);
}

static void damage_use(size_t offset, int64_t number)
{
    damage((struct meta_step){META_ADD, .key = counters_use_key(), .offset = offset,
                              .number = number});
}

static void counters_are_counted(void **state)
{
    (void)state;
    uint64_t ino = file();
    uint64_t slice = slice_of(ino, CHUNK - 10, 20); /* in two chunks */
    expect_clean();
    damage((struct meta_step){META_ADD, .key = attr_key(ino), .offset = ATTR_NLINK, .number = 2});
    expect("inode 2: wrong number of names: 3, and should be 1", 0);
    damage((struct meta_step){META_ADD, .key = attr_key(VOLUME_ROOT), .offset = ATTR_ENTRIES,
                              .number = -1});
    expect("inode 1: wrong number of entries: 0, and should be 1", 0);
    damage((struct meta_step){META_ADD, .key = meta_key_point(META_SHARED, slice), .number = 5});
    expect("slice 1: wrong number of entries of a slice: 7, and should be 2", 0);
    damage((struct meta_step){META_DELETE, .key = meta_key_point(META_SHARED, slice)});
    expect("slice 1: wrong number of entries of a slice: 1, and should be 2", 0);
    damage_use(USE_BYTES, 7);
    damage_use(USE_BYTES_LEFT, -7);
    expect("volume: wrong number of bytes in use: 27, and should be 20", 0);
    damage_use(USE_INODES, -1);
    damage_use(USE_INODES_LEFT, 1);
    expect("volume: wrong number of inodes in use: 1, and should be 2", 0);
}

static void what_is_left_is_compared_with_the_limits(void **state)
{
    struct volume_format format = small_format(), was = format;
    struct error err = ERROR_INIT;
    struct check c;
    (void)state;
    assert_int_equal(format_read(f.m, &was, &err), 0);
    format = was;
    format.max_inodes = 10;
    format.max_bytes = 1000;
    assert_int_equal(format_change(f.m, &was, &format, &err), 0);
    slice_of(file(), 0, 20);
    expect_clean();
    damage_use(USE_INODES_LEFT, 3);
    expect("volume: wrong number of inodes that are left: 11, and should be 8", 0);
    damage_use(USE_BYTES_LEFT, -30);
    expect("volume: wrong number of bytes that are left: 950, and should be 980", 0);
    damage_use(USE_BYTES, 7);
    run(&c);
    assert_int_equal(c.count, 2); /* in either order */
    assert_int_equal(repair_finding(f.a, &c.findings[1]), 0);
    assert_int_equal(repair_finding(f.a, &c.findings[0]), 0);
    check_done(&c);
    expect_clean();
}

static void counts_need_a_slice(void **state)
{
    uint8_t count[8];
    (void)state;
    slice_of(file(), 0, 8);
    meta_field_put(count, 0, 2);
    damage((struct meta_step){META_PUT, .key = meta_key_point(META_SHARED, 77), .data = count,
                              .size = sizeof count});
    expect("slice 77: it has a number of entries, and no file names it: 2, and should be 0", 0);
}

static void links_of_directories_are_counted(void **state)
{
    uint8_t entry[ENTRY_BYTES];
    (void)state;
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755), e = make(d, "e", S_IFDIR | 0755);
    make(d, "x", S_IFREG | 0644);
    expect_clean();
    damage((struct meta_step){META_ADD, .key = attr_key(d), .offset = ATTR_NLINK, .number = 2});
    expect("inode 2: wrong number of links of a directory: 5, and should be 3", 0);
    damage((struct meta_step){META_ADD, .key = attr_key(VOLUME_ROOT), .offset = ATTR_NLINK,
                              .number = -3});
    expect("inode 1: wrong number of links of a directory: 0, and should be 3", 0);
    entry_encode(S_IFDIR, 99, entry);
    const struct meta_key ghost = meta_key_named(META_ENTRY, e, "ghost", 5);
    damage((struct meta_step){META_PUT, .key = ghost, .data = entry, .size = sizeof entry});
    damage((struct meta_step){META_ADD, .key = attr_key(e), .offset = ATTR_ENTRIES, .number = 1});
    damage((struct meta_step){META_ADD, .key = attr_key(e), .offset = ATTR_NLINK, .number = 1});
    expect("inode 99: it has an entry, and is not there: 'ghost' in directory 3", 0);
    damage((struct meta_step){META_DELETE, .key = meta_key_named(META_ENTRY, d, "e", 1)});
    damage((struct meta_step){META_ADD, .key = attr_key(d), .offset = ATTR_ENTRIES, .number = -1});
    damage((struct meta_step){META_ADD, .key = attr_key(d), .offset = ATTR_NLINK, .number = -1});
    expect("inode 3: it has no name", 0);
}

static void names_are_followed(void **state)
{
    uint8_t entry[ENTRY_BYTES];
    (void)state;
    uint64_t ino = file(), d = make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    uint64_t e = make(d, "e", S_IFDIR | 0755);
    expect_clean();
    entry_encode(S_IFREG, 99, entry);
    const struct meta_key ghost = meta_key_named(META_ENTRY, d, "ghost", 5);
    damage((struct meta_step){META_PUT, .key = ghost, .data = entry, .size = sizeof entry});
    damage((struct meta_step){META_ADD, .key = attr_key(d), .offset = ATTR_ENTRIES, .number = 1});
    expect("inode 99: it has an entry, and is not there: 'ghost' in directory 3", 0);
    const struct meta_key name = meta_key_named(META_ENTRY, VOLUME_ROOT, "x", 1);
    damage((struct meta_step){META_DELETE, .key = name});
    damage((struct meta_step){META_ADD, .key = attr_key(VOLUME_ROOT), .offset = ATTR_ENTRIES,
                              .number = -1});
    expect("inode 2: it has no name", 0);
    struct volume_inode lost, found;
    assert_int_equal(volume_lookup(f.b, VOLUME_ROOT, "lost+found", &lost), 0);
    assert_int_equal(volume_lookup(f.b, lost.ino, "2", &found), 0);
    assert_int_equal(found.ino, ino);
    uint8_t number[8];
    meta_field_put(number, 0, VOLUME_ROOT);
    damage((struct meta_step){META_SET, .key = attr_key(e), .offset = ATTR_PARENT, .data = number,
                              .size = sizeof number});
    expect("inode 4: another directory has it than its parent: 1, and should be 3", 0);
}

static void loops_are_found(void **state)
{
    uint8_t entry[ENTRY_BYTES], number[8];
    (void)state;
    uint64_t d = make(VOLUME_ROOT, "d", S_IFDIR | 0755), e = make(d, "e", S_IFDIR | 0755);
    entry_encode(S_IFDIR, d, entry);
    meta_field_put(number, 0, (int64_t)e);
    const struct meta_key name = meta_key_named(META_ENTRY, VOLUME_ROOT, "d", 1);
    const struct meta_key moved = meta_key_named(META_ENTRY, e, "d", 1);
    damage((struct meta_step){META_DELETE, .key = name});
    damage((struct meta_step){META_PUT, .key = moved, .data = entry, .size = sizeof entry});
    damage((struct meta_step){META_ADD, .key = attr_key(VOLUME_ROOT), .offset = ATTR_ENTRIES,
                              .number = -1});
    damage((struct meta_step){META_ADD, .key = attr_key(VOLUME_ROOT), .offset = ATTR_NLINK,
                              .number = -1});
    damage((struct meta_step){META_ADD, .key = attr_key(e), .offset = ATTR_ENTRIES, .number = 1});
    damage((struct meta_step){META_ADD, .key = attr_key(e), .offset = ATTR_NLINK, .number = 1});
    damage((struct meta_step){META_SET, .key = attr_key(d), .offset = ATTR_PARENT, .data = number,
                              .size = sizeof number});
    struct check c;
    run(&c);
    assert_int_equal(c.count, 2);
    assert_int_equal(c.findings[0].kind, CHECK_LOOP);
    assert_int_equal(c.findings[1].kind, CHECK_LOOP);
    assert_int_equal(repair_finding(f.a, &c.findings[0]), -ENOTSUP);
    check_done(&c);
}

static void queues_are_looked_at(void **state)
{
    uint8_t size[8];
    (void)state;
    uint64_t ino = file(), slice = slice_of(ino, 0, 8);
    meta_field_put(size, 0, 8);
    const struct meta_key garbage = meta_key_number(META_GARBAGE, START_MS, slice);
    damage((struct meta_step){META_PUT, .key = garbage, .data = size, .size = sizeof size});
    expect("slice 1: a slice of a file waits for its deletion", 0);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "x"), 0);
    expect_clean();
    damage((struct meta_step){META_DELETE,
                              .key = meta_key_number(META_UNLINKED, START_MS + GRACE_MS, ino)});
    expect("inode 2: it has no name, and would never be freed", 0);
    damage((struct meta_step){META_PUT, .key = meta_key_number(META_CHUNK, ino, 0), .data = size,
                              .size = sizeof size});
    struct check c;
    run(&c);
    assert_int_equal(c.findings[0].kind, CHECK_CHUNK);
    check_done(&c);
}

/* What changes between two looks is no damage. */
static void only_what_is_found_twice_counts(void **state)
{
    struct check one, two;
    (void)state;
    uint64_t ino = file();
    damage((struct meta_step){META_ADD, .key = attr_key(ino), .offset = ATTR_NLINK, .number = 2});
    damage_use(USE_BYTES, 7);
    damage_use(USE_BYTES_LEFT, -7);
    run(&one);
    damage_use(USE_BYTES, -1);
    damage_use(USE_BYTES_LEFT, 1);
    run(&two);
    assert_int_equal(one.count, 2);
    check_keep_common(&one, &two);
    assert_int_equal(one.count, 1);
    assert_int_equal(one.findings[0].kind, CHECK_NLINK);
    /* The volume changes before the repair. */
    damage((struct meta_step){META_ADD, .key = attr_key(ino), .offset = ATTR_NLINK, .number = 1});
    assert_int_equal(repair_finding(f.a, &one.findings[0]), -ESTALE);
    check_done(&one);
    check_done(&two);
}

/* ---- changes between two reads of a check ---- */

static void (*meanwhile)(void); /* called before the first names are read */

static int read_late(struct meta *m, struct meta_read *r, struct error *err)
{
    void (*change)(void) = meanwhile;
    (void)m;
    if (change != NULL && r->items[0].key.kind == META_ENTRY) {
        meanwhile = NULL;
        change();
    }
    return f.m->ops->read(f.m, r, err);
}

static int queue_late(struct meta *m, struct arena *arena, struct meta_item *item, uint64_t until,
                      struct error *err)
{
    (void)m;
    return f.m->ops->queue(f.m, arena, item, until, err);
}

static void run_beside(struct check *c, void (*change)(void))
{
    static const struct meta_ops ops = {.read = read_late, .queue = queue_late};
    struct meta m = {.ops = &ops};
    struct error err = ERROR_INIT;
    const struct volume_format format = small_format();
    meanwhile = change;
    assert_int_equal(check_run(c, &m, &format, &err), 0);
    assert_null(meanwhile);
}

static uint64_t of_name(uint64_t directory, const char *name)
{
    struct volume_inode found;
    assert_int_equal(volume_lookup(f.a, directory, name, &found), 0);
    return found.ino;
}

static void move(uint64_t from, uint64_t to, const char *name)
{
    assert_int_equal(volume_rename(f.a, from, name, to, name, 0), 0);
}

static void remove_link(void)
{
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "y"), 0);
}

static void add_link(void)
{
    struct volume_inode linked;
    assert_int_equal(volume_link(f.a, of_name(VOLUME_ROOT, "x"), VOLUME_ROOT, "y", &linked), 0);
}

static void move_away(void)
{
    move(VOLUME_ROOT, of_name(VOLUME_ROOT, "d"), "e");
}

static void move_back(void)
{
    move(of_name(VOLUME_ROOT, "d"), VOLUME_ROOT, "e");
}

/* The check does not know this directory. */
static void hide(void)
{
    move(VOLUME_ROOT, make(VOLUME_ROOT, "new", S_IFDIR | 0755), "x");
}

static void show(void)
{
    move(of_name(VOLUME_ROOT, "new"), VOLUME_ROOT, "x");
    assert_int_equal(volume_rmdir(f.a, VOLUME_ROOT, "new"), 0);
}

static const struct check_finding *finding_of(const struct check *c, enum check_kind kind)
{
    for (size_t i = 0; i < c->count; i++) {
        if (c->findings[i].kind == kind)
            return &c->findings[i];
    }
    fail_msg("kind %d is not found", (int)kind);
    return NULL;
}

/* Both looks read the attribute before the change and the names behind it. */
static void what_comes_and_goes(enum check_kind kind, void (*change)(void), void (*back)(void))
{
    struct check one, two;
    run_beside(&one, change);
    back();
    run_beside(&two, change);
    back();
    assert_int_equal(repair_finding(f.a, finding_of(&one, kind)), -ESTALE);
    assert_int_equal(repair_finding(f.a, finding_of(&two, kind)), -ESTALE);
    check_keep_common(&one, &two);
    for (size_t i = 0; i < one.count; i++)
        assert_int_not_equal(one.findings[i].kind, kind);
    check_done(&one);
    check_done(&two);
}

static void names_that_come_and_go_are_no_damage(void **state)
{
    (void)state;
    file();
    add_link();
    what_comes_and_goes(CHECK_NLINK, remove_link, add_link);
    remove_link();
    make(VOLUME_ROOT, "d", S_IFDIR | 0755);
    make(VOLUME_ROOT, "e", S_IFDIR | 0755);
    what_comes_and_goes(CHECK_PARENT, move_away, move_back);
    what_comes_and_goes(CHECK_ORPHAN, hide, show);
    expect_clean();
}

/* The same difference twice of other numbers: the quota was in use. */
static void counters_in_use_are_no_damage(void **state)
{
    (void)state;
    struct check_finding was[] = {
        {.kind = CHECK_QUOTA_BYTES, .id = 7, .is = 10, .should = 5},
        {.kind = CHECK_QUOTA_BYTES, .id = 8, .is = 10, .should = 5},
    };
    struct check_finding is[] = {
        {.kind = CHECK_QUOTA_BYTES, .id = 7, .is = 20, .should = 15},
        {.kind = CHECK_QUOTA_BYTES, .id = 8, .is = 10, .should = 5},
    };
    struct check c = {.findings = was, .count = 2}, again = {.findings = is, .count = 2};
    check_keep_common(&c, &again);
    assert_int_equal(c.count, 1);
    assert_int_equal(c.findings[0].id, 8);
}

/* A clone between the files and the counts of each look: two clones, of one difference. */
static void counts_beside_clones_are_no_damage(void **state)
{
    (void)state;
    struct check_finding was[] = {
        {.kind = CHECK_SHARED, .id = 7, .is = 2, .should = 1},
        {.kind = CHECK_SHARED, .id = 8, .is = 2, .should = 1},
        {.kind = CHECK_USE_INODES, .is = 11, .should = 10},
        {.kind = CHECK_USE_BYTES, .is = 101, .should = 100},
    };
    struct check_finding is[] = {
        {.kind = CHECK_SHARED, .id = 7, .is = 3, .should = 2},
        {.kind = CHECK_SHARED, .id = 8, .is = 2, .should = 1},
        {.kind = CHECK_USE_INODES, .is = 12, .should = 11},
        {.kind = CHECK_USE_BYTES, .is = 102, .should = 101},
    };
    struct check c = {.findings = was, .count = 4}, again = {.findings = is, .count = 4};
    check_keep_common(&c, &again);
    assert_int_equal(c.count, 1);
    assert_int_equal(c.findings[0].id, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counters_are_counted, clients_setup, clients_teardown),
        cmocka_unit_test_setup_teardown(what_is_left_is_compared_with_the_limits, clients_setup,
                                        clients_teardown),
        cmocka_unit_test_setup_teardown(counts_need_a_slice, clients_setup, clients_teardown),
        cmocka_unit_test_setup_teardown(links_of_directories_are_counted, clients_setup,
                                        clients_teardown),
        cmocka_unit_test_setup_teardown(names_are_followed, clients_setup, clients_teardown),
        cmocka_unit_test_setup_teardown(loops_are_found, clients_setup, clients_teardown),
        cmocka_unit_test_setup_teardown(queues_are_looked_at, clients_setup, clients_teardown),
        cmocka_unit_test_setup_teardown(only_what_is_found_twice_counts, clients_setup,
                                        clients_teardown),
        cmocka_unit_test_setup_teardown(names_that_come_and_go_are_no_damage, clients_setup,
                                        clients_teardown),
        cmocka_unit_test(counters_in_use_are_no_damage),
        cmocka_unit_test(counts_beside_clones_are_no_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
