/* Where the contents of members are: what an index of members is made of. */
#include "sort/shard/tar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/file.h"
#include "sort/shard/tar_header.h"
#include "sort/testing/fixture.h"

static int read_text(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    const struct buf *tar = ctx;
    if (offset + len > tar->len)
        return error_set(err, E_LENGTH, "the text ends before");
    memcpy(out, tar->data + offset, len);
    return 0;
}

static struct tar_scan *scan_of(struct buf *tar)
{
    struct tar_scan *s = tar_scan_new(-1, tar->len, "s.tar");
    tar_scan_source(s, read_text, tar);
    tar_scan_sparse(s);
    return s;
}

static void expect_place(struct tar_scan *s, const char *path, uint64_t offset, uint64_t size,
                         bool sparse)
{
    struct tar_member m;
    struct error err = ERROR_INIT;
    assert_int_equal(tar_scan_next(s, &m, &err), 1);
    assert_int_equal(m.path_len, strlen(path));
    assert_memory_equal(m.path, path, m.path_len);
    assert_int_equal(m.contents_offset, offset);
    assert_int_equal(m.contents_size, size);
    assert_int_equal(m.sparse, sparse);
}

static void expect_end(struct tar_scan *s)
{
    struct tar_member m;
    struct error err = ERROR_INIT;
    assert_int_equal(tar_scan_next(s, &m, &err), 0);
    tar_scan_free(s);
}

static void test_places_behind_all_headers(void **state)
{
    (void)state;
    struct buf tar = BUF_INIT, records = BUF_INIT;
    fixture_file(&tar, "a", "hello");
    fixture_long(&tar, 'L', "b-long");
    fixture_pax_record(&records, "mtime", "-12.75");
    fixture_pax(&tar, 'x', &records);
    fixture_file(&tar, "b", "");
    fixture_end(&tar);
    struct tar_scan *s = scan_of(&tar);
    expect_place(s, "a", 512, 5, false);
    struct tar_member m;
    assert_int_equal(tar_scan_next(s, &m, NULL), 1);
    assert_int_equal(m.contents_offset, 1024 + 2 * 1024 + 512);
    assert_int_equal(m.contents_size, 0);
    assert_int_equal(m.mtime_s, -12);
    expect_end(s);
    buf_done(&tar);
    buf_done(&records);
}

/* The old form: a map of more than four pieces goes on behind the header. */
static void test_old_sparse_files(void **state)
{
    (void)state;
    struct buf tar = BUF_INIT;
    fixture_header(&tar, "holes", 'S', 600, "");
    tar.data[482] = 1;
    fixture_seal((unsigned char *)tar.data);
    char map[2 * TAR_BLOCK] = {0};
    map[504] = 1;
    buf_append(&tar, map, sizeof map);
    _cleanup_free_ char *contents = calloc(1, 600);
    fixture_contents(&tar, contents, 600);
    fixture_file(&tar, "behind", "x");
    fixture_end(&tar);
    struct tar_scan *s = scan_of(&tar);
    expect_place(s, "holes", 512 + 1024, 600, true);
    expect_place(s, "behind", 512 + 1024 + 1024 + 512, 1, false);
    expect_end(s);
    struct tar_member m;
    struct error err = ERROR_INIT;
    s = tar_scan_new(-1, 1024, "s.tar");
    tar_scan_source(s, read_text, &tar);
    tar_scan_sparse(s);
    assert_int_equal(tar_scan_next(s, &m, &err), E_SHARD_CORRUPT);
    assert_non_null(strstr(err.message, "map"));
    tar_scan_free(s);
    buf_done(&tar);
}

static void test_pax_sparse_files_have_their_names(void **state)
{
    (void)state;
    struct buf tar = BUF_INIT, records = BUF_INIT;
    fixture_pax_record(&records, "GNU.sparse.major", "1");
    fixture_pax_record(&records, "GNU.sparse.name", "dir/holes");
    fixture_pax_record(&records, "GNU.sparse.realsize", "1048576");
    fixture_pax(&tar, 'x', &records);
    fixture_file(&tar, "dir/GNUSparseFile.7/holes", "0\n");
    fixture_file(&tar, "behind", "x");
    fixture_end(&tar);
    struct tar_scan *s = scan_of(&tar);
    expect_place(s, "dir/holes", 1024 + 512, 2, true);
    expect_place(s, "behind", 1024 + 1024 + 512, 1, false);
    expect_end(s);
    buf_done(&tar);
    buf_done(&records);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places_behind_all_headers),
        cmocka_unit_test(test_old_sparse_files),
        cmocka_unit_test(test_pax_sparse_files_have_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
