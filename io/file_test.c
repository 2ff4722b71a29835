#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>
#include <dirent.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/fault.h"
#include "common/mem.h"

static char *root;

static char *in_root(const char *name)
{
    return xprintf("%s/%s", root, name);
}

static size_t entries(const char *path)
{
    DIR *dir = opendir(path);
    assert_non_null(dir);
    size_t n = 0;
    while (readdir(dir) != NULL)
        n++;
    closedir(dir);
    return n - 2;
}

static int setup(void **state)
{
    (void)state;
    root = xstrdup("/tmp/dfc-file-test-XXXXXX");
    return mkdtemp(root) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    fault_configure(NULL, NULL);
    int rc = file_remove_tree(root, NULL);
    free(root);
    return rc;
}

static void assert_content(const char *path, const char *text)
{
    _cleanup_(buf_done)
    struct buf got = BUF_INIT;
    assert_int_equal(file_read_all(path, 1 << 20, &got, NULL), 0);
    assert_string_equal(buf_str(&got), text);
}

static void test_replace(void **state)
{
    (void)state;
    _cleanup_free_ char *path = in_root("doc");
    assert_int_equal(file_replace(path, "one", 3, 0600, NULL), 0);
    assert_content(path, "one");
    assert_int_equal(file_replace(path, "", 0, 0600, NULL), 0);
    assert_content(path, "");
    assert_int_equal(file_replace(path, "three", 5, 0600, NULL), 0);
    assert_content(path, "three");
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(entries(root), 1);
}

static void test_failed_replace_leaves_the_old(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        int code;
    } rows[] = {
        {"disk.open=EACCES@1", E_IO},
        {"disk.write=ENOSPC@1", E_NO_SPACE},
        {"disk.sync=EIO@1", E_IO},
        {"disk.rename=EIO@1", E_IO},
    };
    _cleanup_free_ char *path = in_root("doc");
    assert_int_equal(file_replace(path, "old", 3, 0600, NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(fault_configure(rows[i].fault, NULL), 0);
        struct error err = ERROR_INIT;
        assert_int_equal(file_replace(path, "new", 3, 0600, &err), rows[i].code);
        assert_int_equal(err.code, rows[i].code);
        assert_non_null(strstr(err.message, path));
        assert_content(path, "old");
        assert_int_equal(entries(root), 1);
    }
}

static void test_read_all(void **state)
{
    (void)state;
    _cleanup_free_ char *path = in_root("big");
    size_t len = 300 * 1000;
    _cleanup_free_ char *data = malloc(len);
    memset(data, 'x', len);
    assert_int_equal(file_replace(path, data, len, 0600, NULL), 0);
    _cleanup_(buf_done)
    struct buf got = BUF_INIT;
    buf_puts(&got, "kept:");
    assert_int_equal(file_read_all(path, len, &got, NULL), 0);
    assert_int_equal(got.len, len + 5);
    assert_memory_equal(got.data, "kept:xxx", 8);
    buf_clear(&got);
    struct error err = ERROR_INIT;
    assert_int_equal(file_read_all(path, len - 1, &got, &err), E_TOO_LARGE);
    _cleanup_free_ char *absent = in_root("absent");
    assert_int_equal(file_read_all(absent, 10, &got, &err), E_NOT_FOUND);
    assert_non_null(strstr(err.message, absent));
}

static void test_positioned_io(void **state)
{
    (void)state;
    _cleanup_free_ char *path = in_root("file");
    _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(file_pwrite_all(fd, "world", 5, 6, NULL), 0);
    assert_int_equal(file_write_all(fd, "hello ", 6, NULL), 0);
    char out[16];
    assert_int_equal(file_pread_full(fd, out, 11, 0, NULL), 0);
    assert_memory_equal(out, "hello world", 11);
    struct error err = ERROR_INIT;
    assert_int_equal(file_pread_full(fd, out, 6, 6, &err), E_LENGTH);
    assert_string_equal(err.message, "the file ends at 11, 1 bytes before it should");
}

static void test_mkdirs_and_remove_tree(void **state)
{
    (void)state;
    _cleanup_free_ char *deep = in_root("a/b//c/");
    assert_int_equal(file_mkdirs(deep, 0700, NULL), 0);
    assert_int_equal(file_mkdirs(deep, 0700, NULL), 0);
    assert_int_equal(access(deep, W_OK), 0);

    _cleanup_free_ char *outside = in_root("outside");
    assert_int_equal(file_replace(outside, "x", 1, 0600, NULL), 0);
    _cleanup_free_ char *link = in_root("a/b/link");
    assert_int_equal(symlink(root, link), 0);
    _cleanup_free_ char *inner = in_root("a/b/c/file");
    assert_int_equal(file_replace(inner, "x", 1, 0600, NULL), 0);
    struct error err = ERROR_INIT;
    assert_int_equal(file_mkdirs(inner, 0700, &err), E_IO);
    assert_non_null(strstr(err.message, "Not a directory"));

    _cleanup_free_ char *top = in_root("a");
    assert_int_equal(file_remove_tree(top, NULL), 0);
    assert_int_equal(access(top, F_OK), -1);
    assert_content(outside, "x"); /* the link was removed, not what it points to */
    assert_int_equal(file_remove_tree(top, NULL), 0);
}

static void *remove_tree(void *path)
{
    return (void *)(intptr_t)file_remove_tree(path, NULL);
}

/* Each finds parts of it gone that it has just seen. */
static void test_two_remove_the_same_tree(void **state)
{
    (void)state;
    _cleanup_free_ char *top = in_root("a");
    _cleanup_free_ char *deep = in_root("a/b/c/d/e/f/g");
    for (int round = 0; round < 50; round++) {
        assert_int_equal(file_mkdirs(deep, 0700, NULL), 0);
        pthread_t other;
        void *code = NULL;
        assert_int_equal(pthread_create(&other, NULL, remove_tree, top), 0);
        assert_int_equal(file_remove_tree(top, NULL), 0);
        assert_int_equal(pthread_join(other, &code), 0);
        assert_null(code);
        assert_int_equal(access(top, F_OK), -1);
    }
}

struct pieces {
    size_t count, bytes;
};

static void count_piece(void *ctx, size_t bytes)
{
    struct pieces *p = ctx;
    p->count++;
    p->bytes += bytes;
}

static void test_a_checksum_tells_how_far_it_is(void **state)
{
    (void)state;
    enum { BYTES = 1 << 20 };
    _cleanup_free_ char *path = in_root("large");
    _cleanup_free_ char *bytes = xcalloc(1, BYTES);
    struct pieces pieces = {0};
    struct checksum_value got, same;
    assert_int_equal(file_replace(path, bytes, BYTES, 0600, NULL), 0);
    assert_int_equal(file_checksum(path, CHECKSUM_XXH3, count_piece, &pieces, &got, NULL), 0);
    assert_int_equal(pieces.bytes, BYTES);
    assert_in_range(pieces.count, 4, BYTES);
    assert_int_equal(file_checksum(path, CHECKSUM_XXH3, NULL, NULL, &same, NULL), 0);
    assert_true(checksum_equal(&got, &same));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_replace),
        TEST(test_failed_replace_leaves_the_old),
        TEST(test_read_all),
        TEST(test_positioned_io),
        TEST(test_mkdirs_and_remove_tree),
        TEST(test_two_remove_the_same_tree),
        TEST(test_a_checksum_tells_how_far_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
