#include "mount/volume/trees/access.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>

#include <cmocka.h>

static const uint32_t groups[] = {30, 31};
static const struct volume_caller root = {.uid = 0}, owner = {.uid = 1, .gid = 9},
                                  member = {.uid = 2, .gid = 20},
                                  second = {.uid = 2, .gid = 9, .groups = groups, .group_count = 2},
                                  other = {.uid = 3, .gid = 9};

static void test_classes(void **state)
{
    (void)state;
    const struct attr a = {.mode = S_IFREG | 0421, .uid = 1, .gid = 20};
    assert_true(access_may(&a, NULL, 7));
    assert_true(access_may(&a, &root, 7));
    assert_true(access_may(&a, &owner, ACCESS_READ));
    assert_false(access_may(&a, &owner, ACCESS_WRITE)); /* not by its group, nor as another one */
    assert_false(access_may(&a, &owner, ACCESS_SEARCH));
    assert_true(access_may(&a, &member, ACCESS_WRITE));
    assert_false(access_may(&a, &member, ACCESS_WRITE | ACCESS_SEARCH));
    assert_true(access_may(&a, &other, ACCESS_SEARCH));
    assert_false(access_may(&a, &other, ACCESS_READ));
    assert_true(access_may(&a, &other, 0));
    const struct attr b = {.mode = S_IFREG | 0070, .uid = 1, .gid = 31};
    assert_true(access_may(&b, &second, 7));
    assert_false(access_may(&b, &other, ACCESS_READ));
}

static void test_sticky(void **state)
{
    (void)state;
    const struct attr open = {.mode = S_IFDIR | 0777, .uid = 5};
    const struct attr sticky = {.mode = S_IFDIR | 01777, .uid = 2};
    const struct attr closed = {.mode = S_IFDIR | 0755, .uid = 5};
    const struct attr of_owner = {.mode = S_IFREG, .uid = 1};
    assert_true(access_may_remove(&open, &of_owner, &other));
    assert_false(access_may_remove(&closed, &of_owner, &owner));
    assert_true(access_may_remove(&closed, &of_owner, NULL));
    assert_true(access_may_remove(&sticky, &of_owner, &owner));
    assert_true(access_may_remove(&sticky, &of_owner, &member)); /* the directory's owner */
    assert_false(access_may_remove(&sticky, &of_owner, &other));
    assert_true(access_may_remove(&sticky, &of_owner, &root));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_sticky),
    };
    return cmocka_run_group_tests_name("mount_access", tests, NULL, NULL);
}
