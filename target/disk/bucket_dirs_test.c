#include "target/disk/bucket_dirs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "target/format/object_path.h"

static void test_buckets_are_there_until_removed(void **state)
{
    (void)state;
    struct bucket_dirs *s = bucket_dirs_new();
    assert_false(bucket_dirs_has_bucket(s, 0));
    for (uint64_t i = 0; i < 100; i++)
        bucket_dirs_add(s, i * 37 % 100 * 2, 7); /* every even number to 198, in disorder */
    bucket_dirs_add(s, 42, 7);
    for (uint64_t id = 0; id < 200; id++)
        assert_int_equal(bucket_dirs_has_bucket(s, id), id % 2 == 0);
    bucket_dirs_remove(s, 42);
    bucket_dirs_remove(s, 43);
    bucket_dirs_remove(s, UINT64_MAX);
    for (uint64_t id = 0; id < 200; id++)
        assert_int_equal(bucket_dirs_has(s, id, 7), id % 2 == 0 && id != 42);
    bucket_dirs_add(s, UINT64_MAX, 0);
    assert_true(bucket_dirs_has(s, UINT64_MAX, 0));
    bucket_dirs_free(s);
}

static void test_directories_count_one_by_one(void **state)
{
    (void)state;
    struct bucket_dirs *s = bucket_dirs_new();
    for (unsigned dir = 0; dir < OBJECT_FANS; dir += 3)
        bucket_dirs_add(s, 5, dir);
    bucket_dirs_add(s, 6, 1);
    for (unsigned dir = 0; dir < OBJECT_FANS; dir++)
        assert_int_equal(bucket_dirs_has(s, 5, dir), dir % 3 == 0);
    bucket_dirs_forget(s, 5, 255);
    bucket_dirs_forget(s, 5, 64);
    bucket_dirs_forget(s, 7, 0);
    for (unsigned dir = 0; dir < OBJECT_FANS; dir++)
        assert_int_equal(bucket_dirs_has(s, 5, dir), dir % 3 == 0 && dir != 255);
    bucket_dirs_forget(s, 6, 1);
    assert_false(bucket_dirs_has(s, 6, 1));
    assert_true(bucket_dirs_has_bucket(s, 6));
    assert_false(bucket_dirs_has_bucket(s, 7));
    bucket_dirs_remove(s, 5); /* with all */
    bucket_dirs_add(s, 5, 1);
    for (unsigned dir = 0; dir < OBJECT_FANS; dir++)
        assert_int_equal(bucket_dirs_has(s, 5, dir), dir == 1);
    bucket_dirs_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buckets_are_there_until_removed),
        cmocka_unit_test(test_directories_count_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
