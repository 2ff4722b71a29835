/* Quotas of directories: what counts, and where. */
#include "mount/volume/quotas.h"

#include <errno.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "mount/meta/memory.h"
#include "mount/volume/dump.h"
#include "mount/volume/check/repair.h"
#include "mount/volume/testing/clients.h"
#include "mount/volume/trash.h"
#include "mount/volume/trees/trees.h"

static const struct volume_caller root = {.uid = 0};

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

static uint64_t mkdir_in(uint64_t directory, const char *name)
{
    return make(directory, name, S_IFDIR | 0755);
}

static uint64_t file_in(uint64_t directory, const char *name, uint32_t length)
{
    const uint64_t ino = make(directory, name, S_IFREG | 0644);
    struct volume_piece p = {.length = length, .size = length};
    if (length == 0)
        return ino;
    assert_int_equal(volume_new_slice(f.a, &p.slice), 0);
    assert_int_equal(volume_write(f.a, ino, &p, 1, 0, NULL), 0);
    return ino;
}

static int try_file(uint64_t directory, const char *name)
{
    struct volume_inode made;
    const struct volume_new what = {.mode = S_IFREG | 0644};
    return volume_create(f.b, directory, name, &what, &made);
}

static int try_write(uint64_t ino, int64_t at, uint32_t length)
{
    struct volume_piece p = {.at = at, .length = length, .size = length};
    assert_int_equal(volume_new_slice(f.b, &p.slice), 0);
    return volume_write(f.b, ino, &p, 1, 0, NULL);
}

static int try_length(uint64_t ino, int64_t length)
{
    const struct volume_set set = {.fields = VOLUME_SET_LENGTH, .length = length};
    return volume_setattr(f.b, ino, &set, NULL);
}

static int try_set(uint64_t directory, int64_t inodes, int64_t bytes)
{
    struct volume_quota q;
    const struct volume_quota_limits limits = {inodes, bytes};
    return volume_quota_set(f.a, directory, &limits, NULL, &q);
}

/* "inodes bytes, inodes left, bytes left" of the quota that the inode is below. */
static const char *quota(uint64_t ino)
{
    static char text[100];
    struct volume_quota q;
    int rc = volume_quota_of(f.b, ino, &q);
    if (rc != 0)
        return rc == -ENODATA ? "none" : "error";
    snprintf(text, sizeof text, "%lld %lld, %lld %lld", (long long)q.inodes, (long long)q.bytes,
             (long long)q.inodes_left, (long long)q.bytes_left);
    return text;
}

static void check_all(void)
{
    struct check c;
    struct error err = ERROR_INIT;
    assert_int_equal(check_run(&c, f.m, volume_format(f.a), &err), 0);
    for (size_t i = 0; i < c.count; i++)
        fail_msg("%s", check_text(&c.findings[i]));
    check_done(&c);
}

static uint64_t lookup(uint64_t directory, const char *name)
{
    struct volume_inode found;
    return volume_lookup(f.b, directory, name, &found) == 0 ? found.ino : 0;
}

/* ---- limits ---- */

static void test_inodes_are_limited(void **state)
{
    (void)state;
    uint64_t d = mkdir_in(VOLUME_ROOT, "d");
    assert_int_equal(try_set(d, 3, 1000), 0);
    assert_string_equal(quota(d), "0 0, 3 1000");
    uint64_t below = mkdir_in(d, "below");
    file_in(below, "f", 10);
    make(below, "fifo", S_IFIFO | 0644);
    assert_string_equal(quota(below), "3 10, 0 990");
    assert_int_equal(try_file(d, "x"), -EDQUOT);
    assert_int_equal(try_file(below, "x"), -EDQUOT);
    assert_int_equal(try_file(below, "f"), -EEXIST);
    assert_int_equal(try_file(VOLUME_ROOT, "x"), 0);
    assert_int_equal(volume_unlink(f.b, below, "fifo"), 0);
    assert_int_equal(try_file(below, "x"), 0);
    check_all();
}

static void test_bytes_are_limited(void **state)
{
    (void)state;
    uint64_t d = mkdir_in(VOLUME_ROOT, "d");
    assert_int_equal(try_set(d, VOLUME_QUOTA_AS_IT_IS, 100), 0);
    uint64_t ino = file_in(d, "f", 60);
    assert_int_equal(try_write(ino, 50, 51), -EDQUOT);
    assert_int_equal(try_write(ino, 0, 60), 0); /* over itself */
    assert_int_equal(try_write(ino, 50, 50), 0);
    assert_int_equal(try_length(ino, 101), -EDQUOT);
    assert_int_equal(volume_allocate(f.b, ino, 0, 90, 11), -EDQUOT);
    assert_int_equal(volume_allocate(f.b, ino, FALLOC_FL_ZERO_RANGE, 90, 11), -EDQUOT);
    assert_int_equal(volume_allocate(f.b, ino, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 90, 11),
                     0);
    assert_int_equal(try_length(ino, 30), 0);
    assert_int_equal(volume_allocate(f.b, ino, 0, 0, 40), 0);
    struct volume_quota q;
    assert_int_equal(volume_quota_of(f.a, ino, &q), 0);
    assert_int_equal(q.bytes, 40);
    assert_int_equal(q.bytes_left, 60);
    assert_int_equal(q.bytes_limit, 100);
    assert_true(q.inodes_limit == VOLUME_QUOTA_NO_LIMIT);
    check_all();
}

static void test_limits_change(void **state)
{
    (void)state;
    uint64_t d = mkdir_in(VOLUME_ROOT, "d");
    assert_int_equal(try_set(d, 2, 100), 0);
    uint64_t ino = file_in(d, "f", 60);
    assert_int_equal(try_set(d, VOLUME_QUOTA_AS_IT_IS, 50), 0); /* less than is in use */
    assert_string_equal(quota(d), "1 60, 1 -10");
    assert_int_equal(try_write(ino, 60, 1), -EDQUOT);
    assert_int_equal(try_write(ino, 59, 1), 0);
    assert_int_equal(try_length(ino, 50), 0);
    assert_int_equal(try_set(d, 0, 51), 0);
    assert_string_equal(quota(d), "1 50, -1 1");
    assert_int_equal(try_file(d, "g"), -EDQUOT);
    assert_int_equal(volume_quota_remove(f.b, d), 0);
    assert_string_equal(quota(ino), "none");
    assert_int_equal(volume_quota_remove(f.b, d), -ENODATA);
    assert_int_equal(try_file(d, "g"), 0);
    assert_int_equal(try_length(ino, 1000), 0);
    assert_int_equal(try_set(d, 10, 2000), 0); /* numbers of before are of no quota */
    assert_string_equal(quota(ino), "2 1000, 8 1000");
    check_all();
}

static void test_what_has_no_quota(void **state)
{
    (void)state;
    uint64_t d = mkdir_in(VOLUME_ROOT, "d"), ino = file_in(d, "f", 1);
    assert_int_equal(try_set(VOLUME_ROOT, 1, 1), -EINVAL);
    assert_int_equal(try_set(d, -2, 1), -EINVAL);
    assert_int_equal(try_set(ino, 1, 1), -ENOTDIR);
    assert_int_equal(try_set(999, 1, 1), -ENOENT);
    assert_int_equal(volume_quota_remove(f.a, ino), -ENOTDIR);
    assert_int_equal(volume_unlink(f.a, d, "f"), 0);
    assert_int_equal(volume_rmdir(f.a, VOLUME_ROOT, "d"), 0);
    assert_int_equal(try_set(d, 1, 1), -ENOENT); /* in the trash */
    assert_int_equal(try_set(TRASH_INO, 1, 1), -EINVAL);
}

/* ---- what is there already ---- */

static void test_a_tree_begins_to_count(void **state)
{
    char name[16];
    struct volume_inode linked;
    (void)state;
    uint64_t d = mkdir_in(VOLUME_ROOT, "d"), deep = d;
    for (unsigned i = 0; i < 150; i++) { /* more than a page */
        snprintf(name, sizeof name, "f%03u", i);
        file_in(d, name, 2);
    }
    for (unsigned i = 0; i < 100; i++)
        deep = mkdir_in(deep, "deep");
    uint64_t ino = file_in(deep, "last", 5);
    assert_int_equal(volume_link(f.a, ino, d, "second", &linked), 0);
    assert_int_equal(volume_link(f.a, ino, VOLUME_ROOT, "outside", &linked), 0);
    assert_int_equal(try_set(d, 1000, 1000), 0);
    assert_string_equal(quota(deep), "251 305, 749 695");
    assert_int_equal(volume_link(f.a, ino, VOLUME_ROOT, "outside2", &linked), -EXDEV);
    assert_int_equal(volume_unlink(f.a, d, "second"), 0);
    assert_string_equal(quota(d), "251 305, 749 695"); /* it has names */
    check_all();
    struct volume_quota *all;
    size_t count;
    assert_int_equal(volume_quota_list(f.b, f.arena, &all, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(all[0].directory, d);
    assert_true(all[0].whole);
}

static void test_quotas_are_not_nested(void **state)
{
    (void)state;
    uint64_t a = mkdir_in(VOLUME_ROOT, "a"), b = mkdir_in(a, "b"), c = mkdir_in(b, "c");
    assert_int_equal(try_set(b, 5, 5), 0);
    assert_int_equal(try_set(c, 5, 5), -EEXIST);
    assert_int_equal(try_set(a, 5, 5), -EBUSY);
    assert_string_equal(quota(a), "none"); /* nothing of it stays */
    assert_string_equal(quota(c), "1 0, 4 5");
    uint64_t d = mkdir_in(VOLUME_ROOT, "d");
    assert_int_equal(try_set(d, 5, 5), 0);
    assert_int_equal(volume_rename(f.a, a, "b", d, "b", 0), -EXDEV);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "a", d, "a", 0), -EXDEV);
    assert_int_equal(volume_rename(f.a, a, "b", VOLUME_ROOT, "b", 0), 0);
    assert_string_equal(quota(b), "1 0, 4 5"); /* it moves with its quota */
    assert_int_equal(volume_quota_remove(f.a, b), 0);
    assert_int_equal(try_set(c, 5, 5), 0);
    check_all();
}

static bool stops_later(void *context)
{
    unsigned *left = context;
    return (*left)-- == 0;
}

static void test_an_interrupted_call_goes_on(void **state)
{
    unsigned left = 2;
    char name[16];
    struct volume_quota q;
    const struct volume_quota_limits limits = {1000, 1000};
    const struct volume_caller caller = {.stops = stops_later, .context = &left};
    (void)state;
    uint64_t d = mkdir_in(VOLUME_ROOT, "d");
    for (unsigned i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "d%03u", i);
        file_in(mkdir_in(d, name), "f", 1);
    }
    assert_int_equal(volume_quota_set(f.a, d, &limits, &caller, &q), -EINTR);
    assert_int_equal(volume_quota_of(f.b, d, &q), 0);
    assert_false(q.whole);
    assert_true(q.inodes > 0 && q.inodes < 400);
    check_all(); /* a part is no damage */
    assert_int_equal(
        volume_link(f.a, lookup(lookup(d, "d199"), "f"), d, "x", &(struct volume_inode){0}),
        -EXDEV);
    assert_int_equal(try_set(d, 1000, 1000), 0);
    assert_string_equal(quota(d), "400 200, 600 800");
    check_all();
}

/* ---- borders ---- */

static void test_names_stay_inside(void **state)
{
    struct volume_inode linked;
    (void)state;
    uint64_t d = mkdir_in(VOLUME_ROOT, "d"), e = mkdir_in(VOLUME_ROOT, "e");
    assert_int_equal(try_set(d, 10, 100), 0);
    assert_int_equal(try_set(e, 10, 100), 0);
    uint64_t sub = mkdir_in(d, "sub"), ino = file_in(d, "f", 5);
    file_in(VOLUME_ROOT, "out", 7);
    file_in(e, "other", 7);
    assert_int_equal(volume_rename(f.a, d, "f", VOLUME_ROOT, "f", 0), -EXDEV);
    assert_int_equal(volume_rename(f.a, d, "f", e, "f", 0), -EXDEV);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "out", d, "out", 0), -EXDEV);
    assert_int_equal(volume_rename(f.a, d, "f", e, "other", RENAME_EXCHANGE), -EXDEV);
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "out", d, "f", RENAME_EXCHANGE), -EXDEV);
    assert_int_equal(volume_link(f.a, ino, e, "f", &linked), -EXDEV);
    assert_int_equal(volume_link(f.a, ino, VOLUME_ROOT, "f", &linked), -EXDEV);
    assert_int_equal(volume_rename(f.a, d, "f", sub, "g", 0), 0);
    assert_int_equal(volume_link(f.a, ino, d, "f", &linked), 0);
    assert_string_equal(quota(d), "2 5, 8 95");
    assert_int_equal(volume_rename(f.a, VOLUME_ROOT, "d", VOLUME_ROOT, "d2", 0), 0);
    assert_int_equal(volume_unlink(f.a, d, "f"), 0); /* it has another name */
    assert_string_equal(quota(d), "2 5, 8 95");
    uint64_t other = file_in(sub, "other", 3);
    assert_int_equal(volume_rename(f.a, sub, "g", sub, "other", 0), 0);
    assert_string_equal(quota(other), "none");
    assert_string_equal(quota(d), "2 5, 8 95");
    check_all();
}

/* ---- what is removed ---- */

static void test_what_is_in_the_trash_counts_no_more(void **state)
{
    struct volume_tally tally;
    char name[64];
    (void)state;
    uint64_t d = mkdir_in(VOLUME_ROOT, "d");
    assert_int_equal(try_set(d, 4, 10), 0);
    uint64_t sub = mkdir_in(d, "sub"), ino = file_in(sub, "f", 9);
    uint64_t gone = file_in(d, "gone", 1);
    assert_int_equal(volume_unlink(f.a, d, "gone"), 0);
    assert_string_equal(quota(d), "2 9, 2 1");
    assert_int_equal(try_length(gone, 1000), 0); /* still open somewhere */
    assert_int_equal(volume_rmr(f.a, d, "sub", &root, false, &tally), 0);
    assert_true(tally.is_moved);
    assert_string_equal(quota(d), "0 0, 4 10");
    assert_string_equal(quota(ino), "none");
    check_all();
    snprintf(name, sizeof name, "%llu-%llu-gone", (unsigned long long)d, (unsigned long long)gone);
    char hour[TRASH_HOUR_NAME];
    trash_hour_name(trash_hour_of(f.now_ms), hour);
    assert_int_equal(volume_restore(f.b, hour, name, &root), -EDQUOT);
    assert_string_equal(quota(d), "0 0, 4 10");
    snprintf(name, sizeof name, "%llu-%llu-sub", (unsigned long long)d, (unsigned long long)sub);
    assert_int_equal(try_set(d, 1, 10), 0);
    assert_int_equal(volume_restore(f.b, hour, name, &root), -EDQUOT); /* after its first inode */
    assert_string_equal(quota(d), "0 0, 1 10");
    check_all();
    assert_int_equal(try_set(d, 2, 10), 0);
    assert_int_equal(volume_restore(f.b, hour, name, &root), 0);
    assert_string_equal(quota(ino), "2 9, 0 1");
    assert_int_equal(try_file(sub, "x"), -EDQUOT);
    check_all();
    advance(4 * TRASH_DAY_MS);
    assert_int_equal(volume_beat(f.a), 0);
    assert_int_equal(volume_trash_clean(f.a, &root, 0), 0);
    check_all();
}

static void test_without_a_trash(void **state)
{
    struct volume_tally tally;
    (void)state;
    keep_days(0);
    uint64_t d = mkdir_in(VOLUME_ROOT, "d"), sub = mkdir_in(d, "sub");
    file_in(sub, "f", 9);
    file_in(sub, "g", 1);
    assert_int_equal(try_set(d, 4, 10), 0);
    assert_int_equal(volume_rmr(f.a, d, "sub", &root, false, &tally), 0);
    assert_string_equal(quota(d), "0 0, 4 10");
    check_all();
}

/* It ends with its directory, also where that comes back. */
static void test_the_directory_itself_is_removed(void **state)
{
    struct volume_tally tally;
    struct volume_quota *all;
    size_t count;
    char name[64], hour[TRASH_HOUR_NAME];
    (void)state;
    uint64_t d = mkdir_in(VOLUME_ROOT, "d"), e = mkdir_in(VOLUME_ROOT, "e");
    assert_int_equal(try_set(d, 4, 10), 0);
    assert_int_equal(try_set(e, 4, 10), 0);
    uint64_t ino = file_in(d, "f", 9);
    assert_int_equal(volume_rmr(f.a, VOLUME_ROOT, "d", &root, false, &tally), 0);
    assert_int_equal(volume_rmdir(f.a, VOLUME_ROOT, "e"), 0);
    assert_int_equal(volume_quota_list(f.b, f.arena, &all, &count), 0);
    assert_int_equal(count, 0);
    trash_hour_name(trash_hour_of(f.now_ms), hour);
    snprintf(name, sizeof name, "1-%llu-d", (unsigned long long)d);
    assert_int_equal(volume_restore(f.b, hour, name, &root), 0);
    assert_string_equal(quota(ino), "none");
    assert_int_equal(try_length(ino, 1000), 0);
    check_all();
}

/* ---- clones, dumps ---- */

static void test_clones_count(void **state)
{
    struct volume_tally tally;
    (void)state;
    uint64_t from = mkdir_in(VOLUME_ROOT, "from"), to = mkdir_in(VOLUME_ROOT, "to");
    file_in(mkdir_in(from, "sub"), "f", 9);
    assert_int_equal(try_set(from, 10, 100), 0);
    assert_int_equal(try_set(to, 5, 20), 0);
    assert_int_equal(volume_clone(f.a, from, to, "one", &root, &tally), 0);
    assert_string_equal(quota(lookup(to, "one")), "3 9, 2 11");
    assert_int_equal(volume_clone(f.a, from, to, "two", &root, &tally), -EDQUOT);
    assert_string_equal(quota(to), "3 9, 2 11");
    assert_int_equal(volume_clone(f.a, from, VOLUME_ROOT, "free", &root, &tally), 0);
    assert_string_equal(quota(lookup(VOLUME_ROOT, "free")), "none");
    assert_string_equal(quota(from), "2 9, 8 91");
    check_all();
}

/* Three sparse files: the sum of their lengths is no int64_t. */
static uint64_t long_files(void)
{
    const uint64_t d = mkdir_in(VOLUME_ROOT, "long");
    for (unsigned i = 0; i < 3; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        assert_int_equal(try_length(file_in(d, name, 0), INT64_MAX / 2), 0);
    }
    return d;
}

static void test_sums_do_not_wrap(void **state)
{
    struct volume_tally tally;
    (void)state;
    const uint64_t from = long_files(), to = mkdir_in(VOLUME_ROOT, "to");
    assert_int_equal(try_set(to, 5, 20), 0);
    assert_int_equal(volume_clone(f.a, from, to, "one", &root, &tally), -EDQUOT);
    assert_string_equal(quota(to), "0 0, 5 20");
    assert_int_equal(volume_clone(f.a, from, VOLUME_ROOT, "free", &root, &tally), 0);
    assert_int_equal(try_set(from, 9, 20), -EFBIG);
    assert_string_equal(quota(from), "none");
    assert_int_equal(volume_unlink(f.b, from, "a"), 0);
    assert_int_equal(try_set(from, 9, 20), 0);
    check_all();
}

static void test_a_dump_has_quotas(void **state)
{
    char *text;
    size_t size;
    struct dump_tally tally;
    struct meta *m;
    struct error err = ERROR_INIT;
    (void)state;
    uint64_t d = mkdir_in(VOLUME_ROOT, "d");
    assert_int_equal(try_set(d, 4, 10), 0);
    file_in(d, "f", 9);
    volume_close(f.a);
    volume_close(f.b);
    FILE *to = open_memstream(&text, &size);
    assert_int_equal(dump_save(f.m, to, &tally, &err), 0);
    fclose(to);
    FILE *in = fmemopen(text, size, "r");
    assert_int_equal(meta_memory_ops.open("", true, &m, &err), 0);
    assert_int_equal(dump_load(m, in, 1000, &tally, &err), 0);
    fclose(in);
    free(text);
    meta_close(f.m);
    f.m = m;
    advance(0);
    f.a = clients_open(NULL);
    f.b = clients_open(NULL);
    assert_string_equal(quota(d), "1 9, 3 1");
    assert_int_equal(try_write(lookup(d, "f"), 9, 2), -EDQUOT);
    check_all();
}

/* ---- damage ---- */

static void damage(struct meta_step step)
{
    struct error err = ERROR_INIT;
    struct meta_commit c = {.steps = &step, .count = 1};
    assert_int_equal(f.m->ops->commit(f.m, &c, &err), 0);
}

/* One finding, which a repair takes away. */
static void expect(enum check_kind kind)
{
    struct check c;
    struct error err = ERROR_INIT;
    assert_int_equal(check_run(&c, f.m, volume_format(f.a), &err), 0);
    assert_int_equal(c.count, 1);
    assert_int_equal(c.findings[0].kind, kind);
    check_keep_quotas(&c);
    assert_int_equal(c.count, 1);
    assert_int_equal(repair_finding(f.a, &c.findings[0]), 0);
    check_done(&c);
    check_all();
}

static void damage_number(uint64_t ino, size_t at, uint64_t number)
{
    static uint8_t bytes[8];
    meta_field_put(bytes, 0, (int64_t)number);
    damage((struct meta_step){META_SET, .key = meta_key_point(META_ATTR, ino), .offset = at,
                              .data = bytes, .size = sizeof bytes});
}

static void damage_use(const struct meta_key *key, int64_t inodes, int64_t bytes)
{
    const struct {
        size_t field;
        int64_t more;
    } rows[] = {{QUOTA_INODES, inodes},
                {QUOTA_BYTES, bytes},
                {QUOTA_INODES_LEFT, -inodes},
                {QUOTA_BYTES_LEFT, -bytes}};
    for (size_t i = 0; i < 4; i++)
        damage((struct meta_step){META_ADD, .key = *key, .offset = rows[i].field,
                                  .number = rows[i].more});
}

static void test_damage_is_found(void **state)
{
    struct volume_quota q;
    (void)state;
    uint64_t d = mkdir_in(VOLUME_ROOT, "d");
    assert_int_equal(try_set(d, 4, 10), 0);
    uint64_t ino = file_in(d, "f", 9), out = file_in(VOLUME_ROOT, "out", 1);
    assert_int_equal(volume_quota_of(f.a, d, &q), 0);
    const struct meta_key key = quotas_key(q.id);
    damage((struct meta_step){META_ADD, .key = key, .offset = QUOTA_INODES, .number = 3});
    expect(CHECK_QUOTA_INODES);
    damage((struct meta_step){META_ADD, .key = key, .offset = QUOTA_BYTES, .number = -3});
    expect(CHECK_QUOTA_BYTES);
    damage((struct meta_step){META_ADD, .key = key, .offset = QUOTA_INODES_LEFT, .number = 3});
    expect(CHECK_QUOTA_INODES_LEFT);
    damage((struct meta_step){META_ADD, .key = key, .offset = QUOTA_BYTES_LEFT, .number = -3});
    expect(CHECK_QUOTA_BYTES_LEFT);
    assert_string_equal(quota(d), "1 9, 3 1");
    /* An inode without the number of its directory, which did not count. */
    damage_number(ino, ATTR_ENTRIES, 0);
    damage_use(&key, -1, -9);
    expect(CHECK_QUOTA_OF);
    /* And one elsewhere that has it, and counts. */
    damage_number(out, ATTR_ENTRIES, q.id);
    damage_use(&key, 1, 1);
    expect(CHECK_QUOTA_OF);
    assert_string_equal(quota(d), "1 9, 3 1");
    damage_number(d, ATTR_CHANGES, 0);
    expect(CHECK_QUOTA_GONE);
    assert_string_equal(quota(ino), "none");
}

static void test_damage_of_long_files_is_found(void **state)
{
    struct volume_quota q;
    struct check c;
    struct error err = ERROR_INIT;
    bool found = false;
    (void)state;
    const uint64_t d = mkdir_in(VOLUME_ROOT, "d"), out = long_files();
    assert_int_equal(try_set(d, 4, 10), 0);
    assert_int_equal(volume_quota_of(f.a, d, &q), 0);
    for (unsigned i = 0; i < 3; i++)
        damage_number(lookup(out, (const char[]){(char)('a' + i), '\0'}), ATTR_ENTRIES, q.id);
    assert_int_equal(check_run(&c, f.m, volume_format(f.a), &err), 0);
    for (size_t i = 0; i < c.count; i++) {
        if (c.findings[i].kind != CHECK_QUOTA_OVER)
            continue;
        found = true;
        assert_int_equal(repair_finding(f.a, &c.findings[i]), -ENOTSUP);
    }
    assert_true(found);
    check_done(&c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, clients_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_inodes_are_limited),
        TEST(test_bytes_are_limited),
        TEST(test_limits_change),
        TEST(test_what_has_no_quota),
        TEST(test_a_tree_begins_to_count),
        TEST(test_quotas_are_not_nested),
        TEST(test_an_interrupted_call_goes_on),
        TEST(test_names_stay_inside),
        TEST(test_what_is_in_the_trash_counts_no_more),
        TEST(test_without_a_trash),
        TEST(test_the_directory_itself_is_removed),
        TEST(test_clones_count),
        TEST(test_sums_do_not_wrap),
        TEST(test_a_dump_has_quotas),
        TEST(test_damage_is_found),
        TEST(test_damage_of_long_files_is_found),
    };
    return cmocka_run_group_tests_name("mount_quota", tests, NULL, NULL);
}
