#include "cache/ghosts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void names_are_known_as_long_as_told(void **state)
{
    (void)state;
    struct ghosts g;
    ghosts_init(&g);
    assert_int_equal(ghosts_age(&g, 5, 10), GHOSTS_UNKNOWN);
    for (uint64_t name = 0; name < 100000; name++)
        ghosts_add(&g, name * 0x9e3779b97f4a7c15ull, 1000);
    for (uint64_t age = 0; age < 1000; age++)
        assert_int_equal(ghosts_age(&g, (99999 - age) * 0x9e3779b97f4a7c15ull, 1000), age);
    assert_int_equal(ghosts_age(&g, (99999 - 1000) * 0x9e3779b97f4a7c15ull, 1000), GHOSTS_UNKNOWN);
    assert_true(g.slot_count <= 4096); /* the forgotten ones take no room */
    ghosts_done(&g);
}

static void a_name_that_returned_is_no_ghost(void **state)
{
    (void)state;
    struct ghosts g;
    ghosts_init(&g);
    ghosts_add(&g, 0, 10);
    ghosts_add(&g, 7, 10);
    assert_int_equal(ghosts_age(&g, 0, 10), 1);
    ghosts_remove(&g, 0);
    ghosts_remove(&g, 12345); /* never was one */
    assert_int_equal(ghosts_age(&g, 0, 10), GHOSTS_UNKNOWN);
    assert_int_equal(ghosts_age(&g, 7, 10), 0);
    ghosts_add(&g, 0, 10);
    assert_int_equal(ghosts_age(&g, 0, 10), 0);
    ghosts_done(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_known_as_long_as_told),
        cmocka_unit_test(a_name_that_returned_is_no_ghost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
