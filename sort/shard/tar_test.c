#include "sort/shard/tar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/mem.h"
#include "sort/testing/fixture.h"
#include "sort/shard/tar_header.h"
#include "sort/shard/tar_pax.h"

struct fixture {
    struct buf tar;
    int fd;
    struct tar_scan *scan;
    struct tar_member m;
    struct error err;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->fd = -1;
    *state = f;
    return 0;
}

static void fixture_close(struct fixture *f)
{
    tar_scan_free(steal(f->scan));
    cleanup_close_(&f->fd);
    f->fd = -1;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    fixture_close(f);
    buf_done(&f->tar);
    free(f);
    return 0;
}

static void fixture_open(struct fixture *f)
{
    fixture_close(f);
    f->fd = fixture_fd(&f->tar);
    f->scan = tar_scan_new(f->fd, f->tar.len, "s.tar");
}

static void expect_member(struct fixture *f, const char *path, char type)
{
    assert_int_equal(tar_scan_next(f->scan, &f->m, &f->err), 1);
    assert_int_equal(f->m.path_len, strlen(path));
    assert_memory_equal(f->m.path, path, strlen(path));
    assert_int_equal(f->m.type, type);
}

static void expect_range(const struct fixture *f, uint64_t from, uint64_t to)
{
    assert_int_equal(f->m.piece_count, 1);
    assert_null(f->m.pieces[0].inline_data);
    assert_int_equal(f->m.pieces[0].offset, from);
    assert_int_equal(f->m.pieces[0].length, to - from);
}

static void expect_end(struct fixture *f)
{
    assert_int_equal(tar_scan_next(f->scan, &f->m, &f->err), 0);
    assert_int_equal(tar_scan_next(f->scan, &f->m, &f->err), 0);
}

/* Scans to the first error. */
static void expect_error(struct fixture *f, int code, const char *words)
{
    fixture_open(f);
    int rc;
    while ((rc = tar_scan_next(f->scan, &f->m, &f->err)) > 0)
        ;
    assert_int_equal(rc, code);
    if (strstr(f->err.message, words) == NULL || strstr(f->err.message, "shard 's.tar'") == NULL)
        fail_msg("'%s' does not say '%s'", f->err.message, words);
}

static void test_members_are_ranges(void **state)
{
    struct fixture *f = *state;
    fixture_file(&f->tar, "a/b.txt", "hello");
    fixture_file(&f->tar, "a/empty", "");
    fixture_header(&f->tar, "a/link", '2', 0, "b.txt");
    fixture_header(&f->tar, "a/dir/", '5', 0, "");
    fixture_header(&f->tar, "a/old/", '0', 0, "");
    fixture_end(&f->tar);
    fixture_open(f);
    expect_member(f, "a/b.txt", '0');
    expect_range(f, 0, 1024);
    expect_member(f, "a/empty", '0');
    expect_range(f, 1024, 1536);
    expect_member(f, "a/link", '2');
    assert_memory_equal(f->m.link, "b.txt", f->m.link_len);
    expect_member(f, "a/dir/", '5');
    expect_member(f, "a/old/", '5');
    expect_range(f, 2560, 3072);
    expect_end(f);
}

static void test_empty_archives(void **state)
{
    struct fixture *f = *state;
    fixture_open(f);
    expect_end(f);
    fixture_end(&f->tar);
    fixture_open(f);
    expect_end(f);
    buf_clear(&f->tar);
    for (int i = 0; i < 10; i++)
        fixture_end(&f->tar); /* filled up to GNU tar's 10 KiB */
    fixture_open(f);
    expect_end(f);
}

static void test_long_paths(void **state)
{
    struct fixture *f = *state;
    char path[300];
    memset(path, 'p', sizeof path - 1);
    path[299] = '\0';
    fixture_long(&f->tar, 'L', path);
    fixture_long(&f->tar, 'K', "to");
    fixture_header(&f->tar, "ppp", '2', 0, "t");
    uint64_t second = f->tar.len;
    struct buf records = BUF_INIT;
    fixture_pax_record(&records, "path", "pax/path");
    fixture_pax_record(&records, "linkpath", "pax/link");
    fixture_pax(&f->tar, 'x', &records);
    fixture_header(&f->tar, "short", '2', 0, "t");
    uint64_t third = f->tar.len;
    fixture_file(&f->tar, "plain", "x");
    unsigned char *block = (unsigned char *)f->tar.data + third;
    memcpy(block + 345, "pre/fix", 7);
    fixture_seal(block);
    fixture_end(&f->tar);
    fixture_open(f);
    expect_member(f, path, '2');
    expect_range(f, 0, second);
    assert_memory_equal(f->m.link, "to", 2);
    expect_member(f, "pax/path", '2');
    expect_range(f, second, third);
    assert_memory_equal(f->m.link, "pax/link", f->m.link_len);
    expect_member(f, "pre/fix/plain", '0');
    expect_end(f);
    buf_done(&records);
}

/* GNU's magic has other things where POSIX has the prefix. */
static void test_prefix_is_only_posix(void **state)
{
    struct fixture *f = *state;
    fixture_file(&f->tar, "name", "x");
    unsigned char *block = (unsigned char *)f->tar.data;
    memcpy(block + 257, "ustar  ", 8);
    memcpy(block + 345, "14524765400", 11);
    fixture_seal(block);
    fixture_end(&f->tar);
    fixture_open(f);
    expect_member(f, "name", '0');
    expect_end(f);
}

static void test_pax_size_counts(void **state)
{
    struct fixture *f = *state;
    struct buf records = BUF_INIT;
    fixture_pax_record(&records, "size", "600");
    fixture_pax(&f->tar, 'x', &records);
    fixture_header(&f->tar, "a", '0', 0, "");
    char contents[600] = {1};
    fixture_contents(&f->tar, contents, sizeof contents);
    uint64_t end = f->tar.len;
    fixture_end(&f->tar);
    fixture_open(f);
    expect_member(f, "a", '0');
    expect_range(f, 0, end);
    expect_end(f);
    buf_done(&records);
}

static void test_base256_and_blank_numbers(void **state)
{
    struct fixture *f = *state;
    fixture_file(&f->tar, "a", "hello");
    unsigned char *block = (unsigned char *)f->tar.data;
    memset(block + 124, 0, 12);
    block[124] = 0x80;
    block[135] = 5;
    memset(block + 136, 0xff, 12); /* one second before 1970 */
    memset(block + 108, ' ', 8);
    fixture_seal(block);
    fixture_end(&f->tar);
    fixture_open(f);
    expect_member(f, "a", '0');
    expect_range(f, 0, 1024);
    expect_end(f);
}

static void test_signed_checksums(void **state)
{
    struct fixture *f = *state;
    fixture_file(&f->tar, "\xc3\xa9", "x");
    unsigned char *block = (unsigned char *)f->tar.data;
    memset(block + 148, ' ', 8);
    int sum = 0;
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (signed char)block[i];
    snprintf((char *)block + 148, 8, "%06o", (unsigned)sum);
    fixture_end(&f->tar);
    fixture_open(f);
    expect_member(f, "\xc3\xa9", '0');
    expect_end(f);
}

static void expect_folded(const struct fixture *f, const struct buf *records)
{
    const struct tar_piece *p = &f->m.pieces[0];
    assert_non_null(p->inline_data);
    assert_int_equal(p->length, TAR_BLOCK + tar_padded(records->len));
    const unsigned char *bytes = p->inline_data;
    struct tar_header h;
    assert_null(tar_header_parse(bytes, &h));
    assert_int_equal(h.type, 'x');
    assert_int_equal(h.size, records->len);
    assert_string_equal(h.name, "PaxHeaders/global");
    assert_memory_equal(bytes + TAR_BLOCK, records->data, records->len);
}

static void test_global_headers_are_folded(void **state)
{
    struct fixture *f = *state;
    struct buf globals = BUF_INIT;
    struct buf own = BUF_INIT;
    struct buf both = BUF_INIT;
    fixture_pax_record(&globals, "comment", "of all");
    fixture_pax_record(&globals, "mtime", "1.5");
    fixture_pax(&f->tar, 'g', &globals);
    uint64_t first = f->tar.len;
    fixture_file(&f->tar, "a", "x");
    fixture_long(&f->tar, 'L', "long");
    uint64_t pax = f->tar.len;
    fixture_pax_record(&own, "mtime", "2.5");
    fixture_pax(&f->tar, 'x', &own);
    uint64_t after = f->tar.len;
    fixture_file(&f->tar, "l", "x");
    uint64_t end = f->tar.len;
    fixture_end(&f->tar);
    fixture_open(f);
    expect_member(f, "a", '0');
    expect_folded(f, &globals);
    assert_int_equal(f->m.piece_count, 2);
    assert_int_equal(f->m.pieces[1].offset, first);
    expect_member(f, "long", '0');
    fixture_pax_record(&both, "comment", "of all");
    fixture_pax_record(&both, "mtime", "2.5");
    expect_folded(f, &both);
    assert_int_equal(f->m.piece_count, 3);
    assert_int_equal(f->m.pieces[1].offset + f->m.pieces[1].length, pax);
    assert_int_equal(f->m.pieces[2].offset, after);
    assert_int_equal(f->m.pieces[2].length, end - after);
    expect_end(f);
    buf_done(&globals);
    buf_done(&own);
    buf_done(&both);
}

/* A later global header sets anew or takes back; a member that sets all itself stays as it is. */
static void test_globals_change(void **state)
{
    struct fixture *f = *state;
    struct buf records = BUF_INIT;
    fixture_pax_record(&records, "a", "1");
    fixture_pax_record(&records, "b", "1");
    fixture_pax(&f->tar, 'g', &records);
    buf_clear(&records);
    fixture_pax_record(&records, "a", "2");
    fixture_pax_record(&records, "b", "");
    fixture_pax(&f->tar, 'g', &records);
    uint64_t start = f->tar.len;
    fixture_file(&f->tar, "m", "x");
    uint64_t second = f->tar.len;
    buf_clear(&records);
    fixture_pax_record(&records, "a", "3");
    fixture_pax(&f->tar, 'x', &records);
    fixture_file(&f->tar, "n", "x");
    uint64_t end = f->tar.len;
    fixture_end(&f->tar);
    fixture_open(f);
    buf_clear(&records);
    fixture_pax_record(&records, "a", "2");
    expect_member(f, "m", '0');
    expect_folded(f, &records);
    assert_int_equal(f->m.pieces[1].offset, start);
    expect_member(f, "n", '0');
    expect_range(f, second, end);
    expect_end(f);
    buf_done(&records);
}

/* Every way of being cut short is noticed: no prefix of an archive but the whole is an archive. */
static void test_truncation_anywhere(void **state)
{
    struct fixture *f = *state;
    struct buf records = BUF_INIT;
    fixture_pax_record(&records, "path", "long/path");
    fixture_pax(&f->tar, 'x', &records);
    fixture_file(&f->tar, "a", "hello");
    fixture_file(&f->tar, "b", "");
    size_t whole = f->tar.len;
    fixture_end(&f->tar);
    for (size_t len = 1; len < whole + 512; len++) {
        f->tar.len = len;
        fixture_open(f);
        int rc;
        while ((rc = tar_scan_next(f->scan, &f->m, &f->err)) > 0)
            ;
        if (rc != E_SHARD_CORRUPT)
            fail_msg("%zu bytes of %zu: %s", len, whole, error_name(rc));
    }
    /* From the first zero block on it is whole. */
    f->tar.len = whole + 512;
    fixture_open(f);
    expect_member(f, "long/path", '0');
    expect_member(f, "b", '0');
    expect_end(f);
    buf_done(&records);
}

/* Each byte of a header is covered by the checksum. */
static void test_flipped_header_bytes(void **state)
{
    struct fixture *f = *state;
    fixture_file(&f->tar, "name", "hello");
    fixture_end(&f->tar);
    for (size_t i = 0; i < TAR_BLOCK; i++) {
        f->tar.data[i] ^= 1;
        bool in_padding = i >= 148 + 7 && i < 156;
        if (!in_padding)
            expect_error(f, E_SHARD_CORRUPT, "byte 0");
        f->tar.data[i] ^= 1;
    }
}

static void with_header(struct fixture *f, size_t offset, const char *bytes, size_t len)
{
    buf_clear(&f->tar);
    fixture_file(&f->tar, "name", "hello");
    unsigned char *block = (unsigned char *)f->tar.data;
    memcpy(block + offset, bytes, len);
    fixture_seal(block);
    fixture_end(&f->tar);
}

static void test_corrupt_headers(void **state)
{
    struct fixture *f = *state;
    with_header(f, 124, "0000000000x", 11);
    expect_error(f, E_SHARD_CORRUPT, "its size is not a number");
    with_header(f, 124, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
    expect_error(f, E_SHARD_CORRUPT, "its size is not a number");
    with_header(f, 124, "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
    expect_error(f, E_SHARD_CORRUPT, "its size is not a number");
    with_header(f, 124, "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", 12);
    expect_error(f, E_SHARD_CORRUPT, "past the end");
    with_header(f, 124, "00000010000", 11);
    expect_error(f, E_SHARD_CORRUPT, "past the end");
    with_header(f, 100, "08", 2);
    expect_error(f, E_SHARD_CORRUPT, "mode");
    with_header(f, 136, "yesterday", 9);
    expect_error(f, E_SHARD_CORRUPT, "time");
    with_header(f, 0, "\0\0\0\0", 4);
    expect_error(f, E_SHARD_CORRUPT, "without a name");
}

static void test_refused_types(void **state)
{
    struct fixture *f = *state;
    static const char types[] = "SDMNV";
    for (const char *t = types; *t != '\0'; t++) {
        with_header(f, 156, t, 1);
        expect_error(f, E_SHARD_UNSUPPORTED, *t == 'S' ? "sparse" : "GNU");
    }
    for (const char *t = "123456"; *t != '\0'; t++) {
        with_header(f, 156, t, 1);
        expect_error(f, E_SHARD_UNSUPPORTED, "with a size");
    }
}

static void pax_error(struct fixture *f, char type, const char *text, int code, const char *words)
{
    buf_clear(&f->tar);
    struct buf records = BUF_INIT;
    buf_puts(&records, text);
    fixture_pax(&f->tar, type, &records);
    fixture_file(&f->tar, "a", "x");
    fixture_end(&f->tar);
    expect_error(f, code, words);
    buf_done(&records);
}

static void test_pax_errors(void **state)
{
    struct fixture *f = *state;
    static const char *const malformed[] = {"x",
                                            "5 a=b",
                                            "6 a=b",
                                            "7 a=b\n",
                                            "4 ab\n",
                                            "5 =b\n",
                                            "99999999999999999999 a=b\n",
                                            "-6 a=b\n",
                                            "6  a=b\n",
                                            "6 a=b\n9",
                                            "06a=b\n"};
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        pax_error(f, 'x', malformed[i], E_SHARD_CORRUPT, "malformed");
    pax_error(f, 'x', "11 size=-1\n", E_SHARD_CORRUPT, "size");
    pax_error(f, 'x', "11 size=0x\n", E_SHARD_CORRUPT, "size");
    pax_error(f, 'x', "28 size=1000000000000000000\n", E_SHARD_CORRUPT, "size");
    pax_error(f, 'x', "22 GNU.sparse.major=1\n", E_SHARD_UNSUPPORTED, "sparse");
    pax_error(f, 'g', "22 GNU.sparse.major=1\n", E_SHARD_UNSUPPORTED, "sparse");
    pax_error(f, 'g', "9 path=b\n", E_SHARD_UNSUPPORTED, "global header that sets");
    pax_error(f, 'g', "11 size=12\n", E_SHARD_UNSUPPORTED, "global header that sets");
}

static void test_refused_sequences(void **state)
{
    struct fixture *f = *state;
    struct buf records = BUF_INIT;
    fixture_pax_record(&records, "comment", "x");
    fixture_pax(&f->tar, 'x', &records);
    fixture_pax(&f->tar, 'x', &records);
    fixture_end(&f->tar);
    expect_error(f, E_SHARD_UNSUPPORTED, "two extended headers");
    buf_clear(&f->tar);
    fixture_long(&f->tar, 'L', "a");
    fixture_long(&f->tar, 'L', "b");
    fixture_end(&f->tar);
    expect_error(f, E_SHARD_UNSUPPORTED, "two long names");
    buf_clear(&f->tar);
    fixture_pax(&f->tar, 'x', &records);
    fixture_pax(&f->tar, 'g', &records);
    fixture_end(&f->tar);
    expect_error(f, E_SHARD_UNSUPPORTED, "between the headers");
    buf_clear(&f->tar);
    fixture_pax(&f->tar, 'x', &records);
    fixture_end(&f->tar);
    expect_error(f, E_SHARD_CORRUPT, "ends between");
    buf_done(&records);
}

static void test_garbage_after_the_end(void **state)
{
    struct fixture *f = *state;
    fixture_file(&f->tar, "a", "x");
    fixture_end(&f->tar);
    size_t end = f->tar.len;
    for (size_t at = end; at < end + 100 * 1024; at += 33333) {
        f->tar.len = end;
        while (f->tar.len < at)
            buf_putc(&f->tar, '\0');
        buf_putc(&f->tar, 'g');
        expect_error(f, E_SHARD_CORRUPT, "follows the end");
    }
    f->tar.len = end - 512; /* a lone zero block, and a member behind it */
    fixture_file(&f->tar, "b", "y");
    expect_error(f, E_SHARD_CORRUPT, "follows the end");
}

/* Jumps over large contents, and headers right behind small ones, across windows. */
static void test_many_sizes(void **state)
{
    struct fixture *f = *state;
    static const size_t sizes[] = {0, 1, 511, 512, 513, 3000, 5000, 65536, 70000, 400000, 12};
    size_t count = sizeof sizes / sizeof *sizes;
    _cleanup_free_ char *contents = xcalloc(400000, 1);
    for (size_t i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%zu", i);
        fixture_header(&f->tar, name, '0', sizes[i * 7 % count], "");
        fixture_contents(&f->tar, contents, sizes[i * 7 % count]);
    }
    fixture_end(&f->tar);
    fixture_open(f);
    uint64_t at = 0;
    for (size_t i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%zu", i);
        expect_member(f, name, '0');
        uint64_t end = at + 512 + tar_padded(sizes[i * 7 % count]);
        expect_range(f, at, end);
        at = end;
    }
    expect_end(f);
}

static void test_file_shorter_than_its_size(void **state)
{
    struct fixture *f = *state;
    fixture_file(&f->tar, "a", "x");
    fixture_open(f);
    tar_scan_free(f->scan);
    f->scan = tar_scan_new(f->fd, f->tar.len + 4096, "s.tar");
    assert_int_equal(tar_scan_next(f->scan, &f->m, &f->err), E_SHARD_CORRUPT);
}

static int stop_at_third(void *ctx, struct error *err)
{
    int *calls = ctx;
    return ++*calls == 3 ? error_set(err, E_ABORTED, "stopped") : 0;
}

/* Also while what stands behind the archive is looked at. */
static void test_stopped_while_it_reads(void **state)
{
    struct fixture *f = *state;
    fixture_file(&f->tar, "a.x", "hello");
    fixture_end(&f->tar);
    _cleanup_free_ char *zeros = xcalloc(1, 1 << 20);
    buf_append(&f->tar, zeros, 1 << 20);
    fixture_open(f);
    int calls = 0;
    tar_scan_check(f->scan, stop_at_third, &calls);
    expect_member(f, "a.x", '0');
    assert_int_equal(tar_scan_next(f->scan, &f->m, &f->err), E_ABORTED);
    assert_int_equal(calls, 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_members_are_ranges),
        TEST(test_empty_archives),
        TEST(test_long_paths),
        TEST(test_prefix_is_only_posix),
        TEST(test_pax_size_counts),
        TEST(test_base256_and_blank_numbers),
        TEST(test_signed_checksums),
        TEST(test_global_headers_are_folded),
        TEST(test_globals_change),
        TEST(test_truncation_anywhere),
        TEST(test_flipped_header_bytes),
        TEST(test_corrupt_headers),
        TEST(test_refused_types),
        TEST(test_pax_errors),
        TEST(test_refused_sequences),
        TEST(test_garbage_after_the_end),
        TEST(test_many_sizes),
        TEST(test_file_shorter_than_its_size),
        TEST(test_stopped_while_it_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
