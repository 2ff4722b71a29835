#include "target/cold/scan_stamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cluster/documents/state.h"

static struct bucket buckets[] = {
    {.name = "a", .id = 1},
    {.name = "b", .id = 2, .props.backend = "s3://data"},
    {.name = "c", .id = 3, .props.backend = "http://h/"},
    {.name = "d", .id = 4, .props.backend = "gs://data"},
};

static struct cluster_state some_state(void)
{
    return (struct cluster_state){.term = 1,
                                  .version = 10,
                                  .smap.placed = 5,
                                  .bmd = {.version = 7, .count = 4, .buckets = buckets}};
}

static bool is_same(const struct cluster_state *a, const struct cluster_state *b)
{
    struct scan_stamp before = scan_stamp_of(a, 3, true), after = scan_stamp_of(b, 3, true);
    return scan_stamp_is_same(&before, &after);
}

static void other_buckets_and_other_properties_do_not_matter(void **unused)
{
    (void)unused;
    struct cluster_state before = some_state(), after = some_state();
    struct bucket others[] = {
        {.name = "d", .id = 4, .props = {.backend = "gs://data", .copies = 1}},
        {.name = "e",
         .id = 2,
         .props = {.backend = "s3://data", .write_policy = WRITE_POLICY_BACK}},
        {.name = "f", .id = 9, .props.backend = "http://h/"},
    };
    after.version = 11;
    after.bmd = (struct bmd){.version = 8, .count = 3, .buckets = others};
    assert_true(is_same(&before, &after));
}

static void buckets_that_come_and_go_do(void **unused)
{
    (void)unused;
    struct cluster_state before = some_state(), after = some_state();
    after.bmd.count = 3; /* without "d" */
    assert_false(is_same(&before, &after));
    assert_false(is_same(&after, &before));
    after = some_state();
    after.term = 2; /* it may have gone, and have come back */
    assert_false(is_same(&before, &after));
}

static void owners_and_mountpaths_do(void **unused)
{
    (void)unused;
    struct cluster_state before = some_state(), after = some_state();
    after.smap.placed = 6;
    assert_false(is_same(&before, &after));
    struct scan_stamp first = scan_stamp_of(&before, 3, true),
                      roster = scan_stamp_of(&before, 4, true),
                      settled = scan_stamp_of(&before, 3, false);
    assert_false(scan_stamp_is_same(&first, &roster));
    assert_false(scan_stamp_is_same(&first, &settled));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_buckets_and_other_properties_do_not_matter),
        cmocka_unit_test(buckets_that_come_and_go_do),
        cmocka_unit_test(owners_and_mountpaths_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
