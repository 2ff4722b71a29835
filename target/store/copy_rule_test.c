#include "target/store/copy_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "target/format/attr.h"

static const struct copy_rule rule = {.size = 3,
                                      .checksum = {.type = CHECKSUM_CRC32C, .bytes = {1, 2, 3, 4}},
                                      .term = 5,
                                      .version = 7};

static int check(struct attr current)
{
    struct error err = ERROR_INIT;
    struct copy_rule r = rule;
    current.name = "a";
    return copy_rule_check(&r, &current, &err);
}

static void test_a_free_name(void **state)
{
    (void)state;
    struct copy_rule r = rule;
    struct error err = ERROR_INIT;
    assert_int_equal(copy_rule_check(&r, NULL, &err), 0);
}

static void test_the_same_bytes(void **state)
{
    (void)state;
    struct attr a = {.size = 3, .checksum = rule.checksum, .version = {5, 6, 1}};
    assert_int_equal(check(a), E_NOT_MODIFIED);
    a.version.map = 100;
    assert_int_equal(check(a), E_NOT_MODIFIED);
    a.version.map = 6;
    a.size = 4;
    assert_int_equal(check(a), 0);
    a.size = 3;
    a.checksum.bytes[0]++;
    assert_int_equal(check(a), 0);
    a.checksum = rule.checksum;
    a.checksum.type = CHECKSUM_MD5;
    assert_int_equal(check(a), 0);
}

static void test_what_is_there_stays(void **state)
{
    (void)state;
    struct copy_rule r = rule;
    struct error err = ERROR_INIT;
    struct attr a = {.name = "a", .size = 3, .checksum = rule.checksum, .version = {5, 6, 1}};
    r.write_once = true;
    assert_int_equal(copy_rule_check(&r, NULL, &err), 0);
    assert_int_equal(copy_rule_check(&r, &a, &err), E_NOT_MODIFIED);
    a.size = 4;
    assert_int_equal(copy_rule_check(&r, &a, &err), E_WRITE_ONCE);
    a.version.map = 100;
    assert_int_equal(copy_rule_check(&r, &a, &err), E_PRECONDITION);
}

static void test_the_same_bytes_in_slices(void **state)
{
    (void)state;
    const char *const same = "1:2:1:65536:3:00000000000000ff:crc32c:01020304";
    const char *const longer = "1:2:1:65536:4:00000000000000ff:crc32c:01020304";
    assert_int_equal(check((struct attr){.slices = same, .version = {5, 6, 1}}), E_NOT_MODIFIED);
    assert_int_equal(check((struct attr){.slices = longer, .version = {5, 6, 1}}), 0);
    assert_int_equal(check((struct attr){.slices = "damaged", .version = {5, 6, 1}}), 0);
}

static void test_no_checksum_is_never_the_same(void **state)
{
    (void)state;
    struct copy_rule r = rule;
    struct error err = ERROR_INIT;
    r.checksum.type = CHECKSUM_NONE;
    const struct attr a = {.name = "a", .size = 3, .version = {5, 6, 1}};
    assert_int_equal(copy_rule_check(&r, &a, &err), 0);
}

static void test_what_came_after_the_job(void **state)
{
    (void)state;
    assert_int_equal(check((struct attr){.size = 9, .version = {5, 7, 3}}), 0);
    assert_int_equal(check((struct attr){.size = 9, .version = {5, 8, 1}}), E_PRECONDITION);
    assert_int_equal(check((struct attr){.size = 9, .version = {6, 1, 1}}), E_PRECONDITION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_free_name),
        cmocka_unit_test(test_the_same_bytes),
        cmocka_unit_test(test_what_is_there_stays),
        cmocka_unit_test(test_the_same_bytes_in_slices),
        cmocka_unit_test(test_no_checksum_is_never_the_same),
        cmocka_unit_test(test_what_came_after_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
