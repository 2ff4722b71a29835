#include "common/rights.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/cleanup.h"

static void test_names_are_read_back(void **state)
{
    (void)state;
    for (enum right r = RIGHT_ANY + 1; r < RIGHTS; r++) {
        enum right_scope scope = right_is_of_cluster(r) ? RIGHT_SCOPE_CLUSTER : RIGHT_SCOPE_BUCKET;
        assert_int_equal(right_parse(scope, right_name(r)), r);
        assert_true(right_meaning(r)[0] != '\0');
    }
}

static void test_scopes_are_apart(void **state)
{
    (void)state;
    assert_int_equal(right_parse(RIGHT_SCOPE_BUCKET, "admin"), RIGHT_ADMIN);
    assert_int_equal(right_parse(RIGHT_SCOPE_CLUSTER, "admin"), RIGHT_CLUSTER_ADMIN);
    assert_int_equal(right_parse(RIGHT_SCOPE_CLUSTER, "read"), RIGHT_UNSET);
    assert_int_equal(right_parse(RIGHT_SCOPE_BUCKET, "see"), RIGHT_UNSET);
    assert_int_equal(right_parse(RIGHT_SCOPE_CLUSTER, "none"), RIGHT_UNSET);
    assert_int_equal(right_parse(RIGHT_SCOPE_BUCKET, "Read"), RIGHT_UNSET);
}

static void test_the_names_of_a_scope(void **state)
{
    (void)state;
    _cleanup_free_ char *bucket = right_names(RIGHT_SCOPE_BUCKET);
    _cleanup_free_ char *cluster = right_names(RIGHT_SCOPE_CLUSTER);
    assert_string_equal(bucket, "list, read, write, delete, admin");
    assert_string_equal(cluster, "see, jobs, operate, users, create, admin");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_read_back),
        cmocka_unit_test(test_scopes_are_apart),
        cmocka_unit_test(test_the_names_of_a_scope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
