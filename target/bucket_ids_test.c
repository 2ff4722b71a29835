#include "target/bucket_ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_what_was_added_is_there_until_removed(void **state)
{
    (void)state;
    struct bucket_ids *s = bucket_ids_new();
    assert_false(bucket_ids_has(s, 0));
    for (uint64_t i = 0; i < 100; i++)
        bucket_ids_add(s, i * 37 % 100 * 2); /* every even number to 198, in disorder */
    bucket_ids_add(s, 42);
    for (uint64_t id = 0; id < 200; id++)
        assert_int_equal(bucket_ids_has(s, id), id % 2 == 0);
    bucket_ids_remove(s, 42);
    bucket_ids_remove(s, 43);
    bucket_ids_remove(s, UINT64_MAX);
    for (uint64_t id = 0; id < 200; id++)
        assert_int_equal(bucket_ids_has(s, id), id % 2 == 0 && id != 42);
    bucket_ids_add(s, UINT64_MAX);
    assert_true(bucket_ids_has(s, UINT64_MAX));
    bucket_ids_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_added_is_there_until_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
