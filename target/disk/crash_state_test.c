#include "target/disk/crash_state.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/file.h"

static char dir[64];

static int setup(void **state)
{
    (void)state;
    log_set_level(LOG_OFF);
    snprintf(dir, sizeof dir, "/dev/shm/dfc-life-XXXXXX");
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    fault_configure(NULL, NULL);
    return file_remove_tree(dir, NULL);
}

static void arm(const char *spec)
{
    assert_int_equal(fault_configure(spec, NULL), 0);
}

static struct crash_state *open_life(bool has_objects)
{
    struct crash_state *l;
    struct error err = ERROR_INIT;
    if (crash_state_open(dir, has_objects, &l, &err) != 0)
        fail_msg("%s", err.message);
    return l;
}

static struct crash_state *begin(uint64_t floor)
{
    struct crash_state *l = open_life(false);
    assert_int_equal(crash_state_begin(l, floor, NULL), 0);
    return l;
}

/* As a killed process leaves it: nothing is written down any more. */
static void kill_life(struct crash_state *l)
{
    arm("disk.open=EIO");
    assert_false(crash_state_close(l));
    arm(NULL);
}

/* The machine has been started anew since. */
static struct crash_state *open_after_power(void)
{
    arm("life.boot=skip");
    struct crash_state *l = open_life(true);
    arm(NULL);
    return l;
}

static int64_t name_one(struct crash_state *l)
{
    crash_state_enter(l);
    int64_t time_ms = crash_state_time(l, clock_wall_ms());
    crash_state_leave(l);
    return time_ms;
}

static void test_a_new_one_has_lost_nothing(void **state)
{
    (void)state;
    struct crash_state *l = open_life(false);
    assert_false(crash_state_power_lost(l));
    assert_int_equal(crash_state_floor(l), 0);
    assert_true(crash_state_close(l)); /* it never began: nothing is written */
    assert_false(crash_state_power_lost(l = open_life(false)));
    crash_state_close(l);
}

static void test_an_orderly_end_leaves_nothing_suspect(void **state)
{
    (void)state;
    struct crash_state *l = begin(7);
    int64_t named_ms = name_one(l);
    assert_true(crash_state_close(l));
    l = open_after_power();
    assert_false(crash_state_power_lost(l));
    assert_false(crash_state_suspects(l, named_ms));
    assert_int_equal(crash_state_floor(l), 7);
    crash_state_close(l);
}

static void test_a_killed_process_is_no_loss_of_power(void **state)
{
    (void)state;
    struct crash_state *l = begin(7);
    int64_t named_ms = name_one(l);
    kill_life(l);
    l = open_life(true);
    assert_false(crash_state_power_lost(l));
    /* But power may still go before anything was flushed. */
    assert_int_equal(crash_state_begin(l, 0, NULL), 0);
    kill_life(l);
    l = open_after_power();
    assert_true(crash_state_power_lost(l));
    assert_true(crash_state_suspects(l, named_ms));
    crash_state_close(l);
}

/* A disk that was gone for a moment: what was only in memory is not on it. */
static void test_another_mount_is_a_loss_of_power(void **state)
{
    (void)state;
    struct crash_state *l = begin(0), *again;
    int64_t named_ms = name_one(l);
    kill_life(l);
    _cleanup_free_ char *other = xprintf("%s/other", dir);
    assert_int_equal(mkdir(other, 0700), 0);
    if (mount(dir, other, NULL, MS_BIND, NULL) != 0)
        skip(); /* not root */
    int code = crash_state_open(other, true, &again, NULL);
    bool suspects = code == 0 && crash_state_suspects(again, named_ms);
    if (code == 0)
        crash_state_close(again);
    assert_int_equal(umount2(other, MNT_DETACH), 0);
    assert_int_equal(code, 0);
    assert_true(suspects);
}

static void test_a_flush_clears_what_was_before_it(void **state)
{
    (void)state;
    struct crash_state *l = begin(0);
    int64_t before_ms = name_one(l);
    assert_int_equal(crash_state_flush(l, NULL), 0);
    int64_t after_ms = name_one(l);
    assert_true(after_ms > before_ms); /* also within one millisecond */
    kill_life(l);
    l = open_after_power();
    assert_false(crash_state_suspects(l, before_ms));
    assert_true(crash_state_suspects(l, after_ms));
    crash_state_close(l);
}

static void test_what_was_not_checked_is_suspect_again(void **state)
{
    (void)state;
    struct crash_state *l = begin(0);
    int64_t named_ms = name_one(l);
    kill_life(l);
    l = open_after_power();
    assert_int_equal(crash_state_begin(l, 0, NULL), 0); /* the index could not be rebuilt */
    assert_int_equal(crash_state_flush(l, NULL), 0);
    assert_false(crash_state_close(l));
    l = open_life(true);
    assert_true(crash_state_suspects(l, named_ms));
    crash_state_set_checked(l);
    assert_int_equal(crash_state_begin(l, 0, NULL), 0);
    assert_true(crash_state_close(l));
    l = open_after_power();
    assert_false(crash_state_suspects(l, named_ms));
    crash_state_close(l);
}

static void test_after_a_flush_that_failed_nothing_is_sure(void **state)
{
    (void)state;
    struct crash_state *l = begin(0);
    int64_t named_ms = name_one(l);
    arm("disk.sync=EIO@1");
    assert_int_equal(crash_state_flush(l, NULL), E_IO);
    assert_int_equal(crash_state_flush(l, NULL),
                     0); /* a later one proves nothing, and is not made */
    arm(NULL);
    assert_false(crash_state_close(l));
    l = open_life(true); /* the machine is still the same */
    assert_true(crash_state_suspects(l, named_ms));
    crash_state_close(l);
}

static void test_the_floor_only_rises_and_stays(void **state)
{
    (void)state;
    struct crash_state *l = begin(5);
    assert_int_equal(crash_state_raise(l, 9, NULL), 0);
    assert_int_equal(crash_state_raise(l, 3, NULL), 0);
    assert_int_equal(crash_state_floor(l), 9);
    kill_life(l);
    l = open_life(true);
    assert_int_equal(crash_state_floor(l), 9);
    crash_state_close(l);
}

/* A full disk: it is in force at once, and writes wait until it stands on the disk. */
static void test_what_is_not_written_down_is_tried_again(void **state)
{
    (void)state;
    struct crash_state *l = open_life(false);
    arm("disk.write=ENOSPC");
    assert_int_equal(crash_state_begin(l, 5, NULL), E_NO_SPACE);
    assert_int_equal(crash_state_settle(l, NULL), E_NO_SPACE);
    assert_int_equal(crash_state_floor(l), 5);
    arm(NULL);
    assert_int_equal(crash_state_settle(l, NULL), 0);
    kill_life(l);
    assert_int_equal(crash_state_floor(l = open_life(true)), 5);
    crash_state_close(l);
}

static void test_a_lost_or_damaged_file_makes_all_suspect(void **state)
{
    (void)state;
    struct crash_state *l = open_life(true); /* objects, but no file */
    assert_true(crash_state_suspects(l, 0));
    uint64_t floor = crash_state_floor(l);
    assert_true(floor > 1000 * VERSION_FLOOR_STEP);
    assert_int_equal(floor % VERSION_FLOOR_STEP, 0);
    crash_state_close(l);
    _cleanup_free_ char *path = xprintf("%s/life.json", dir);
    assert_int_equal(file_replace(path, "{", 1, 0600, NULL), 0);
    l = open_life(false);
    assert_true(crash_state_suspects(l, 0));
    assert_true(crash_state_floor(l) >= floor);
    crash_state_close(l);
    static const char never[] = "{\"format\": 1, \"boot\": \"b\", \"floor\": 1, "
                                "\"flushed\": 9223372036854775807}";
    assert_int_equal(file_replace(path, never, sizeof never - 1, 0600, NULL), 0);
    l = open_life(true);
    assert_true(crash_state_suspects(l, 0));
    crash_state_close(l);
    static const char newer[] = "{\"format\": 2}";
    assert_int_equal(file_replace(path, newer, sizeof newer - 1, 0600, NULL), 0);
    assert_int_equal(crash_state_open(dir, true, &l, NULL), E_UNSUPPORTED);
}

struct flusher {
    struct crash_state *crash_state;
    atomic_bool stop;
    int failed;
};

static void *flush_often(void *arg)
{
    struct flusher *f = arg;
    while (!f->stop)
        f->failed |= crash_state_flush(f->crash_state, NULL);
    return NULL;
}

/* A flush waits for those who are naming, and they may raise the floor meanwhile; nor do those who
 * never cease to come keep it from its turn. */
static void test_flushing_and_naming_do_not_lock_each_other_out(void **state)
{
    (void)state;
    struct crash_state *l = begin(0);
    pthread_t thread;
    struct flusher flusher = {.crash_state = l};
    assert_int_equal(pthread_create(&thread, NULL, flush_often, &flusher), 0);
    for (uint64_t i = 1; i <= 300; i++) {
        crash_state_enter(l);
        usleep(100); /* a name takes its time, in which a flush may come */
        assert_int_equal(crash_state_raise(l, i, NULL), 0);
        crash_state_leave(l);
    }
    flusher.stop = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(flusher.failed, 0);
    assert_int_equal(crash_state_floor(l), 300);
    assert_true(crash_state_close(l));
}

#define life_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        life_test(test_a_new_one_has_lost_nothing),
        life_test(test_an_orderly_end_leaves_nothing_suspect),
        life_test(test_a_killed_process_is_no_loss_of_power),
        life_test(test_another_mount_is_a_loss_of_power),
        life_test(test_a_flush_clears_what_was_before_it),
        life_test(test_what_was_not_checked_is_suspect_again),
        life_test(test_after_a_flush_that_failed_nothing_is_sure),
        life_test(test_the_floor_only_rises_and_stays),
        life_test(test_what_is_not_written_down_is_tried_again),
        life_test(test_a_lost_or_damaged_file_makes_all_suspect),
        life_test(test_flushing_and_naming_do_not_lock_each_other_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
