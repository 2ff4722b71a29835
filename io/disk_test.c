#include "io/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/fault.h"
#include "io/thread.h"

/* Every test runs on the ring (where the kernel has it) and without. */
static struct disk *disk;
static int fd;

static int setup_with(int (*open_disk)(const char *, unsigned, struct disk **, struct error *))
{
    char path[] = "/tmp/dfc-disk-test-XXXXXX";
    fd = mkstemp(path);
    unlink(path);
    return fd < 0 || open_disk("disk", 8, &disk, NULL) != 0;
}

static int setup_ring(void **state)
{
    (void)state;
    return setup_with(disk_open);
}

static int setup_plain(void **state)
{
    (void)state;
    return setup_with(disk_open_plain);
}

static int teardown(void **state)
{
    (void)state;
    fault_configure(NULL, NULL);
    disk_free(disk);
    close(fd);
    return 0;
}

static int run(enum disk_op_kind kind, void *data, size_t len, uint64_t offset)
{
    struct disk_op op = {.kind = kind, .fd = fd, .data = data, .len = len, .offset = offset};
    return disk_run(disk, &op);
}

static void test_backend(void **state)
{
    (void)state;
    struct disk *plain;
    assert_int_equal(disk_open_plain("plain", 1, &plain, NULL), 0);
    assert_string_equal(disk_backend(plain), "threads (io_uring is switched off)");
    disk_free(plain);
    assert_true(strcmp(disk_backend(disk), "io_uring") == 0 ||
                strncmp(disk_backend(disk), "threads (", 9) == 0);
}

static void test_read_and_write(void **state)
{
    (void)state;
    char out[32] = {0};
    assert_int_equal(run(DISK_WRITE, (char[]){"hello world"}, 11, 5), 11);
    assert_int_equal(run(DISK_WRITE_BACK, NULL, 0, 0), 0);
    assert_int_equal(run(DISK_FDATASYNC, NULL, 0, 0), 0);
    assert_int_equal(run(DISK_FSYNC, NULL, 0, 0), 0);
    assert_int_equal(run(DISK_READ, out, 5, 11), 5);
    assert_string_equal(out, "world");
    assert_int_equal(run(DISK_READ, out, sizeof out, 5), 11); /* the file ends */
    assert_int_equal(run(DISK_READ, out, sizeof out, 100), 0);
    int good = fd;
    fd = INT_MAX;
    assert_int_equal(run(DISK_WRITE, out, 1, 0), -EBADF);
    fd = good;
}

static void test_faults(void **state)
{
    (void)state;
    char byte = 'x';
    assert_int_equal(fault_configure("disk.write=ENOSPC@2", NULL), 0);
    assert_int_equal(run(DISK_WRITE, &byte, 1, 0), 1);
    assert_int_equal(run(DISK_WRITE, &byte, 1, 0), -ENOSPC);
    assert_int_equal(fault_configure("disk.sync=EIO", NULL), 0);
    assert_int_equal(run(DISK_FDATASYNC, NULL, 0, 0), -EIO);
    assert_int_equal(run(DISK_WRITE_BACK, NULL, 0, 0), -EIO);
}

static pthread_t call_thread;

static int note_thread(struct disk_op *op)
{
    call_thread = pthread_self();
    return *(int *)op->ctx;
}

static void test_call(void **state)
{
    (void)state;
    int result = 42;
    struct disk_op op = {.kind = DISK_CALL, .call = note_thread, .ctx = &result};
    assert_int_equal(disk_run(disk, &op), 42);
    assert_false(pthread_equal(call_thread, pthread_self()));
    result = -EXDEV;
    assert_int_equal(disk_run(disk, &op), -EXDEV);
}

/* A chain: write, sync, call, each submitted by the end of the one before. */
struct chain {
    struct disk_op op;
    char text[8];
    int step;
    sem_t ended;
};

static int call_nothing(struct disk_op *op)
{
    (void)op;
    return 7;
}

static void chain_step(struct disk_op *op, int result)
{
    struct chain *c = op->ctx;
    static const int expected[] = {8, 0, 7};
    assert_int_equal(result, expected[c->step]);
    switch (++c->step) {
    case 1:
        op->kind = DISK_FDATASYNC;
        disk_submit_next(disk, op);
        break;
    case 2:
        op->kind = DISK_CALL;
        op->call = call_nothing;
        disk_submit_next(disk, op);
        break;
    default:
        sem_post(&c->ended);
    }
}

static void test_chains(void **state)
{
    (void)state;
    enum { CHAINS = 200 }; /* more than the depth: submitting waits */
    static struct chain chains[CHAINS];
    memset(chains, 0, sizeof chains);
    for (int i = 0; i < CHAINS; i++) {
        struct chain *c = &chains[i];
        sem_init(&c->ended, 0, 0);
        snprintf(c->text, sizeof c->text, "%07d", i);
        c->op = (struct disk_op){.kind = DISK_WRITE,
                                 .fd = fd,
                                 .data = c->text,
                                 .len = sizeof c->text,
                                 .offset = (uint64_t)i * sizeof c->text,
                                 .done = chain_step,
                                 .ctx = c};
        disk_submit(disk, &c->op);
    }
    for (int i = 0; i < CHAINS; i++) {
        sem_wait(&chains[i].ended);
        sem_destroy(&chains[i].ended);
        char got[8];
        assert_int_equal(pread(fd, got, sizeof got, (off_t)i * 8), 8);
        assert_string_equal(got, chains[i].text);
    }
}

static atomic_uint ends;

static void count_end(struct disk_op *op, int result)
{
    assert_int_equal(result, 1);
    free(op);
    ends++;
}

static void *submit_many(void *arg)
{
    for (int i = 0; i < 500; i++) {
        struct disk_op *op = calloc(1, sizeof *op);
        *op = (struct disk_op){
            .kind = DISK_WRITE, .fd = fd, .data = arg, .len = 1, .offset = 9, .done = count_end};
        disk_submit(disk, op);
    }
    return NULL;
}

/* Many submitters, and the end right behind them: everything outstanding completes. */
static void test_end_completes(void **state)
{
    (void)state;
    ends = 0;
    char byte = 'x';
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(thread_start("submit", submit_many, &byte, &threads[i], NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    disk_free(disk);
    disk = NULL;
    assert_int_equal(ends, 2000);
}

/* A call as the last thing before the end: nothing else wakes the thread. */
static void test_end_after_call(void **state)
{
    (void)state;
    int result = 1;
    struct disk_op *op = calloc(1, sizeof *op);
    *op =
        (struct disk_op){.kind = DISK_CALL, .call = note_thread, .ctx = &result, .done = count_end};
    disk_submit(disk, op);
    disk_free(disk);
    disk = NULL;
}

#define TEST(name)                                               \
    cmocka_unit_test_setup_teardown(name, setup_ring, teardown), \
        cmocka_unit_test_setup_teardown(name, setup_plain, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_backend), TEST(test_read_and_write), TEST(test_faults),         TEST(test_call),
        TEST(test_chains),  TEST(test_end_completes),  TEST(test_end_after_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
