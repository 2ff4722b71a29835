/* Formats that are inputs alone: .tar.xz, .tar.bz2, .cpio.  What goes in comes out, and what is
 * damaged, foreign or too large is refused. */
#include "sort/shard/format.h"

#include <bzlib.h>
#include <lzma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/mem.h"
#include "sort/shard/tar_make.h"
#include "sort/testing/fixture.h"

/* --- helpers ---------------------------------------------------------------------------------- */

static int decode_within(const char *extension, const struct buf *file, uint64_t window,
                         struct buf *tar, struct error *err)
{
    int fd = fixture_fd(file);
    const struct format_input in = {
        .fd = fd, .size = file->len, .shard = "s", .window_max = window};
    int rc = format_decode(format_of_extension(extension), &in, sink_buf(tar), err);
    close(fd);
    return rc;
}

static int decode(const char *extension, const struct buf *file, struct buf *tar, struct error *err)
{
    return decode_within(extension, file, 0, tar, err);
}

static void expect(const char *extension, const struct buf *file, int code, const char *why)
{
    struct buf tar = BUF_INIT;
    struct error err = ERROR_INIT;
    int rc = decode(extension, file, &tar, &err);
    if (rc != code || strstr(err.message, why) == NULL)
        fail_msg("%s: %d (%s): %s", extension, rc, error_name(rc), err.message);
    buf_done(&tar);
}

static void expect_same(const struct buf *a, const struct buf *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, a->len);
}

static void make_tar(struct buf *tar)
{
    fixture_file(tar, "a/1.txt", "hello");
    fixture_file(tar, "a/1.cls", "7");
    for (int i = 0; i < 200; i++)
        fixture_file(tar, "a/2.txt", "the same over and over");
    fixture_end(tar);
}

static void put_xz(struct buf *file, const char *data, size_t len, uint32_t preset)
{
    size_t room = lzma_stream_buffer_bound(len), made = 0;
    _cleanup_free_ uint8_t *out = xmalloc(room);
    assert_int_equal(lzma_easy_buffer_encode(preset, LZMA_CHECK_CRC32, NULL, (const uint8_t *)data,
                                             len, out, &made, room),
                     LZMA_OK);
    buf_append(file, out, made);
}

static void put_bz2(struct buf *file, const char *data, size_t len)
{
    unsigned room = (unsigned)(len + len / 100 + 600);
    _cleanup_free_ char *out = xmalloc(room);
    assert_int_equal(BZ2_bzBuffToBuffCompress(out, &room, (char *)data, (unsigned)len, 9, 0, 0),
                     BZ_OK);
    buf_append(file, out, room);
}

static void put(const char *extension, struct buf *file, const char *data, size_t len)
{
    if (strcmp(extension, ".tar.xz") == 0)
        put_xz(file, data, len, 6);
    else
        put_bz2(file, data, len);
}

static const char *const compressed[] = {".tar.xz", ".tar.bz2"};

/* --- compressed tars -------------------------------------------------------------------------- */

static void test_table(void **state)
{
    (void)state;
    static const char *const inputs[] = {".tar.xz", ".txz", ".tar.bz2", ".tbz2", ".cpio", ".7z"};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const struct shard_format_ops *f = format_of_extension(inputs[i]);
        assert_true(f->read_only && f->encoder_new == NULL && f->decode != NULL);
        assert_non_null(strstr(format_extensions(), inputs[i]));
        assert_null(strstr(format_output_extensions(), inputs[i]));
    }
}

static void test_tars_come_out(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct buf tar = BUF_INIT, file = BUF_INIT, got = BUF_INIT;
        make_tar(&tar);
        put(compressed[i], &file, tar.data, tar.len);
        assert_int_equal(decode(compressed[i], &file, &got, NULL), 0);
        expect_same(&got, &tar);
        buf_clear(&file);
        buf_clear(&got);
        put(compressed[i], &file, tar.data, 1000); /* several streams are one */
        put(compressed[i], &file, tar.data, 0);
        put(compressed[i], &file, tar.data + 1000, tar.len - 1000);
        assert_int_equal(decode(compressed[i], &file, &got, NULL), 0);
        expect_same(&got, &tar);
        buf_done(&tar);
        buf_done(&file);
        buf_done(&got);
    }
}

static void test_cut_short_or_damaged(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct buf tar = BUF_INIT, file = BUF_INIT;
        make_tar(&tar);
        put(compressed[i], &file, tar.data, tar.len);
        size_t whole = file.len;
        for (file.len = 1; file.len < whole; file.len++)
            expect(compressed[i], &file, E_SHARD_CORRUPT, "shard 's', byte ");
        for (size_t at = 0; at < whole; at++) {
            struct buf got = BUF_INIT;
            file.data[at] = (char)(file.data[at] ^ 0x41);
            int rc = decode(compressed[i], &file, &got, NULL);
            if (rc == 0)
                expect_same(&got, &tar);
            else
                assert_true(rc == E_SHARD_CORRUPT || rc == E_SHARD_UNSUPPORTED);
            file.data[at] = (char)(file.data[at] ^ 0x41);
            buf_done(&got);
        }
        buf_puts(&file, "more than a header");
        expect(compressed[i], &file, E_SHARD_CORRUPT, "shard 's', byte ");
        buf_clear(&file);
        expect(compressed[i], &file, E_SHARD_CORRUPT, "has no bytes");
        buf_puts(&file, "text without any form");
        expect(compressed[i], &file, E_SHARD_CORRUPT, "beginning of");
        buf_done(&tar);
        buf_done(&file);
    }
}

/* `xz -9` wants 64 MiB. */
static void test_an_xz_dictionary_has_a_bound(void **state)
{
    (void)state;
    struct buf tar = BUF_INIT, file = BUF_INIT, got = BUF_INIT;
    make_tar(&tar);
    put_xz(&file, tar.data, tar.len, 9);
    expect(".tar.xz", &file, E_SHARD_UNSUPPORTED,
           "an xz dictionary above 8192 KiB: raise sort_zstd_window of the targets");
    assert_int_equal(decode_within(".tar.xz", &file, UINT64_C(64) << 20, &got, NULL), 0);
    expect_same(&got, &tar);
    buf_done(&tar);
    buf_done(&file);
    buf_done(&got);
}

/* --- cpio ------------------------------------------------------------------------------------- */

static void pad(struct buf *file, size_t unit)
{
    while (file->len % unit != 0)
        buf_putc(file, '\0');
}

static void put_cpio(struct buf *file, unsigned inode, unsigned mode, unsigned links,
                     const char *path, const char *text)
{
    buf_printf(file, "070701%08X%08X%08X%08X%08X%08X%08zX%08X%08X%08X%08X%08zX%08X", inode, mode, 0,
               0, links, 1700000000, strlen(text), 0, 0, 0, 0, strlen(path) + 1, 0);
    buf_append(file, path, strlen(path) + 1);
    pad(file, 4);
    buf_puts(file, text);
    pad(file, 4);
}

static void end_cpio(struct buf *file)
{
    put_cpio(file, 0, 0, 1, "TRAILER!!!", "");
    pad(file, 512);
}

static void make_member(struct buf *tar, const char *path, char type, unsigned mode,
                        const char *text, const char *link)
{
    tar_make_headers(tar, &(struct tar_made){.path = path,
                                             .path_len = strlen(path),
                                             .link = link,
                                             .link_len = strlen(link),
                                             .type = type,
                                             .size = strlen(text),
                                             .mode = mode,
                                             .mtime = 1700000000});
    fixture_contents(tar, text, strlen(text));
}

static void make_cpio(struct buf *file)
{
    put_cpio(file, 1, 040755, 2, "d", "");
    put_cpio(file, 2, 0100640, 1, "d/a.x", "hello");
    put_cpio(file, 3, 0120777, 1, "d/a.l", "a.x");
    put_cpio(file, 4, 0100600, 1, "d/b.x", "");
    end_cpio(file);
}

static void test_cpio(void **state)
{
    (void)state;
    struct buf file = BUF_INIT, tar = BUF_INIT, got = BUF_INIT;
    make_cpio(&file);
    make_member(&tar, "d", '5', 0755, "", "");
    make_member(&tar, "d/a.x", '0', 0640, "hello", "");
    make_member(&tar, "d/a.l", '2', 0777, "", "a.x");
    make_member(&tar, "d/b.x", '0', 0600, "", "");
    fixture_end(&tar);
    assert_int_equal(decode(".cpio", &file, &got, NULL), 0);
    expect_same(&got, &tar);
    buf_done(&file);
    buf_done(&tar);
    buf_done(&got);
}

static void test_cpio_cut_short_or_damaged(void **state)
{
    (void)state;
    struct buf file = BUF_INIT;
    make_cpio(&file);
    size_t whole = file.len;
    size_t end = whole;
    while (file.data[end - 1] == '\0')
        end--;
    for (file.len = 1; file.len <= end; file.len++) {
        struct buf got = BUF_INIT;
        struct error err = ERROR_INIT;
        if (decode(".cpio", &file, &got, &err) != E_SHARD_CORRUPT)
            fail_msg("%zu bytes: %s", file.len, err.message);
        buf_done(&got);
    }
    file.len = whole;
    for (size_t at = 0; at < whole; at++) {
        struct buf got = BUF_INIT;
        file.data[at] = (char)(file.data[at] ^ 0x41);
        int rc = decode(".cpio", &file, &got, NULL);
        assert_true(rc == 0 || rc == E_SHARD_CORRUPT || rc == E_SHARD_UNSUPPORTED);
        file.data[at] = (char)(file.data[at] ^ 0x41);
        buf_done(&got);
    }
    buf_clear(&file);
    expect(".cpio", &file, E_SHARD_CORRUPT, "has no bytes");
    buf_puts(&file, "plain text");
    expect(".cpio", &file, E_SHARD_CORRUPT, "is none of a cpio");
    buf_done(&file);
}

static void test_cpio_is_whole_or_refused(void **state)
{
    (void)state;
    struct buf file = BUF_INIT;
    make_cpio(&file);
    make_cpio(&file);
    expect(".cpio", &file, E_SHARD_CORRUPT, "something follows the end of the archive");
    buf_clear(&file);
    put_cpio(&file, 7, 0100644, 2, "a.x", "");
    put_cpio(&file, 7, 0100644, 2, "b.x", "hello");
    end_cpio(&file);
    expect(".cpio", &file, E_SHARD_UNSUPPORTED, "member 'a.x' may be a hard link");
    buf_clear(&file);
    put_cpio(&file, 7, 0020644, 1, "tty.x", "");
    end_cpio(&file);
    expect(".cpio", &file, E_SHARD_UNSUPPORTED, "member 'tty.x' is no file, directory or");
    buf_clear(&file);
    put_cpio(&file, 7, 0120777, 1, "l.x", "");
    end_cpio(&file);
    expect(".cpio", &file, E_SHARD_UNSUPPORTED, "or of none");
    buf_clear(&file);
    buf_puts(&file, "070701");
    for (int i = 0; i < 13; i++)
        buf_puts(&file, i == 11 ? "FFFFFFFF" : "00000000");
    expect(".cpio", &file, E_SHARD_CORRUPT, "a name of no bytes, or too many");
    buf_done(&file);
}

/* As GNU cpio and bsdtar make them: all forms become the same tar. */
static void test_cpio_of_tools(void **state)
{
    (void)state;
    static const char *const commands[] = {
        "echo d/a.x | cpio -o -H newc", "echo d/a.x | cpio -o -H crc",
        "echo d/a.x | cpio -o -H odc", "bsdtar -c --format=newc d/a.x",
        "bsdtar -c --format=odc d/a.x"};
    char directory[] = "/tmp/dfc-cpio-XXXXXX";
    assert_non_null(mkdtemp(directory));
    struct buf wanted = BUF_INIT;
    make_member(&wanted, "d/a.x", '0', 0640, "hello, tools", "");
    fixture_end(&wanted);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        _cleanup_free_ char *line =
            xprintf("cd %s && mkdir -p d && printf 'hello, tools' >d/a.x && chmod 640 d/a.x && "
                    "touch -d @1700000000 d/a.x && %s >out.cpio 2>err",
                    directory, commands[i]);
        assert_int_equal(system(line), 0);
        struct buf file = BUF_INIT, got = BUF_INIT;
        struct error err = ERROR_INIT;
        _cleanup_free_ char *path = xprintf("%s/out.cpio", directory);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        buf_reserve(&file, 1 << 16);
        file.len = fread(file.data, 1, 1 << 16, f);
        fclose(f);
        if (decode(".cpio", &file, &got, &err) != 0)
            fail_msg("%s: %s", commands[i], err.message);
        expect_same(&got, &wanted);
        buf_done(&file);
        buf_done(&got);
    }
    _cleanup_free_ char *line = xprintf("rm -rf %s", directory);
    assert_int_equal(system(line), 0);
    buf_done(&wanted);
}

/* --- 7z --------------------------------------------------------------------------------------- */

static int decode_7z(const struct buf *file, unsigned formats, struct buf *tar, struct error *err)
{
    int fd = fixture_fd(file);
    const struct format_input in = {.fd = fd, .size = file->len, .shard = "s", .formats = formats};
    int rc = format_decode(format_of_extension(".7z"), &in, sink_buf(tar), err);
    close(fd);
    return rc;
}

static void load_made(const char *command, struct buf *file)
{
    char directory[] = "/tmp/dfc-format-XXXXXX";
    assert_non_null(mkdtemp(directory));
    _cleanup_free_ char *make = xprintf("cd %s && %s", directory, command);
    _cleanup_free_ char *path = xprintf("%s/made", directory);
    _cleanup_free_ char *clean = xprintf("rm -rf %s", directory);
    assert_int_equal(system(make), 0);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    buf_reserve(file, 1 << 16);
    file->len = fread(file->data, 1, 1 << 16, f);
    fclose(f);
    assert_int_equal(system(clean), 0);
}

static void test_7z(void **state)
{
    (void)state;
    struct buf file = BUF_INIT, got = BUF_INIT, wanted = BUF_INIT;
    struct error err = ERROR_INIT;
    const struct tar_made made = {
        .path = "a.txt", .path_len = 5, .type = '0', .size = 5, .mode = 0644, .mtime = 1700000000};
    tar_make_headers(&wanted, &made);
    buf_append(&wanted, "hello", 5);
    assert_int_equal(tar_put_padding(sink_buf(&wanted), 5, NULL), 0);
    assert_int_equal(tar_put_end(sink_buf(&wanted), NULL), 0);
    load_made("printf hello >a.txt && chmod 644 a.txt && touch -d @1700000000 a.txt && "
              "7z a -bd x.7z a.txt >out && mv x.7z made",
              &file);
    assert_int_equal(decode_7z(&file, UNARCHIVER_7ZIP, &got, NULL), 0);
    expect_same(&got, &wanted);
    assert_int_equal(decode_7z(&file, UNARCHIVER_FORMATS, &got, &err), E_SHARD_UNSUPPORTED);
    assert_non_null(strstr(err.message, "add 7zip to archive_formats"));
    for (size_t whole = file.len; file.len > 0; file.len--) {
        got.len = 0;
        int rc = decode_7z(&file, UNARCHIVER_7ZIP, &got, NULL);
        assert_true(file.len == whole ? rc == 0
                                      : rc == E_SHARD_CORRUPT || rc == E_SHARD_UNSUPPORTED);
    }
    buf_done(&file);
    buf_done(&got);
    buf_done(&wanted);
}

static void test_7z_is_whole_or_refused(void **state)
{
    (void)state;
    struct buf file = BUF_INIT, got = BUF_INIT;
    struct error err = ERROR_INIT;
    load_made("echo x >a && 7z a -bd -psecret x.7z a >out && mv x.7z made", &file);
    assert_int_equal(decode_7z(&file, UNARCHIVER_7ZIP, &got, &err), E_SHARD_UNSUPPORTED);
    assert_non_null(strstr(err.message, "'a' is encrypted"));
    buf_done(&file);
    load_made("truncate -s 200M a && 7z a -bd x.7z a >out && mv x.7z made", &file);
    buf_clear(&got);
    assert_int_equal(decode_7z(&file, UNARCHIVER_7ZIP, &got, &err), E_SHARD_CORRUPT);
    assert_non_null(strstr(err.message, "does not warrant"));
    buf_done(&file);
    buf_done(&got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_tars_come_out),
        cmocka_unit_test(test_cut_short_or_damaged),
        cmocka_unit_test(test_an_xz_dictionary_has_a_bound),
        cmocka_unit_test(test_cpio),
        cmocka_unit_test(test_cpio_cut_short_or_damaged),
        cmocka_unit_test(test_cpio_is_whole_or_refused),
        cmocka_unit_test(test_cpio_of_tools),
        cmocka_unit_test(test_7z),
        cmocka_unit_test(test_7z_is_whole_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
