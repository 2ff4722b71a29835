#include "io/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/fault.h"
#include "common/mem.h"
#include "common/rng.h"

enum { SIZE = 4 * READER_PIECE_BYTES + 100 };

static char dir[64];
static struct reader *reader;
static int fd;
static char data[SIZE];

static int setup(void **state)
{
    (void)state;
    snprintf(dir, sizeof dir, "/tmp/dfc-reader-test-XXXXXX");
    assert_non_null(mkdtemp(dir));
    _cleanup_free_ char *path = xprintf("%s/file", dir);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    random_bytes(data, sizeof data);
    assert_int_equal(write(fd, data, SIZE), SIZE);
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(reader_new(dir, 2, 4, &reader, NULL), 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    _cleanup_free_ char *path = xprintf("%s/file", dir);
    fault_configure("", NULL);
    reader_close(reader);
    close(fd);
    unlink(path);
    rmdir(dir);
    return 0;
}

/* What was written last is in memory. */
static void what_is_in_memory_is_read_at_once(void **state)
{
    (void)state;
    _cleanup_free_ char *out = xmalloc(SIZE);
    assert_int_equal(reader_pread_now(reader, fd, out, SIZE, 0), SIZE);
    assert_memory_equal(out, data, SIZE);
    assert_int_equal(reader_pread_now(reader, fd, out, 200, SIZE - 100), 100);
    assert_true(reader_has(reader, fd, 0, READER_PIECE_BYTES));
    assert_true(reader_has(reader, fd, SIZE - 1, 1));
    assert_true(reader_has(reader, fd, 12345, 0));
    _cleanup_free_ char *path = xprintf("%s/file", dir);
    int again = reader_open_now(reader, AT_FDCWD, path);
    assert_true(again >= 0);
    close(again);
    assert_int_equal(reader_open_now(reader, AT_FDCWD, "/tmp/no/such/file/at/all"), -1);
    assert_true(errno == ENOENT || errno == EAGAIN);
}

/* Pages of these bytes that are in memory; asking does not bring any, as a read would. */
static size_t resident(off_t from, size_t len)
{
    unsigned char pages[SIZE / 4096 + 1];
    size_t count = 0;
    void *map = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, from);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mincore(map, len, pages), 0);
    munmap(map, len);
    for (size_t i = 0; i < (len + 4095) / 4096; i++)
        count += pages[i] & 1;
    return count;
}

/* The kernel keeps a page that something holds at this moment: writing it back, or a list of the
 * processor that read it. */
static bool forgotten(off_t from, size_t len)
{
    for (int tries = 0; tries < 1000; tries++) {
        assert_int_equal(posix_fadvise(fd, from, (off_t)len, POSIX_FADV_DONTNEED), 0);
        if (resident(from, len) == 0)
            return true;
        assert_int_equal(fsync(fd), 0);
    }
    return false;
}

static void what_is_not_in_memory_is_fetched(void **state)
{
    (void)state;
    if (!forgotten(0, SIZE))
        skip(); /* a file system in memory */
    char byte;
    /* The kernel begins to read ahead, and a fast disk may have answered when it looks again. */
    if (reader_pread_now(reader, fd, &byte, 1, 3 * READER_PIECE_BYTES) != 0)
        assert_int_equal(byte, data[3 * READER_PIECE_BYTES]);
    assert_int_equal(reader_fetch(reader, fd, 0, READER_PIECE_BYTES, NULL), 0);
    assert_true(reader_has(reader, fd, 0, READER_PIECE_BYTES));
    assert_int_equal(reader_pread_now(reader, fd, &byte, 1, 77), 1);
    assert_int_equal(byte, data[77]);
    /* A hole in what is asked for is seen, wherever it is. */
    assert_true(forgotten(READER_PIECE_BYTES / 2, 4096));
    assert_true(reader_has(reader, fd, READER_PIECE_BYTES - 1, 1));
    assert_false(reader_has(reader, fd, 0, READER_PIECE_BYTES));
}

static void a_fault_makes_everything_cold(void **state)
{
    (void)state;
    char out[10];
    assert_int_equal(fault_configure("disk.cold[/dfc-reader-test]=EAGAIN", NULL), 0);
    assert_int_equal(reader_pread_now(reader, fd, out, sizeof out, 0), 0);
    assert_false(reader_has(reader, fd, 0, 1));
    assert_int_equal(reader_open_now(reader, AT_FDCWD, "/"), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(reader_pread(reader, fd, out, sizeof out, 5, NULL), 0);
    assert_memory_equal(out, data + 5, sizeof out);
}

static void what_cannot_be_read_is_said(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char out[10];
    assert_int_equal(reader_pread(reader, fd, out, sizeof out, SIZE - 5, &err), E_LENGTH);
    assert_int_equal(reader_fetch(reader, fd, SIZE - 5, 10, &err), E_LENGTH);
    assert_int_equal(fault_configure("disk.read=EIO@2", NULL), 0);
    assert_int_equal(reader_fetch(reader, fd, 0, READER_PIECE_BYTES, &err), E_IO);
    assert_non_null(strstr(err.message, dir));
}

struct job {
    sem_t started, go_on;
    unsigned ran;
};

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        assert_int_equal(errno, EINTR);
}

static void held_job(void *arg)
{
    struct job *j = arg;
    sem_post(&j->started);
    wait_for(&j->go_on);
}

static void counted_job(void *arg)
{
    struct job *j = arg;
    j->ran += reader_may_wait();
}

static void the_queue_is_bounded_and_run_to_its_end(void **state)
{
    (void)state;
    struct reader *one;
    struct job j = {0};
    struct error err = ERROR_INIT;
    sem_init(&j.started, 0, 0);
    sem_init(&j.go_on, 0, 0);
    assert_int_equal(reader_new(dir, 1, 2, &one, NULL), 0);
    assert_int_equal(reader_submit(one, held_job, &j, &err), 0);
    wait_for(&j.started);
    assert_int_equal(reader_submit(one, counted_job, &j, &err), 0);
    assert_int_equal(reader_submit(one, counted_job, &j, &err), 0);
    assert_int_equal(reader_submit(one, counted_job, &j, &err), E_OVERLOAD);
    reader_ref(one);
    sem_post(&j.go_on);
    reader_close(one);
    assert_int_equal(j.ran, 2);
    assert_false(reader_may_wait());
    assert_int_equal(reader_submit(one, counted_job, &j, &err), E_CANCELLED);
    assert_true(reader_has(one, fd, 0, 0)); /* a reply that outlasts the mountpath may still ask */
    reader_unref(one);
    sem_destroy(&j.started);
    sem_destroy(&j.go_on);
}

static void a_place_that_is_not_there_is_refused(void **state)
{
    (void)state;
    struct reader *none;
    struct error err = ERROR_INIT;
    assert_int_equal(reader_new("/no/such/place", 1, 1, &none, &err), E_IO);
    assert_non_null(strstr(err.message, "/no/such/place"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_in_memory_is_read_at_once),       TEST(what_is_not_in_memory_is_fetched),
        TEST(a_fault_makes_everything_cold),           TEST(what_cannot_be_read_is_said),
        TEST(the_queue_is_bounded_and_run_to_its_end), TEST(a_place_that_is_not_there_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
