/* The boot id by which a target asks for the first time. */
#include "target/disk/boot_id.h"

#include "target/testing/store_fixture.h"

static void restart(void)
{
    fixture_close();
    fixture_open();
}

static void assert_asks_as(const char *drawn, const char *expected)
{
    char boot[16];
    snprintf(boot, sizeof boot, "%s", drawn);
    boot_id_of(fx.mountpaths, boot);
    assert_string_equal(boot, expected);
}

static void spoil(const char *mountpath, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s/.dfc/docs/entry.json", fx.dir, mountpath);
    assert_int_equal(file_replace(path, text, strlen(text), 0640, NULL), 0);
}

static void test_all_runs_ask_by_the_first_ones_id(void **state)
{
    (void)state;
    assert_asks_as("first", "first");
    restart();
    assert_asks_as("second", "first");
    restart();
    assert_asks_as("third", "first");
}

static void test_who_has_a_state_forgets_it(void **state)
{
    (void)state;
    assert_asks_as("first", "first");
    boot_id_forget(fx.mountpaths);
    boot_id_forget(fx.mountpaths);
    restart();
    assert_asks_as("second", "second");
}

static void test_one_good_copy_is_enough(void **state)
{
    (void)state;
    assert_asks_as("first", "first");
    spoil("mp1", "{\"boot\": \"much-longer-than-any-boot-id\"}");
    restart();
    assert_asks_as("second", "first");
    spoil("mp1", "{");
    spoil("mp2", "{}");
    restart();
    assert_asks_as("third", "third");
}

static void test_full_disks_do_not_stop_it(void **state)
{
    (void)state;
    assert_int_equal(fault_configure("disk.write=ENOSPC", NULL), 0);
    assert_asks_as("first", "first");
    assert_asks_as("second", "second");
    assert_int_equal(fault_configure("", NULL), 0);
    assert_asks_as("third", "third");
}

#define entry_unit_test(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        entry_unit_test(test_all_runs_ask_by_the_first_ones_id),
        entry_unit_test(test_who_has_a_state_forgets_it),
        entry_unit_test(test_one_good_copy_is_enough),
        entry_unit_test(test_full_disks_do_not_stop_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
