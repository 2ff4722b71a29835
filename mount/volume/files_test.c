/* Bytes of files, the end of inodes and slices, and limits. */
#include "mount/volume/volume.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdio.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "mount/meta/meta.h"
#include "mount/volume/testing/clients.h"

/* ---- what comes between the reads of a client and its commit ---- */

static struct meta_ops between_ops;
static const struct meta_ops *real_ops;
static void (*what_comes_between)(void);

/* The engine knows itself by its table. */
static int read_before(struct meta *m, struct meta_read *r, struct error *err)
{
    m->ops = real_ops;
    int rc = m->ops->read(m, r, err);
    m->ops = &between_ops;
    return rc;
}

static int commit_behind(struct meta *m, struct meta_commit *c, struct error *err)
{
    m->ops = real_ops;
    what_comes_between();
    return m->ops->commit(m, c, err);
}

/* Before the next commit; once. */
static void comes_between(void (*what)(void))
{
    real_ops = f.m->ops;
    between_ops = *real_ops;
    between_ops.read = read_before;
    between_ops.commit = commit_behind;
    what_comes_between = what;
    f.m->ops = &between_ops;
}

/* ---- bytes ---- */

static uint64_t write_at(struct volume *v, uint64_t ino, int64_t at, uint32_t length)
{
    uint64_t slice;
    assert_int_equal(volume_new_slice(v, &slice), 0);
    struct volume_piece p = {.at = at, .length = length, .slice = slice, .size = length};
    assert_int_equal(volume_write(v, ino, &p, 1, 0, NULL), 0);
    return slice;
}

static void expect_extent(uint64_t ino, int64_t at, uint64_t length, uint64_t slice,
                          uint32_t offset)
{
    struct volume_extent *x;
    size_t count;
    assert_int_equal(volume_extents(f.b, ino, at, length, f.arena, &x, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(x->at, at);
    assert_int_equal(x->length, length);
    assert_int_equal(x->entry != NULL ? x->entry->slice : 0, slice);
    assert_int_equal(x->offset, offset);
}

static void what_was_written_is_found(void **state)
{
    struct volume_extent *x;
    size_t count;
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    uint64_t one = write_at(f.a, ino, 10, 3 * CHUNK); /* over four chunks */
    assert_int_equal(attr_of(ino).length, 10 + 3 * CHUNK);
    expect_extent(ino, 0, 10, 0, 0);
    expect_extent(ino, 10, CHUNK - 10, one, 0);
    expect_extent(ino, CHUNK, CHUNK, one, CHUNK - 10);
    expect_extent(ino, 3 * CHUNK, 10, one, 3 * CHUNK - 10);
    uint64_t two = write_at(f.b, ino, CHUNK + 5, 5);
    expect_extent(ino, CHUNK + 5, 5, two, 0);
    expect_extent(ino, CHUNK + 10, 5, one, CHUNK);
    assert_int_equal(volume_extents(f.b, ino, 9 * CHUNK, 5, f.arena, &x, &count), 0);
    assert_int_equal(count, 0);
    assert_int_equal(volume_extents(f.b, ino, 3 * CHUNK + 9, 500, f.arena, &x, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(x[0].length, 1); /* the end of the file */
    struct volume_piece bad = {.length = 2, .slice = 1, .size = 1};
    assert_int_equal(volume_write(f.a, ino, &bad, 1, 0, NULL), -EINVAL);
    bad = (struct volume_piece){.at = INT64_MAX - 5, .length = 5, .slice = 1, .size = 5};
    assert_int_equal(volume_write(f.a, ino, &bad, 1, 0, NULL), -EFBIG);
    assert_int_equal(volume_write(f.a, VOLUME_ROOT, &bad, 1, 0, NULL), -EISDIR);
}

static void appends_follow_one_another(void **state)
{
    int64_t end;
    struct volume_piece p = {.length = 7, .size = 7};
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    for (int i = 0; i < 20; i++) {
        struct volume *v = i % 2 == 0 ? f.a : f.b;
        assert_int_equal(volume_new_slice(v, &p.slice), 0);
        assert_int_equal(volume_write(v, ino, &p, 1, VOLUME_APPEND, &end), 0);
        assert_int_equal(end, 7 * i);
        if ((7 * i) / CHUNK == (7 * i + 6) / CHUNK)
            expect_extent(ino, 7 * i, 7, p.slice, 0);
    }
    assert_int_equal(attr_of(ino).length, 140);
}

static uint64_t changed;

static void change_mode(void)
{
    const struct volume_set set = {.fields = VOLUME_SET_MODE, .mode = 0600};
    assert_int_equal(volume_setattr(f.b, changed, &set, NULL), 0);
}

static void a_write_that_drops_setid_undoes_no_chmod(void **state)
{
    struct volume_piece p = {.length = 5, .size = 5};
    (void)state;
    changed = make(VOLUME_ROOT, "x", S_IFREG | 04755);
    assert_int_equal(volume_new_slice(f.a, &p.slice), 0);
    comes_between(change_mode);
    assert_int_equal(volume_write(f.a, changed, &p, 1, VOLUME_APPEND | VOLUME_DROP_SETID, NULL), 0);
    assert_int_equal(attr_of(changed).mode, S_IFREG | 0600);
    assert_int_equal(attr_of(changed).length, 5);
}

static void a_truncation_cuts_for_good(void **state)
{
    struct volume_set set = {.fields = VOLUME_SET_LENGTH, .length = CHUNK + 5};
    struct volume_use before, use;
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    uint64_t one = write_at(f.a, ino, 0, 2 * CHUNK);
    write_at(f.a, ino, 2 * CHUNK, CHUNK);
    assert_int_equal(volume_use(f.a, &before), 0);
    assert_int_equal(before.bytes, 3 * CHUNK);
    assert_int_equal(volume_setattr(f.b, ino, &set, NULL), 0);
    assert_int_equal(volume_use(f.a, &use), 0);
    assert_int_equal(use.bytes, 2 * CHUNK); /* the second slice has no entry any more */
    set.length = 3 * CHUNK;
    assert_int_equal(volume_setattr(f.b, ino, &set, NULL), 0);
    expect_extent(ino, CHUNK, 5, one, CHUNK);
    expect_extent(ino, CHUNK + 5, CHUNK - 5, 0, 0);
    expect_extent(ino, 2 * CHUNK, CHUNK, 0, 0);
    set.length = 0;
    assert_int_equal(volume_setattr(f.b, ino, &set, NULL), 0);
    assert_int_equal(volume_use(f.a, &use), 0);
    assert_int_equal(use.bytes, 0);
}

static void garbage_waits_for_the_grace(void **state)
{
    struct volume_garbage *gone;
    size_t count;
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    uint64_t slices[20];
    for (int i = 0; i < 20; i++)
        slices[i] = write_at(f.a, ino, 3, 9);
    advance(GRACE_MS - 1);
    assert_int_equal(volume_garbage(f.b, f.arena, 100, &gone, &count), 0);
    assert_int_equal(count, 0);
    advance(1);
    assert_int_equal(volume_garbage(f.b, f.arena, 100, &gone, &count), 0);
    assert_true(count >= 10 && count < 20); /* all but those that a list may still have */
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(gone[i].slice, slices[i]);
        assert_int_equal(gone[i].size, 9);
    }
    assert_int_equal(volume_forget(f.b, gone, count), 0);
    assert_int_equal(volume_garbage(f.b, f.arena, 100, &gone, &count), 0);
    assert_int_equal(count, 0);
}

/* ---- the end of an inode ---- */

static void beat_all(void)
{
    assert_int_equal(volume_beat(f.a), 0);
    assert_int_equal(volume_beat(f.b), 0);
}

/* Heartbeats in time. */
static void wait_out(int64_t ms)
{
    bool more;
    for (int64_t at = 0; at < ms; at += SESSION_MS / 5) {
        advance(SESSION_MS / 5);
        beat_all();
        assert_int_equal(volume_clean(f.a, &more), 0);
    }
}

static void an_unlinked_file_is_freed_after_the_grace(void **state)
{
    struct attr a;
    struct volume_use use;
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    write_at(f.a, ino, 0, 3 * CHUNK);
    assert_int_equal(volume_setxattr(f.a, ino, "user.a", "1", 1, 0), 0);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "x"), 0);
    assert_int_equal(attr_of(ino).nlink, 0);
    wait_out(GRACE_MS + SESSION_MS);
    assert_int_equal(volume_getattr(f.a, ino, &a), -ENOENT);
    assert_int_equal(volume_use(f.a, &use), 0);
    assert_int_equal(use.inodes, 1);
    assert_int_equal(use.bytes, 0);
}

static void an_open_file_outlives_its_name(void **state)
{
    struct attr a;
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(volume_openfile(f.b, ino, &a), 0);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "x"), 0);
    wait_out(3 * GRACE_MS);
    uint64_t slice = write_at(f.b, ino, 0, 5);
    expect_extent(ino, 0, 5, slice, 0);
    volume_closefile(f.b, ino);
    wait_out(2 * GRACE_MS);
    assert_int_equal(volume_getattr(f.a, ino, &a), -ENOENT);
    assert_int_equal(volume_openfile(f.b, ino, &a), -ENOENT);
}

static uint64_t reopened;

static void reopen(void)
{
    struct attr a;
    assert_int_equal(volume_openfile(f.a, reopened, &a), 0);
}

/* The commit of the close finds that the file was opened again. */
static void a_file_that_is_opened_again_is_kept(void **state)
{
    struct attr a;
    (void)state;
    uint64_t ino = reopened = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(volume_openfile(f.a, ino, &a), 0);
    assert_int_equal(volume_unlink(f.b, VOLUME_ROOT, "x"), 0);
    beat_all();
    comes_between(reopen);
    volume_closefile(f.a, ino);
    assert_ptr_equal(f.m->ops, real_ops);
    wait_out(2 * GRACE_MS);
    assert_int_equal(volume_getattr(f.a, ino, &a), 0);
    volume_closefile(f.a, ino);
    wait_out(2 * GRACE_MS);
    assert_int_equal(volume_getattr(f.a, ino, &a), -ENOENT);
}

static void a_lost_client_keeps_nothing(void **state)
{
    struct attr a;
    struct volume_inode out;
    struct volume_new file = {.mode = S_IFREG | 0644};
    bool more;
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(volume_openfile(f.b, ino, &a), 0);
    assert_int_equal(volume_unlink(f.a, VOLUME_ROOT, "x"), 0);
    beat_all(); /* b keeps it from now on, and falls silent */
    for (int i = 0; i < 400; i++) {
        advance(SESSION_MS / 5);
        assert_int_equal(volume_beat(f.a), 0);
        assert_int_equal(volume_clean(f.a, &more), 0);
    }
    assert_int_equal(volume_getattr(f.a, ino, &a), -ENOENT);
    /* It cannot change anything any more, and can read. */
    assert_int_equal(volume_create(f.b, VOLUME_ROOT, "y", &file, &out), -EIO);
    assert_int_equal(volume_beat(f.b), -EIO);
    assert_int_equal(volume_lookup(f.b, VOLUME_ROOT, "y", &out), -ENOENT);
    volume_closefile(f.b, ino);
}

enum { OPEN_FILES = 1000, OPEN_REMOVED = 50 };

static struct meta_ops slow_ops;
static unsigned slow_reads;

/* Each read takes a twentieth of a session.  Another client lives, and ends sessions. */
static int read_slowly(struct meta *m, struct meta_read *r, struct error *err)
{
    bool more;
    slow_reads++;
    m->ops = real_ops;
    advance(SESSION_MS / 20);
    assert_int_equal(volume_beat(f.b), 0);
    assert_int_equal(volume_clean(f.b, &more), 0);
    int rc = m->ops->read(m, r, err);
    m->ops = &slow_ops;
    return rc;
}

/* The engine knows itself by its table. */
static int commit_between(struct meta *m, struct meta_commit *c, struct error *err)
{
    m->ops = real_ops;
    int rc = m->ops->commit(m, c, err);
    m->ops = &slow_ops;
    return rc;
}

static int now_between(struct meta *m, int64_t *unix_ms, struct error *err)
{
    m->ops = real_ops;
    int rc = m->ops->now(m, unix_ms, err);
    m->ops = &slow_ops;
    return rc;
}

static void many_open_files_end_no_session(void **state)
{
    uint64_t inos[OPEN_FILES];
    struct attr a;
    char name[16];
    (void)state;
    for (unsigned i = 0; i < OPEN_FILES; i++) {
        snprintf(name, sizeof name, "f%u", i);
        inos[i] = make(VOLUME_ROOT, name, S_IFREG | 0644);
        assert_int_equal(volume_openfile(f.a, inos[i], &a), 0);
        if (i < OPEN_REMOVED)
            assert_int_equal(volume_unlink(f.b, VOLUME_ROOT, name), 0);
    }
    real_ops = f.m->ops;
    slow_ops = *real_ops;
    slow_ops.read = read_slowly;
    slow_ops.commit = commit_between;
    slow_ops.now = now_between;
    f.m->ops = &slow_ops;
    const int rc = volume_beat(f.a);
    f.m->ops = real_ops;
    assert_int_equal(rc, 0);
    assert_true(slow_reads < 2 * OPEN_REMOVED);
    wait_out(2 * GRACE_MS);
    assert_int_equal(volume_getattr(f.a, inos[0], &a), 0);
    for (unsigned i = 0; i < OPEN_FILES; i++)
        volume_closefile(f.a, inos[i]);
}

static void limits_hold_exactly(void **state)
{
    struct volume_inode out;
    struct volume_new file = {.mode = S_IFREG | 0644};
    struct volume_piece p = {.at = 0, .length = 1, .slice = 5000, .size = 1};
    struct volume_set set = {.fields = VOLUME_SET_LENGTH};
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "a", S_IFREG | 0644);
    make(VOLUME_ROOT, "b", S_IFREG | 0644);
    assert_int_equal(volume_create(f.b, VOLUME_ROOT, "c", &file, &out), -ENOSPC);
    assert_int_equal(volume_allocate(f.a, ino, 0, 0, 101), -ENOSPC);
    write_at(f.a, ino, 0, 100);
    assert_int_equal(volume_write(f.b, ino, &p, 1, 0, NULL), -ENOSPC);
    assert_int_equal(volume_setattr(f.a, ino, &set, NULL), 0);
    assert_int_equal(volume_write(f.b, ino, &p, 1, 0, NULL), 0);
}

static int64_t seek(uint64_t ino, int64_t at, bool hole)
{
    int64_t found;
    int rc = volume_seek(f.b, ino, at, hole, &found);
    return rc != 0 ? rc : found;
}

static void zeros_take_no_room(void **state)
{
    const unsigned punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    struct volume_use use;
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    uint64_t one = write_at(f.a, ino, 0, CHUNK);
    write_at(f.a, ino, CHUNK, CHUNK);
    write_at(f.a, ino, 2 * CHUNK, CHUNK);
    assert_int_equal(volume_allocate(f.a, ino, punch, CHUNK - 4, CHUNK + 4), 0);
    expect_extent(ino, 0, CHUNK - 4, one, 0);
    expect_extent(ino, CHUNK - 4, 4, 0, 0);
    expect_extent(ino, CHUNK, CHUNK, 0, 0);
    assert_int_equal(volume_use(f.a, &use), 0);
    assert_int_equal(use.bytes, 2 * CHUNK);
    assert_int_equal(volume_allocate(f.a, ino, punch, 2 * CHUNK + 60, 1000 * CHUNK), 0);
    assert_int_equal(attr_of(ino).length, 3 * CHUNK);
    expect_extent(ino, 3 * CHUNK - 4, 4, 0, 0);
    assert_int_equal(volume_allocate(f.a, ino, FALLOC_FL_ZERO_RANGE, 0, 4 * CHUNK), 0);
    assert_int_equal(attr_of(ino).length, 4 * CHUNK);
    assert_int_equal(volume_use(f.a, &use), 0);
    assert_int_equal(use.bytes, 0);
}

static void an_allocation_reserves_nothing(void **state)
{
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(volume_allocate(f.a, ino, 0, 5, 10), 0);
    assert_int_equal(attr_of(ino).length, 15);
    assert_int_equal(volume_allocate(f.a, ino, 0, 0, 10), 0);
    assert_int_equal(volume_allocate(f.a, ino, FALLOC_FL_KEEP_SIZE, 0, 100), 0);
    assert_int_equal(attr_of(ino).length, 15);
    assert_int_equal(seek(ino, 0, true), 0);
    assert_int_equal(volume_allocate(f.a, ino, 0, 0, 0), -EINVAL);
    assert_int_equal(volume_allocate(f.a, ino, 0, INT64_MAX - 5, 5), -EFBIG);
    assert_int_equal(volume_allocate(f.a, ino, 0, 0, VOLUME_FREE_BYTES + 16), -ENOSPC);
    assert_int_equal(volume_allocate(f.a, ino, FALLOC_FL_PUNCH_HOLE, 0, 5), -EOPNOTSUPP);
    assert_int_equal(volume_allocate(f.a, ino, FALLOC_FL_COLLAPSE_RANGE, 0, 5), -EOPNOTSUPP);
    assert_int_equal(volume_allocate(f.a, VOLUME_ROOT, 0, 0, 5), -EISDIR);
    assert_int_equal(volume_allocate(f.a, 12345, 0, 0, 5), -ENOENT);
}

static void holes_and_data_are_found(void **state)
{
    struct volume_set set = {.fields = VOLUME_SET_LENGTH, .length = 900 * CHUNK};
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    assert_int_equal(seek(ino, 0, true), -ENXIO); /* an empty file */
    write_at(f.a, ino, 10, 20);
    assert_int_equal(seek(ino, 0, true), 0);
    assert_int_equal(seek(ino, 0, false), 10);
    assert_int_equal(seek(ino, 15, false), 15);
    assert_int_equal(seek(ino, 15, true), 30); /* the end */
    assert_int_equal(seek(ino, 30, true), -ENXIO);
    write_at(f.a, ino, 30, CHUNK - 30);
    write_at(f.a, ino, CHUNK, CHUNK);
    assert_int_equal(seek(ino, 15, true), 2 * CHUNK);
    for (unsigned i = 0; i < 300; i++) /* more than a page */
        write_at(f.a, ino, (3 + 2 * i) * CHUNK, CHUNK);
    assert_int_equal(seek(ino, 11, true), 2 * CHUNK);
    assert_int_equal(seek(ino, 2 * CHUNK, false), 3 * CHUNK);
    assert_int_equal(
        volume_allocate(f.a, ino, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, 598 * CHUNK), 0);
    assert_int_equal(seek(ino, 0, false), 599 * CHUNK);
    assert_int_equal(volume_setattr(f.a, ino, &set, NULL), 0);
    assert_int_equal(seek(ino, 601 * CHUNK, true), 602 * CHUNK);
    assert_int_equal(seek(ino, 602 * CHUNK, false), -ENXIO);
    assert_int_equal(seek(ino, 602 * CHUNK, true), 602 * CHUNK);
}

/* An engine that counts the reads of the client over it. */
struct counting {
    struct meta meta; /* first */
    struct meta *below;
    unsigned reads;
};

static int counting_read(struct meta *m, struct meta_read *r, struct error *err)
{
    struct counting *c = (struct counting *)m;
    c->reads++;
    return c->below->ops->read(c->below, r, err);
}

static int counting_commit(struct meta *m, struct meta_commit *commit, struct error *err)
{
    struct counting *c = (struct counting *)m;
    return c->below->ops->commit(c->below, commit, err);
}

static int counting_now(struct meta *m, int64_t *unix_ms, struct error *err)
{
    struct counting *c = (struct counting *)m;
    return c->below->ops->now(c->below, unix_ms, err);
}

static void counts_of_slices_are_read_in_pages(void **state)
{
    enum { SLICES = 1000 };
    static const struct meta_ops ops = {
        .read = counting_read, .commit = counting_commit, .now = counting_now};
    struct counting counting = {.meta.ops = &ops, .below = f.m};
    const struct volume_set cut = {.fields = VOLUME_SET_LENGTH};
    struct volume_garbage *gone;
    size_t count;
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    for (unsigned i = 0; i < SLICES; i++)
        write_at(f.a, ino, i * CHUNK / 4, CHUNK / 4);
    f.m = &counting.meta;
    struct volume *v = clients_open(NULL);
    f.m = counting.below;
    counting.reads = 0;
    assert_int_equal(volume_setattr(v, ino, &cut, NULL), 0);
    assert_in_range(counting.reads, 1, 20);
    volume_close(v);
    advance(GRACE_MS + 1);
    assert_int_equal(volume_garbage(f.b, f.arena, 2 * SLICES, &gone, &count), 0);
    assert_int_equal(count, SLICES);
}

/* The commit may be much later. */
static void a_file_has_the_time_of_its_last_write(void **state)
{
    const int64_t before = volume_now(f.a);
    struct volume_piece p = {.length = 5, .slice = 1, .size = 5, .written_ns = before - 5};
    (void)state;
    uint64_t ino = make(VOLUME_ROOT, "x", S_IFREG | 0644);
    advance(1000);
    const int64_t made = attr_of(ino).ctime_ns;
    assert_true(made >= before);
    assert_int_equal(volume_write(f.a, ino, &p, 1, 0, NULL), 0);
    assert_int_equal(attr_of(ino).mtime_ns, before - 5);
    assert_int_equal(attr_of(ino).ctime_ns, made); /* is never set back */
    p.written_ns = volume_now(f.a);
    p.slice = 2;
    assert_true(p.written_ns > made);
    assert_int_equal(volume_write(f.a, ino, &p, 1, 0, NULL), 0);
    assert_int_equal(attr_of(ino).mtime_ns, p.written_ns);
    assert_int_equal(attr_of(ino).ctime_ns, p.written_ns);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, clients_setup, clients_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_was_written_is_found),
        CASE(appends_follow_one_another),
        CASE(a_write_that_drops_setid_undoes_no_chmod),
        CASE(a_truncation_cuts_for_good),
        CASE(zeros_take_no_room),
        CASE(an_allocation_reserves_nothing),
        CASE(holes_and_data_are_found),
        CASE(a_file_has_the_time_of_its_last_write),
        CASE(counts_of_slices_are_read_in_pages),
        CASE(garbage_waits_for_the_grace),
        CASE(an_unlinked_file_is_freed_after_the_grace),
        CASE(an_open_file_outlives_its_name),
        CASE(a_file_that_is_opened_again_is_kept),
        CASE(a_lost_client_keeps_nothing),
        CASE(many_open_files_end_no_session),
        cmocka_unit_test_setup_teardown(limits_hold_exactly, clients_setup_limits,
                                        clients_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
