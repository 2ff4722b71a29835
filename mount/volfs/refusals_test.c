/* Written bytes for which there is no room: in a quota, a volume, a store, an engine. */
#include "mount/volfs/volfs.h"

#include <errno.h>
#include <linux/falloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/mem.h"
#include "mount/volfs/testing/world.h"
#include "mount/volume/trees/trees.h"

/* Two blocks.  After a refusal by the limit a write tells the next one. */
static void write_too_much(struct volfs_file *f, const char *data, int error)
{
    ssize_t rc = BLOCK / 2;
    for (int64_t at = 0; at < 2 * BLOCK && rc > 0; at += BLOCK / 2)
        rc = write_at(f, at, data + at, BLOCK / 2);
    assert_true(rc == BLOCK / 2 || rc == error);
}

/* One block has room. */
static void expect_dropped(struct world *w, uint64_t ino, int error)
{
    struct volfs_file *f, *other;
    struct volume_set set = {.fields = VOLUME_SET_LENGTH, .length = 5};
    struct stat st;
    int64_t at;
    const unsigned punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    _cleanup_free_ char *data = random_data(2 * BLOCK, 7);
    assert_int_equal(volfs_openfile(w->v, ino, false, &f), 0);
    assert_int_equal(volfs_openfile(w->v, ino, false, &other), 0);
    assert_int_equal(write_at(f, 0, data, 10), 10);
    assert_int_equal(volfs_flush(f), 0);
    write_too_much(f, data, error);
    assert_bytes(other, data, 10); /* a read goes on */
    assert_int_equal(write_at(f, 0, data, 10), error);
    assert_int_equal(write_at(f, 0, data, 10), 10);
    assert_int_equal(volfs_flush(other), error);
    assert_int_equal(volfs_flush(f), error); /* the kernel may have hidden that of the write */
    assert_int_equal(volfs_flush(f), 0);
    write_too_much(f, data, error);
    assert_int_equal(volfs_setattr(w->v, ino, &set, &st), 0);
    assert_int_equal(st.st_size, 5);
    assert_int_equal(volfs_flush(f), error);
    assert_int_equal(volfs_flush(f), 0);
    write_too_much(f, data, error);
    assert_int_equal(volfs_sync(w->v), 0);
    assert_int_equal(volfs_flush(f), error);
    assert_int_equal(volfs_flush(other), error);
    assert_bytes(other, data, 5);
    write_too_much(f, data, error);
    assert_int_equal(volfs_seek(f, 0, true, &at), 0);
    assert_int_equal(at, 5);
    assert_int_equal(volfs_flush(f), error);
    write_too_much(f, data, error);
    assert_int_equal(volfs_allocate(f, punch, 0, 5), 0);
    assert_int_equal(volfs_flush(f), error);
    assert_int_equal(volfs_flush(f), 0);
    volfs_closefile(f);
    volfs_closefile(other);
}

/* The file is below a directory with a quota. */
static void test_what_a_quota_refuses_is_dropped(void **state)
{
    struct world *w = *state;
    struct volume_inode d, file;
    struct volume_quota q;
    const struct volume_new directory = {.mode = S_IFDIR | 0755}, what = {.mode = S_IFREG | 0644};
    const struct volume_quota_limits limits = {.inodes = 9, .bytes = BLOCK};
    assert_int_equal(volume_create(w->volume, VOLUME_ROOT, "d", &directory, &d), 0);
    assert_int_equal(volume_quota_set(w->volume, d.ino, &limits, NULL, &q), 0);
    assert_int_equal(volume_create(w->volume, d.ino, "f", &what, &file), 0);
    expect_dropped(w, file.ino, -EDQUOT);
}

static void limit_bytes(struct world *w, int64_t bytes)
{
    struct error err = ERROR_INIT;
    struct volume_format was, format;
    assert_int_equal(format_read(w->meta, &was, &err), 0);
    format = was;
    format.max_bytes = bytes;
    assert_int_equal(format_change(w->meta, &was, &format, &err), 0);
}

static void test_what_a_full_volume_refuses_is_dropped(void **state)
{
    struct world *w = *state;
    limit_bytes(w, BLOCK);
    expect_dropped(w, w->ino, -ENOSPC);
    limit_bytes(w, 0);
    _cleanup_free_ char *data = random_data(BLOCK, 9);
    struct volfs_file *f = open_file(w);
    write_all(f, data, BLOCK);
    assert_int_equal(volfs_flush(f), -ENOSPC);
    const unsigned puts = w->puts;
    for (unsigned i = 0; i < 10; i++) /* a program that does not give up */
        assert_int_equal(write_at(f, i * BLOCK, data, BLOCK), -ENOSPC);
    assert_int_equal(w->puts, puts);
    limit_bytes(w, 10 * BLOCK);
    write_all(f, data, BLOCK);
    assert_int_equal(volfs_flush(f), -ENOSPC); /* of before */
    assert_bytes(f, data, BLOCK);
    volfs_closefile(f);
}

/* The room of the store, and of the engine, may come back. */
static void test_what_a_full_disk_refuses_stays(void **state)
{
    struct world *w = *state;
    struct stat st;
    const struct volume_set set = {.fields = VOLUME_SET_LENGTH, .length = 5};
    _cleanup_free_ char *data = random_data(BLOCK, 8);
    struct volfs_file *f = open_file(w);
    const int errors[] = {-ENOSPC, -EDQUOT}; /* the latter: the bucket's quota */
    for (size_t i = 0; i < 2; i++) {
        w->put_error = errors[i];
        fail_puts(w, 0, 1000000);
        assert_int_equal(write_at(f, 0, data, 100), 100);
        assert_int_equal(volfs_settle(f), errors[i]);
        assert_int_equal(volfs_setattr(w->v, w->ino, &set, &st), errors[i]);
        assert_int_equal(volfs_sync(w->v), errors[i]);
        assert_int_equal(volfs_flush(f), errors[i]);
        fail_puts(w, 0, 0);
        assert_bytes(f, data, 100);
    }
    atomic_store(&w->engine.full, true);
    assert_int_equal(write_at(f, 50, data, 100), 100);
    assert_int_equal(volfs_settle(f), -ENOSPC);
    assert_int_equal(volfs_flush(f), -ENOSPC);
    atomic_store(&w->engine.full, false);
    assert_int_equal(volfs_flush(f), 0);
    assert_int_equal(volfs_setattr(w->v, w->ino, &set, &st), 0);
    volfs_closefile(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_a_quota_refuses_is_dropped, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_what_a_full_volume_refuses_is_dropped, world_setup,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_what_a_full_disk_refuses_stays, world_setup,
                                        world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
