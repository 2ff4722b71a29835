#include "common/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/clock.h"

static void arm(const char *spec)
{
    struct error err = ERROR_INIT;
    if (fault_configure(spec, &err) != 0)
        fail_msg("%s", err.message);
}

static int disarm(void **state)
{
    (void)state;
    return fault_configure(NULL, NULL);
}

static void nothing_armed_passes(void **state)
{
    (void)state;
    assert_int_equal(fault_errno("disk.write"), 0);
    assert_true(fault_cut_bytes("net.send") == UINT64_MAX);
    assert_false(atomic_load(&fault_armed));
}

static void every_pass_fails(void **state)
{
    (void)state;
    arm("disk.write=ENOSPC");
    for (int i = 0; i < 5; i++)
        assert_int_equal(fault_errno("disk.write"), ENOSPC);
    assert_int_equal(fault_errno("disk.read"), 0);
}

static void only_the_nth_pass_fails(void **state)
{
    (void)state;
    arm("disk.write=EIO@3,disk.read=EBADMSG@1");
    static const int want[] = {0, 0, EIO, 0, 0};
    for (int i = 0; i < 5; i++)
        assert_int_equal(fault_errno("disk.write"), want[i]);
    assert_int_equal(fault_errno("disk.read"), EBADMSG);
    assert_int_equal(fault_errno("disk.read"), 0);
}

static void what_is_skipped_neither_fails_nor_happens(void **state)
{
    (void)state;
    arm("sync.name=skip@2,disk.sync=EIO@1");
    assert_false(fault_skips("sync.name"));
    assert_true(fault_skips("sync.name"));
    assert_false(fault_skips("sync.name"));
    assert_int_equal(fault_errno("sync.name"), 0);
    assert_false(fault_skips("disk.sync")); /* it fails, which is something else */
}

static void a_step_is_left_out_or_fails(void **state)
{
    (void)state;
    arm("sync.name=skip@2,sync.object=EIO@2");
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(fault_step("sync.name"), i == 2 ? FAULT_LEFT_OUT : 0);
        assert_int_equal(fault_step("sync.object"), i == 2 ? EIO : 0);
    }
    assert_int_equal(fault_step("sync.bytes"), 0);
}

static void a_place_can_be_chosen(void **state)
{
    (void)state;
    arm("disk.read[/mp1]=EIO@2,disk.write=ENOSPC");
    assert_int_equal(fault_errno_at("disk.read", "/tmp/t1/mp1"), 0);
    assert_int_equal(fault_errno_at("disk.read", "/tmp/t1/mp2"), 0);
    assert_int_equal(fault_errno("disk.read"), 0);
    assert_int_equal(fault_errno_at("disk.read", "/tmp/t1/mp1"), EIO);
    assert_int_equal(fault_errno_at("disk.write", "/tmp/t1/mp2"), ENOSPC);
}

static void the_nth_and_all_later_passes_fail(void **state)
{
    (void)state;
    arm("net.connect=ECONNREFUSED@2+");
    assert_int_equal(fault_errno("net.connect"), 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(fault_errno("net.connect"), ECONNREFUSED);
}

static void arming_counts_anew_and_disarms_the_rest(void **state)
{
    (void)state;
    arm("disk.write=EIO@2,disk.read=EIO");
    assert_int_equal(fault_errno("disk.write"), 0);
    arm("disk.write=EIO@2");
    assert_int_equal(fault_errno("disk.write"), 0);
    assert_int_equal(fault_errno("disk.write"), EIO);
    assert_int_equal(fault_errno("disk.read"), 0);
    arm("");
    assert_int_equal(fault_errno("disk.write"), 0);
    assert_false(atomic_load(&fault_armed));
}

static void streams_are_cut(void **state)
{
    (void)state;
    arm("net.send=cut@64k,net.recv=cut@0");
    assert_int_equal(fault_cut_bytes("net.send"), 65536);
    assert_int_equal(fault_cut_bytes("net.recv"), 0);
    assert_int_equal(fault_errno("net.send"), 0);
    assert_true(fault_cut_bytes("disk.write") == UINT64_MAX);
}

static void a_delay_waits(void **state)
{
    (void)state;
    arm("sort.merge=delay:30,sort.plan=delay:30ms@2,sort.create=delay:1h@2");
    uint64_t before = clock_us();
    assert_int_equal(fault_errno("sort.merge"), 0);
    assert_true(clock_us() - before >= 29000);
    assert_int_equal(fault_errno("sort.plan"), 0);
    before = clock_us();
    assert_int_equal(fault_errno("sort.plan"), 0);
    assert_true(clock_us() - before >= 29000);
    assert_int_equal(fault_errno("sort.create"), 0); /* the first pass does not wait an hour */
}

static void a_clock_is_wrong(void **state)
{
    (void)state;
    assert_int_equal(fault_shift_ms("clock.wall"), 0);
    arm("clock.wall=ahead:1h");
    assert_int_equal(fault_shift_ms("clock.wall"), 3600000);
    assert_int_equal(fault_errno("clock.wall"), 0);
    arm("clock.wall=behind:250");
    assert_int_equal(fault_shift_ms("clock.wall"), -250);
    arm("clock.wall=behind:1h@2");
    assert_int_equal(fault_shift_ms("clock.wall"), 0);
    assert_int_equal(fault_shift_ms("clock.wall"), -3600000);
    arm("index.write=EIO");
    assert_int_equal(fault_shift_ms("clock.wall"), 0);
}

static void kill_is_a_crash_at_the_pass(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (fault_configure("disk.rename=kill@2", NULL) != 0)
            _exit(1);
        if (fault_errno("disk.rename") != 0)
            _exit(2);
        fault_errno("disk.rename");
        _exit(3);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

struct hold {
    char dir[32], path[40];
    sem_t begun;
};

static void *remove_when_begun(void *arg)
{
    struct hold *h = arg;
    sem_wait(&h->begun);
    unlink(h->path);
    return NULL;
}

static void a_pass_is_held_as_long_as_its_file_is_there(void **state)
{
    (void)state;
    struct hold h = {.dir = "/tmp/fault-XXXXXX"};
    char spec[64];
    pthread_t remover;
    assert_non_null(mkdtemp(h.dir));
    snprintf(h.path, sizeof h.path, "%s/here", h.dir);
    snprintf(spec, sizeof spec, "pool.job=hold:%s@3+", h.dir);
    int fd = open(h.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    arm(spec);
    sem_init(&h.begun, 0, 0);
    assert_int_equal(fault_errno_at("pool.job", "elsewhere"), 0);
    assert_int_equal(fault_errno_at("pool.job", "here"), 0); /* the second pass */
    assert_int_equal(access(h.path, F_OK), 0);
    assert_int_equal(pthread_create(&remover, NULL, remove_when_begun, &h), 0);
    sem_post(&h.begun);
    assert_int_equal(fault_errno_at("pool.job", "here"), 0);
    assert_int_not_equal(access(h.path, F_OK), 0);
    pthread_join(remover, NULL);
    sem_destroy(&h.begun);
    rmdir(h.dir);
}

static void bad_specs_say_why_and_change_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        const char *message;
    } rows[] = {
        {"disk.wrote=EIO", "no fault point is called 'disk.wrote'"},
        {"=EIO", "no fault point is called ''"},
        {"disk.write", "fault 'disk.write' lacks '=' and an action"},
        {"disk.write=EFOO",
         "fault 'disk.write': 'EFOO' is none of kill, skip, delay:MS, hold:DIR, ahead:MS, "
         "behind:MS, cut@SIZE and the errno names"},
        {"disk.write=",
         "fault 'disk.write': '' is none of kill, skip, delay:MS, hold:DIR, ahead:MS, "
         "behind:MS, cut@SIZE and the errno names"},
        {"disk.write=EIO:5",
         "fault 'disk.write': 'EIO' is none of kill, skip, delay:MS, hold:DIR, ahead:MS, "
         "behind:MS, cut@SIZE and the errno names"},
        {"net.send=cut",
         "fault 'net.send': 'cut' is none of kill, skip, delay:MS, hold:DIR, ahead:MS, "
         "behind:MS, cut@SIZE and the errno names"},
        {"net.send=cut@x", "fault 'net.send': 'x' is not a size such as 512, 64KiB or 1.5GiB"},
        {"disk.write[x=EIO", "fault 'disk.write': '[x' is not a place in brackets"},
        {"disk.write[]=EIO", "fault 'disk.write': '[]' is not a place in brackets"},
        {"disk.write=EIO@0", "fault 'disk.write': passes count from 1"},
        {"disk.write=EIO@", "fault 'disk.write': '' is not a whole number, 0 or more"},
        {"disk.write=EIO@+", "fault 'disk.write': '' is not a whole number, 0 or more"},
        {"disk.read=EIO,disk.write=delay:x",
         "fault 'disk.write': 'x' is not a duration such as 250ms, 10s or 2h"},
    };
    arm("disk.read=ENOENT");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        assert_int_equal(fault_configure(rows[i].spec, &err), E_INVALID);
        assert_string_equal(err.message, rows[i].message);
    }
    assert_int_equal(fault_errno("disk.read"), ENOENT);
}

static void every_row_of_the_table_can_be_armed(void **state)
{
    (void)state;
    static const char *const points[] = {
#define POINT(name, text) name,
#include "common/fault.def"
#undef POINT
    };
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        char spec[100];
        snprintf(spec, sizeof spec, "%s=EIO", points[i]);
        arm(spec);
        assert_int_equal(fault_errno(points[i]), EIO);
    }
}

enum { THREADS = 4, PASSES = 5000 };

static void *pass_often(void *failures)
{
    for (int i = 0; i < PASSES; i++)
        *(int *)failures += fault_errno("index.write") != 0;
    return NULL;
}

static void exactly_one_of_many_threads_sees_the_nth_pass(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    int failures[THREADS] = {0};
    arm("index.write=EIO@9000");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, pass_often, &failures[i]), 0);
    int all = 0;
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        all += failures[i];
    }
    assert_int_equal(all, 1);
}

static void *arm_often(void *unused)
{
    for (int i = 0; i < 500; i++)
        fault_configure(i % 2 ? "index.write=EIO,net.send=cut@1" : "", NULL);
    return unused;
}

static void arming_while_others_pass(void **state)
{
    (void)state;
    pthread_t passing;
    pthread_t arming;
    int failures = 0;
    assert_int_equal(pthread_create(&passing, NULL, pass_often, &failures), 0);
    assert_int_equal(pthread_create(&arming, NULL, arm_often, NULL), 0);
    for (int i = 0; i < PASSES; i++) {
        uint64_t bytes = fault_cut_bytes("net.send");
        assert_true(bytes == 1 || bytes == UINT64_MAX);
    }
    assert_int_equal(pthread_join(passing, NULL), 0);
    assert_int_equal(pthread_join(arming, NULL), 0);
    assert_in_range(failures, 0, PASSES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nothing_armed_passes, disarm),
        cmocka_unit_test_teardown(every_pass_fails, disarm),
        cmocka_unit_test_teardown(only_the_nth_pass_fails, disarm),
        cmocka_unit_test_teardown(what_is_skipped_neither_fails_nor_happens, disarm),
        cmocka_unit_test_teardown(a_step_is_left_out_or_fails, disarm),
        cmocka_unit_test_teardown(a_place_can_be_chosen, disarm),
        cmocka_unit_test_teardown(the_nth_and_all_later_passes_fail, disarm),
        cmocka_unit_test_teardown(arming_counts_anew_and_disarms_the_rest, disarm),
        cmocka_unit_test_teardown(streams_are_cut, disarm),
        cmocka_unit_test_teardown(a_delay_waits, disarm),
        cmocka_unit_test_teardown(a_clock_is_wrong, disarm),
        cmocka_unit_test_teardown(kill_is_a_crash_at_the_pass, disarm),
        cmocka_unit_test_teardown(a_pass_is_held_as_long_as_its_file_is_there, disarm),
        cmocka_unit_test_teardown(bad_specs_say_why_and_change_nothing, disarm),
        cmocka_unit_test_teardown(every_row_of_the_table_can_be_armed, disarm),
        cmocka_unit_test_teardown(exactly_one_of_many_threads_sees_the_nth_pass, disarm),
        cmocka_unit_test_teardown(arming_while_others_pass, disarm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
