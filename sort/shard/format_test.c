/* Every format both ways: what goes in comes out, what is damaged is refused and never more than
 * that. */
#include "sort/shard/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/fault.h"
#include "common/mem.h"
#include "sort/shard/contents.h"
#include "sort/testing/fixture.h"
#include "sort/shard/tar_make.h"
#include "sort/shard/untar.h"
#include "sort/shard/zip.h"

static int no_work_file(void *ctx, int *fd, struct error *err)
{
    (void)ctx;
    const struct buf none = BUF_INIT;
    (void)err;
    *fd = fixture_fd(&none);
    return 0;
}

static const struct sort_env env = {.open_work_file = no_work_file};

static const char *const extensions[] = {".tar.gz", ".tar.zst", ".tar.lz4",
                                         ".zip",    ".msgpack", ".tfrecord"};
#define EXTENSIONS (sizeof extensions / sizeof *extensions)

/* --- helpers ---------------------------------------------------------------------------------- */

static void make_member(struct buf *tar, const char *path, const char *text, size_t len)
{
    tar_make_headers(
        tar, &(struct tar_made){
                 .path = path, .path_len = strlen(path), .type = '0', .size = len, .mode = 0444});
    fixture_contents(tar, text, len);
}

static size_t make_record(struct buf *tar, unsigned number)
{
    size_t before = tar->len;
    char text[3000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + (i * i * (number + 1) / 7) % 23);
    _cleanup_free_ char *jpg = xprintf("d/%06u.jpg", number);
    _cleanup_free_ char *cls = xprintf("d/%06u.cls", number);
    make_member(tar, jpg, text, number * 613 % sizeof text);
    make_member(tar, cls, "7", 1);
    return tar->len - before;
}

/* A file of so many records in `pieces` of any size, and the tar that it must become again. */
static void encode(const char *extension, unsigned records, size_t piece, struct buf *file,
                   struct buf *tar)
{
    const struct shard_format_ops *f = format_of_extension(extension);
    const struct format_output out = {.sink = sink_buf(file), .env = &env};
    void *encoder = NULL;
    assert_int_equal(f->encoder_new(&out, &encoder, NULL), 0);
    for (unsigned i = 0; i < records; i++) {
        size_t from = tar->len;
        make_record(tar, i);
        if (f->record != NULL)
            assert_int_equal(f->record(encoder, NULL), 0);
        for (size_t at = from; at < tar->len; at += piece) {
            size_t n = tar->len - at < piece ? tar->len - at : piece;
            assert_int_equal(f->write(encoder, tar->data + at, n, NULL), 0);
        }
    }
    size_t from = tar->len;
    fixture_end(tar);
    if (f->keeps_end_mark)
        assert_int_equal(f->write(encoder, tar->data + from, tar->len - from, NULL), 0);
    assert_int_equal(f->finish(encoder, NULL), 0);
    f->encoder_free(encoder);
}

static int decode(const char *extension, const struct buf *file, struct buf *tar, struct error *err)
{
    int fd = fixture_fd(file);
    const struct format_input in = {.fd = fd, .size = file->len, .shard = "s"};
    int rc = format_decode(format_of_extension(extension), &in, sink_buf(tar), err);
    close(fd);
    return rc;
}

static void assert_same(const struct buf *a, const struct buf *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, a->len);
}

/* --- the formats ------------------------------------------------------------------------------ */

static void test_table(void **state)
{
    (void)state;
    assert_string_equal(format_extension_of("a/b.tar.gz"), ".tar.gz");
    assert_string_equal(format_extension_of("b.tar"), ".tar");
    assert_null(format_extension_of("b.gz"));
    assert_null(format_of_extension("tar"));
    assert_ptr_equal(format_of_extension(".tgz"), format_of_extension(".tar.gz"));
    for (size_t i = 0; i < EXTENSIONS; i++)
        assert_non_null(strstr(format_extensions(), extensions[i]));
}

static void test_there_and_back(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 511, 512, 100000};
    for (size_t i = 0; i < EXTENSIONS * 4; i++) {
        struct buf file = BUF_INIT, tar = BUF_INIT, again = BUF_INIT;
        struct error err = ERROR_INIT;
        unsigned records = i % 4 == 0 ? 3 : 40;
        encode(extensions[i / 4], records, pieces[i % 4], &file, &tar);
        if (decode(extensions[i / 4], &file, &again, &err) != 0)
            fail_msg("%s: %s", extensions[i / 4], err.message);
        /* A zip has times and permissions of its own, but here they are the same. */
        assert_same(&again, &tar);
        buf_done(&file);
        buf_done(&tar);
        buf_done(&again);
    }
}

/* A head says how much memory decompressing takes: nobody gives more than was allowed. */
static void test_a_zstd_window_has_a_bound(void **state)
{
    (void)state;
    /* A frame with a window of 128 MiB and one empty block. */
    static const unsigned char frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88, 0x01, 0x00, 0x00};
    struct buf file = BUF_INIT, tar = BUF_INIT;
    struct error err = ERROR_INIT;
    buf_append(&file, frame, sizeof frame);
    assert_int_equal(decode(".tar.zst", &file, &tar, &err), E_SHARD_UNSUPPORTED);
    assert_non_null(strstr(err.message, "zstd window above 8192 KiB: raise sort_zstd_window"));
    int fd = fixture_fd(&file);
    struct format_input in = {
        .fd = fd, .size = file.len, .shard = "s", .window_max = FORMAT_WINDOW_ALONE};
    const struct shard_format_ops *zst = format_of_extension(".tar.zst");
    assert_int_equal(format_decode(zst, &in, sink_buf(&tar), &err), 0);
    in.window_max--;
    assert_int_equal(format_decode(zst, &in, sink_buf(&tar), &err), E_SHARD_UNSUPPORTED);
    close(fd);
    buf_done(&file);
    buf_done(&tar);
}

static void test_same_bytes_however_they_come(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXTENSIONS; i++) {
        struct buf a = BUF_INIT, b = BUF_INIT, tar = BUF_INIT;
        encode(extensions[i], 20, 700, &a, &tar);
        buf_clear(&tar);
        encode(extensions[i], 20, 9000, &b, &tar);
        assert_same(&a, &b);
        buf_done(&a);
        buf_done(&b);
        buf_done(&tar);
    }
}

/* Nothing but a whole file is taken: of msgpack and TFRecord a file that ends between records is
 * one. */
static void test_cut_short(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXTENSIONS; i++) {
        struct buf file = BUF_INIT, tar = BUF_INIT;
        unsigned whole = 0;
        encode(extensions[i], 3, 512, &file, &tar);
        for (size_t len = 1; len < file.len; len++) {
            struct buf part = file, got = BUF_INIT;
            struct error err = ERROR_INIT;
            part.len = len;
            int rc = decode(extensions[i], &part, &got, &err);
            whole += rc == 0;
            if (rc != 0) {
                assert_int_equal(rc, E_SHARD_CORRUPT);
                assert_non_null(strstr(err.message, "shard 's', byte "));
            }
            buf_done(&got);
        }
        assert_int_equal(whole, i >= 4 ? 2 : 0);
        buf_done(&file);
        buf_done(&tar);
    }
}

/* A byte that has changed is noticed, or what is around the contents alone has changed. */
static void test_damage(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXTENSIONS; i++) {
        struct buf file = BUF_INIT, tar = BUF_INIT;
        encode(extensions[i], 2, 512, &file, &tar);
        for (size_t at = 0; at < file.len; at++) {
            struct buf got = BUF_INIT;
            struct error err = ERROR_INIT;
            file.data[at] = (char)(file.data[at] ^ 0x41);
            int rc = decode(extensions[i], &file, &got, &err);
            if (rc != 0 && rc != E_SHARD_CORRUPT && rc != E_SHARD_UNSUPPORTED)
                fail_msg("%s, byte %zu: %s", extensions[i], at, err.message);
            if (rc == 0 && i < 3) /* compressed tars have a checksum over all of it */
                assert_same(&got, &tar);
            file.data[at] = (char)(file.data[at] ^ 0x41);
            buf_done(&got);
        }
        buf_done(&file);
        buf_done(&tar);
    }
}

static void test_empty_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXTENSIONS; i++) {
        const struct buf none = BUF_INIT;
        struct buf got = BUF_INIT;
        struct error err = ERROR_INIT;
        bool fine = format_of_extension(extensions[i])->may_be_empty;
        assert_int_equal(decode(extensions[i], &none, &got, &err), fine ? 0 : E_SHARD_CORRUPT);
        assert_true(got.len == 0 || got.len == SORT_TAR_END);
        if (!fine)
            assert_string_equal(err.message, "shard 's' has no bytes: it was cut short");
        buf_done(&got);
    }
}

/* --- what does not fit ------------------------------------------------------------------------ */

static void expect_refused(const char *extension, const char *path, char type, const char *why)
{
    const struct shard_format_ops *f = format_of_extension(extension);
    struct buf file = BUF_INIT, tar = BUF_INIT;
    struct error err = ERROR_INIT;
    const struct format_output out = {.sink = sink_buf(&file), .env = &env};
    void *encoder = NULL;
    fixture_header(&tar, path, type, 0, type == '2' ? "to" : "");
    assert_int_equal(f->encoder_new(&out, &encoder, NULL), 0);
    if (f->record != NULL)
        assert_int_equal(f->record(encoder, NULL), 0);
    assert_int_equal(f->write(encoder, tar.data, tar.len, &err), E_SHARD_UNSUPPORTED);
    if (strstr(err.message, why) == NULL || strstr(err.message, path) == NULL)
        fail_msg("%s", err.message);
    f->encoder_free(encoder);
    buf_done(&file);
    buf_done(&tar);
}

static void test_refused_members(void **state)
{
    (void)state;
    expect_refused(".zip", "a.x", '1', "a hard link");
    expect_refused(".zip", "a.x", '3', "a device");
    expect_refused(".msgpack", "a.x", '2', "not a regular file");
    expect_refused(".msgpack", "a.__key__", '0', "no name for a field");
    expect_refused(".tfrecord", "a.", '0', "no name for a field");
    expect_refused(".tfrecord", "a.x", '6', "not a regular file");
}

static void expect_decode(const char *extension, const char *file, size_t len, int code,
                          const char *why)
{
    struct buf text = BUF_INIT, got = BUF_INIT;
    struct error err = ERROR_INIT;
    buf_append(&text, file, len);
    int rc = decode(extension, &text, &got, &err);
    if (rc != code || strstr(err.message, why) == NULL)
        fail_msg("%s: %d: %s", extension, rc, err.message);
    buf_done(&text);
    buf_done(&got);
}

#define EXPECT(extension, text, code, why) \
    expect_decode(extension, text, sizeof(text) - 1, code, why)

static void test_refused_files(void **state)
{
    (void)state;
    EXPECT(".tgz", "plain text", E_SHARD_CORRUPT, "byte ");
    EXPECT(".zip", "plain text", E_SHARD_CORRUPT, "no zip");
    EXPECT(".msgpack", "\x81\xa3jpg\x01", E_SHARD_UNSUPPORTED, "without '__key__'");
    EXPECT(".msgpack",
           "\x82\xa7__key__\xa1"
           "a\xa1x\xc0",
           E_SHARD_UNSUPPORTED, "neither bytes");
    EXPECT(".msgpack",
           "\x82\xa7__key__\xa1"
           "a\xa1x\xc6\xff\xff\xff\xff",
           E_SHARD_CORRUPT, "past the end");
    EXPECT(".msgpack",
           "\x82\xa7__key__\xa2"
           "a/\xa0\xa0",
           E_SHARD_UNSUPPORTED, "make no path");
    EXPECT(".msgpack", "\x93\x01\x02\x03", E_SHARD_CORRUPT, "a map");
    EXPECT(".msgpack",
           "\x81\xa7__key__\xa2"
           "a\0",
           E_SHARD_CORRUPT, "NUL");
    EXPECT(".tfrecord", "\x05\0\0\0\0\0\0\0\x01\x02\x03\x04", E_SHARD_CORRUPT,
           "checksum of a length");
}

/* Behind the last member of gzip zeros may stand, and nothing else. */
static void test_padded_gzip(void **state)
{
    (void)state;
    static const char empty[] = "\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";
    char file[10240] = {0};
    memcpy(file, empty, sizeof empty - 1);
    expect_decode(".tgz", file, sizeof file, 0, "");
    memcpy(file + 512, empty, sizeof empty - 1);
    expect_decode(".tgz", file, sizeof file, 0, "");
    memcpy(file + 512, "rest", 4);
    expect_decode(".tgz", file, sizeof file, E_SHARD_CORRUPT, "beginning of a gzip member");
}

/* --- zip -------------------------------------------------------------------------------------- */

static void test_dos_times(void **state)
{
    (void)state;
    assert_int_equal(zip_time_from_dos(zip_time_to_dos(0)), 315532800);
    assert_int_equal(zip_time_from_dos(zip_time_to_dos(INT64_MAX)), 4354819198);
    assert_int_equal(zip_time_from_dos(zip_time_to_dos(1700000001)), 1700000000);
}

/* More entries than 16 bits count: ZIP64's end records. */
static void test_many_entries(void **state)
{
    (void)state;
    const struct shard_format_ops *f = format_of_extension(".zip");
    struct buf file = BUF_INIT, tar = BUF_INIT, again = BUF_INIT;
    const struct format_output out = {.sink = sink_buf(&file), .env = &env};
    void *encoder = NULL;
    for (unsigned i = 0; i < 66000; i++) {
        _cleanup_free_ char *path = xprintf("%u.x", i);
        make_member(&tar, path, "", 0);
    }
    assert_int_equal(f->encoder_new(&out, &encoder, NULL), 0);
    assert_int_equal(f->write(encoder, tar.data, tar.len, NULL), 0);
    assert_int_equal(f->finish(encoder, NULL), 0);
    f->encoder_free(encoder);
    fixture_end(&tar);
    assert_int_equal(decode(".zip", &file, &again, NULL), 0);
    assert_same(&again, &tar);
    buf_done(&file);
    buf_done(&tar);
    buf_done(&again);
}

/* --- contents --------------------------------------------------------------------------------- */

static void put_shard(struct contents *c, size_t size, char letter, int *fd, uint64_t *at)
{
    struct contents_writer *w = contents_begin(c, "s", size);
    struct sink sink = contents_sink(w);
    char piece[1000];
    uint64_t got = 0;
    memset(piece, letter, sizeof piece);
    for (size_t left = size; left > 0;) {
        size_t n = left < sizeof piece ? left : sizeof piece;
        assert_int_equal(sink.write(sink.ctx, piece, n, NULL), 0);
        left -= n;
    }
    assert_int_equal(contents_end(w, fd, at, &got, NULL), 0);
    assert_int_equal(got, size);
    contents_release(w);
}

static void expect_letters(int fd, uint64_t at, size_t size, char letter)
{
    _cleanup_free_ char *got = xmalloc(size);
    assert_int_equal(pread(fd, got, size, (off_t)at), size);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(got[i], letter);
}

/* In memory while there is room, whole in a work file from there on. */
static void test_contents_spill(void **state)
{
    (void)state;
    enum { SHARDS = 6, SIZE = 300000 };
    struct contents *c = contents_new(&env, 1, 2 * SIZE + SIZE / 2);
    int fds[SHARDS];
    uint64_t at[SHARDS];
    for (int i = 0; i < SHARDS; i++)
        put_shard(c, SIZE, (char)('a' + i), &fds[i], &at[i]);
    for (int i = 0; i < SHARDS; i++)
        expect_letters(fds[i], at[i], SIZE, (char)('a' + i));
    assert_true(fds[0] == fds[1] && fds[2] != fds[1] && fds[2] == fds[5]);
    assert_int_equal(contents_spilled(c), 4 * SIZE);
    contents_free(c);
}

/* The shard at hand goes on in another work file; those before stay where they are. */
static void test_contents_on_disks_that_get_full(void **state)
{
    (void)state;
    enum { SHARDS = 4, SIZE = 3 * CONTENTS_BUFFER };
    struct contents *c = contents_new(&env, 1, 0);
    int fds[SHARDS];
    uint64_t at[SHARDS];
    put_shard(c, SIZE, 'a', &fds[0], &at[0]);
    for (int i = 1; i < SHARDS; i++) {
        char fault[64];
        snprintf(fault, sizeof fault, "disk.write=ENOSPC@%d", i);
        assert_int_equal(fault_configure(fault, NULL), 0);
        put_shard(c, SIZE, (char)('a' + i), &fds[i], &at[i]);
        assert_true(fds[i] != fds[i - 1] && at[i] == 0);
    }
    fault_configure("", NULL);
    for (int i = 0; i < SHARDS; i++)
        expect_letters(fds[i], at[i], SIZE, (char)('a' + i));
    assert_int_equal(contents_spilled(c), SHARDS * SIZE);
    contents_free(c);
}

static void test_contents_bomb(void **state)
{
    (void)state;
    struct contents *c = contents_new(&env, 1, 1 << 20);
    struct contents_writer *w = contents_begin(c, "bomb", 100);
    struct sink sink = contents_sink(w);
    struct error err = ERROR_INIT;
    _cleanup_free_ char *zeros = xcalloc(1, 1 << 20);
    int rc = 0;
    uint64_t written = 0;
    for (; rc == 0 && written <= CONTENTS_FREE; written += 1 << 20)
        rc = sink.write(sink.ctx, zeros, 1 << 20, &err);
    assert_int_equal(rc, E_SHARD_CORRUPT);
    assert_int_equal(written, CONTENTS_FREE + (1 << 20));
    assert_non_null(strstr(err.message, "shard 'bomb' grows beyond"));
    contents_release(w);
    int fd;
    uint64_t at;
    put_shard(c, 10, 'x', &fd, &at); /* over what was left */
    expect_letters(fd, at, 10, 'x');
    contents_free(c);
}

/* --- untar ------------------------------------------------------------------------------------ */

struct seen {
    struct buf text;
};

static int see_begin(void *ctx, const struct untar_member *m, struct error *err)
{
    (void)err;
    struct seen *s = ctx;
    buf_printf(&s->text, "%.*s|%c|%lld|%o|%.*s:", (int)m->path_len, m->path, m->type,
               (long long)m->mtime, m->mode, (int)m->link_len, m->link);
    return 0;
}

static int see_data(void *ctx, const void *data, size_t len, struct error *err)
{
    (void)err;
    struct seen *s = ctx;
    buf_append(&s->text, data, len);
    return 0;
}

static int see_end(void *ctx, struct error *err)
{
    (void)err;
    struct seen *s = ctx;
    buf_putc(&s->text, '\n');
    return 0;
}

static void test_untar(void **state)
{
    (void)state;
    static const struct untar_events events = {
        .begin = see_begin, .data = see_data, .end = see_end};
    struct buf tar = BUF_INIT, pax = BUF_INIT;
    fixture_file(&tar, "a.x", "text");
    fixture_long(&tar, 'L', "a/long/name.y");
    fixture_file(&tar, "short", "");
    fixture_pax_record(&pax, "path", "pax.z");
    fixture_pax_record(&pax, "mtime", "-1.5");
    fixture_pax_record(&pax, "linkpath", "far");
    fixture_pax(&tar, 'x', &pax);
    fixture_header(&tar, "old", '2', 0, "near");
    for (size_t piece = 1; piece < 1500; piece += 37) {
        struct untar u;
        struct seen s = {0};
        untar_init(&u, &events, &s);
        for (size_t at = 0; at < tar.len; at += piece) {
            size_t n = tar.len - at < piece ? tar.len - at : piece;
            assert_int_equal(untar_write(&u, tar.data + at, n, NULL), 0);
        }
        assert_true(untar_between(&u));
        assert_string_equal(buf_str(&s.text), "a.x|0|1699998464|644|:text\n"
                                              "a/long/name.y|0|1699998464|644|:\n"
                                              "pax.z|2|-2|644|far:\n");
        untar_done(&u);
        buf_done(&s.text);
    }
    struct untar u;
    untar_init(&u, &events, NULL);
    tar.data[0] ^= 1;
    assert_int_equal(untar_write(&u, tar.data, 512, NULL), E_CORRUPT);
    untar_done(&u);
    buf_done(&tar);
    buf_done(&pax);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_a_zstd_window_has_a_bound),
        cmocka_unit_test(test_same_bytes_however_they_come),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_empty_files),
        cmocka_unit_test(test_refused_members),
        cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_padded_gzip),
        cmocka_unit_test(test_dos_times),
        cmocka_unit_test(test_many_entries),
        cmocka_unit_test(test_contents_spill),
        cmocka_unit_test(test_contents_on_disks_that_get_full),
        cmocka_unit_test(test_contents_bomb),
        cmocka_unit_test(test_untar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
