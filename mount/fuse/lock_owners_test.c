#include "mount/fuse/lock_owners.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void an_owner_is_told_once(void **state)
{
    (void)state;
    uint64_t owner = 0;
    struct lock_owners *o = lock_owners_new();
    for (uint64_t i = 0; i < 100; i++) {
        lock_owners_add(o, 1, i);
        lock_owners_add(o, 1, i);
        lock_owners_add(o, 2, i);
    }
    for (uint64_t i = 0; i < 100; i++) {
        if (i != 50)
            lock_owners_remove(o, 1, i);
    }
    lock_owners_remove(o, 1, 7); /* again */
    assert_true(lock_owners_take(o, 1, &owner));
    assert_int_equal(owner, 50);
    assert_false(lock_owners_take(o, 1, &owner));
    for (unsigned i = 0; i < 100; i++)
        assert_true(lock_owners_take(o, 2, &owner));
    assert_false(lock_owners_take(o, 2, &owner));
    lock_owners_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
