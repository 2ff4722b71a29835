#include "io/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/fault.h"
#include "common/mem.h"
#include "io/file.h"

#define BYTES ((size_t)16 * DIRECT_BLOCK)

static unsigned char *bytes; /* aligned; each block another */
static char *path;
static int fd;
static struct direct direct;

static int setup(void **state)
{
    (void)state;
    path = xstrdup("./dfc-direct-test-XXXXXX"); /* not /tmp, which may be in memory */
    fd = mkostemp(path, O_CLOEXEC);
    bytes = xaligned(DIRECT_BLOCK, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i % 251 + i / DIRECT_BLOCK);
    direct_begin(&direct, fd, true);
    return fd < 0;
}

static int teardown(void **state)
{
    (void)state;
    fault_configure(NULL, NULL);
    close(fd);
    unlink(path);
    free(path);
    free(bytes);
    return 0;
}

static bool is_flagged(void)
{
    return (fcntl(fd, F_GETFL) & O_DIRECT) != 0;
}

static void assert_whole(size_t len)
{
    struct stat st;
    _cleanup_free_ unsigned char *got = xmalloc(BYTES);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, len);
    assert_int_equal(file_pread_full(fd, got, len, 0, NULL), 0);
    assert_memory_equal(got, bytes, len);
}

static void test_pieces_make_the_file(void **state)
{
    (void)state;
    static const struct {
        size_t pieces[4];
        bool stays; /* past the page cache to the end */
    } rows[] = {
        {{DIRECT_BLOCK}, true},
        {{DIRECT_BLOCK, 4 * DIRECT_BLOCK, DIRECT_BLOCK}, true},
        {{4 * DIRECT_BLOCK, DIRECT_BLOCK + 512}, false},
        {{512}, false},
        {{4 * DIRECT_BLOCK, 512, DIRECT_BLOCK - 512, DIRECT_BLOCK}, false},
        {{1, DIRECT_BLOCK}, false},
    };
    if (!is_flagged())
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        direct_begin(&direct, fd, true);
        size_t at = 0;
        for (size_t k = 0; k < 4; at += rows[i].pieces[k++])
            assert_int_equal(direct_write(&direct, bytes + at, rows[i].pieces[k], NULL), 0);
        assert_int_equal(is_flagged(), rows[i].stays);
        direct_end(&direct);
        assert_false(is_flagged());
        assert_whole(at);
    }
}

static void test_memory_that_is_not_aligned(void **state)
{
    (void)state;
    _cleanup_free_ unsigned char *moved = xmalloc(BYTES + 1);
    memcpy(moved + 1, bytes, BYTES);
    assert_int_equal(direct_write(&direct, moved + 1, BYTES, NULL), 0);
    assert_false(is_flagged());
    assert_whole(BYTES);
}

/* Pages of the file in the page cache.  A read, also one that may not wait, would begin a
 * read-ahead. */
static size_t cached(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (BYTES + page - 1) / page;
    _cleanup_free_ unsigned char *in = xmalloc(pages);
    void *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    assert_int_equal(mincore(map, BYTES, in), 0);
    munmap(map, BYTES);
    size_t count = 0;
    for (size_t i = 0; i < pages; i++)
        count += in[i] & 1;
    return count;
}

static void test_the_page_cache_is_left_alone(void **state)
{
    (void)state;
    if (!is_flagged())
        skip();
    assert_int_equal(direct_write(&direct, bytes, BYTES, NULL), 0);
    direct_end(&direct);
    assert_int_equal(cached(), 0);
    assert_whole(BYTES);
}

static void test_where_it_is_not_wanted(void **state)
{
    (void)state;
    direct_end(&direct);
    direct_begin(&direct, fd, false);
    assert_false(is_flagged());
    assert_int_equal(direct_write(&direct, bytes, BYTES, NULL), 0);
    assert_int_equal(cached() * (size_t)sysconf(_SC_PAGESIZE), BYTES);
    assert_whole(BYTES);
}

/* A file system may let the flag be set and refuse the write; others come short. */
static void test_a_refusal_is_no_failure(void **state)
{
    (void)state;
    assert_int_equal(fault_configure("disk.write=EINVAL@2", NULL), 0);
    for (size_t at = 0; at < BYTES; at += BYTES / 4)
        assert_int_equal(direct_write(&direct, bytes + at, BYTES / 4, NULL), 0);
    assert_false(is_flagged());
    assert_whole(BYTES);
}

static void test_an_interrupted_write_goes_on(void **state)
{
    (void)state;
    assert_int_equal(fault_configure("disk.write=EINTR@1", NULL), 0);
    assert_int_equal(direct_write(&direct, bytes, BYTES, NULL), 0);
    direct_end(&direct);
    assert_whole(BYTES);
}

static void test_a_failing_disk_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        int code;
    } rows[] = {{"disk.write=EIO", E_IO}, {"disk.write=ENOSPC", E_NO_SPACE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = ERROR_INIT;
        assert_int_equal(fault_configure(rows[i].fault, NULL), 0);
        assert_int_equal(direct_write(&direct, bytes, BYTES, &err), rows[i].code);
        assert_non_null(strstr(err.message, "write 65536 bytes"));
    }
}

/* Bytes of another file, copied by the file system or, where it cannot, written. */
static void test_copies(void **state)
{
    (void)state;
    static const char *const faults[] = {"", "disk.copy=EXDEV", "disk.copy=EXDEV@2"};
    const size_t half = BYTES / 2 + 7;
    _cleanup_free_ char *from = xstrdup("./dfc-direct-from-XXXXXX");
    struct error err = ERROR_INIT;
    int source = mkostemp(from, O_CLOEXEC);
    assert_int_equal(file_write_all(source, bytes, BYTES, &err), 0);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        direct_begin(&direct, fd, true);
        assert_int_equal(fault_configure(faults[i], NULL), 0);
        assert_int_equal(direct_copy(&direct, source, 0, bytes, half, &err), 0);
        assert_int_equal(direct_copy(&direct, source, half, bytes + half, BYTES - half, &err), 0);
        assert_false(is_flagged());
        assert_whole(BYTES);
    }
    fault_configure("disk.write=ENOSPC", NULL);
    assert_int_equal(direct_copy(&direct, source, 0, bytes, half, &err), E_NO_SPACE);
    close(source);
    unlink(from);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_pieces_make_the_file),         TEST(test_memory_that_is_not_aligned),
        TEST(test_the_page_cache_is_left_alone), TEST(test_where_it_is_not_wanted),
        TEST(test_a_refusal_is_no_failure),      TEST(test_an_interrupted_write_goes_on),
        TEST(test_a_failing_disk_is_an_error),   TEST(test_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
