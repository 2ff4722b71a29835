/* Which disks are taken out, and which are not. */
#include "target/testing/store_fixture.h"

#include "common/clock.h"
#include "target/disk/health.h"

static struct health *health;

static void start_with(uint64_t errors_max, uint64_t test_timeout_ms)
{
    const struct health_config config = {.mountpaths = fx.mountpaths,
                                         .tests = true,
                                         .interval_ms = 5,
                                         .test_bytes = 100000,
                                         .test_timeout_ms = test_timeout_ms,
                                         .errors_max = errors_max,
                                         .window_ms = 60000};
    assert_int_equal(health_new(&config, &health, NULL), 0);
}

static void start(uint64_t errors_max)
{
    start_with(errors_max, 60000);
}

static int teardown(void **state)
{
    fault_configure(NULL, NULL);
    health_free(health);
    health = NULL;
    return fixture_teardown(state);
}

static bool is_out(void)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(fx.mountpaths);
    return set->roster->members[0].disabled;
}

static bool is_counted(void)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(fx.mountpaths);
    return set->roster->members[0].counted;
}

static bool why_has(const char *words)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(fx.mountpaths);
    return strstr(set->roster->members[0].why, words) != NULL;
}

static bool is_out_soon(void)
{
    uint64_t until = clock_ms() + 20000;
    while (!is_out() && clock_ms() < until)
        usleep(1000);
    return is_out();
}

static void errors(unsigned n)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(fx.mountpaths);
    for (unsigned i = 0; i < n && set->count > 0; i++) /* it may have been taken out just now */
        mountpath_failed(set->each[0], E_IO);
}

static void await_test(void)
{
    _cleanup_mountpath_set_ const struct mountpath_set *set = mountpaths_current(fx.mountpaths);
    const struct mountpath *mp = set->each[0];
    uint64_t until = clock_ms() + 20000;
    unsigned long long before = atomic_load(&mp->next_tmp); /* a test takes a name */
    for (unsigned i = 0; atomic_load(&mp->next_tmp) == before && clock_ms() < until; i++) {
        if (i % 500 == 0)
            errors(1); /* one that comes while a test is running may be that test's */
        usleep(1000);
    }
    assert_int_not_equal(atomic_load(&mp->next_tmp), before);
}

static void test_a_disk_that_works_stays(void **state)
{
    (void)state;
    start(1000);
    for (int i = 0; i < 5; i++)
        await_test();
    usleep(50000);
    assert_false(is_out());
    assert_int_equal(health_test(fixture_mp(0), 1000001, NULL), 0);
    assert_no_leftovers();
}

static void test_a_disk_that_fails_its_test_is_taken_out(void **state)
{
    (void)state;
    put_text("a", "1");
    put_text("b", "2");
    put_text("c", "3");
    put_text("d", "4");
    start(1000);
    fault_configure("disk.sync=EIO", NULL);
    errors(1);
    assert_true(is_out_soon());
    fault_configure(NULL, NULL);
    uint64_t until = clock_ms() + 20000;
    while (!is_counted() && clock_ms() < until)
        usleep(1000);
    assert_true(is_counted()); /* what it held is known */
    assert_true(why_has("sync"));
    for (char name[2] = "a"; *name <= 'd'; (*name)++) {
        struct object o;
        int code = object_head(fx.store, BUCKET, name, &o, NULL);
        assert_true(code == 0 || code == E_MOUNTPATH_DISABLED);
    }
}

static void test_too_many_errors_are_too_many(void **state)
{
    (void)state;
    start(10);
    errors(10);
    assert_true(is_out_soon());
    assert_true(why_has("10 I/O errors"));
}

static void test_a_disk_that_hangs_is_taken_out(void **state)
{
    (void)state;
    start_with(1000, 200);
    fault_configure("disk.sync=delay:1500", NULL);
    uint64_t until = clock_ms() + 20000;
    for (unsigned i = 0; !is_out() && clock_ms() < until; i++) {
        if (i % 2000 == 0)
            errors(1); /* again, where nobody looked while the last test hung */
        usleep(1000);
    }
    assert_true(is_out());
    assert_true(why_has("has not ended"));
}

static void test_full_is_not_bad(void **state)
{
    (void)state;
    start(1000);
    fault_configure("disk.write=ENOSPC", NULL);
    await_test();
    usleep(50000);
    assert_false(is_out());
}

static void test_damaged_objects_are_no_io_errors(void **state)
{
    (void)state;
    start(2);
    for (int i = 0; i < 10; i++)
        mountpath_failed(fixture_mp(0), E_CORRUPT);
    usleep(50000);
    assert_false(is_out());
}

/* As after rm -rf of a mountpath that is in use. */
static void test_a_directory_that_is_gone_is_taken_out(void **state)
{
    (void)state;
    char path[100];
    start(1000);
    snprintf(path, sizeof path, "%s/mp1/.dfc/tmp", fx.dir);
    assert_int_equal(rmdir(path), 0);
    atomic_store(&fixture_mp(0)->suspect, true);
    assert_true(is_out_soon());
    assert_true(why_has("test"));
}

/* What was taken out is closed, and can be enabled. */
static void test_it_can_come_back(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char path[100];
    start(5);
    errors(5);
    assert_true(is_out_soon());
    snprintf(path, sizeof path, "%s/mp1", fx.dir);
    assert_int_equal(mountpaths_enable(fx.mountpaths, path, &err), 0);
    assert_false(is_out());
}

#define health_test_of(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        health_test_of(test_a_disk_that_works_stays),
        health_test_of(test_a_disk_that_fails_its_test_is_taken_out),
        health_test_of(test_too_many_errors_are_too_many),
        health_test_of(test_a_disk_that_hangs_is_taken_out),
        health_test_of(test_full_is_not_bad),
        health_test_of(test_damaged_objects_are_no_io_errors),
        health_test_of(test_a_directory_that_is_gone_is_taken_out),
        health_test_of(test_it_can_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
