/* Which names are shards that a larger folder left. */
#include "api/ctl/archive/old_shards.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_names_of_shards(void **state)
{
    (void)state;
    static const struct old_shards o = {.stem = "t/d-", .extension = ".tar"};
    static const struct {
        const char *name;
        bool is_shard;
        uint64_t number;
    } cases[] = {
        {"t/d-000000.tar", true, 0},
        {"t/d-000017.tar", true, 17},
        {"t/d-999999.tar", true, 999999},
        {"t/d-1000000.tar", true, 1000000},
        {"t/d-9999999999999999999.tar", true, 9999999999999999999U},
        {"t/d-10000000000000000000.tar", false, 0}, /* twenty digits */
        {"t/d-0000017.tar", false, 0},
        {"t/d-00017.tar", false, 0},
        {"t/d-.tar", false, 0},
        {"t/d-000017.tar.gz", false, 0},
        {"t/d-000017", false, 0},
        {"t/d-000017.tar.bak", false, 0},
        {"t/d-+00017.tar", false, 0},
        {"t/dd-000017.tar", false, 0},
        {"t/d-", false, 0},
        {"", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t number = 0;
        assert_int_equal(old_shards_number(&o, cases[i].name, &number), cases[i].is_shard);
        assert_int_equal(number, cases[i].number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names_of_shards)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
