#include "api/ctl/sync/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define FILE_AT(bytes, time)                                                                       \
    {                                                                                              \
        .size = (bytes), .modified_ms = (time), .checksum_type = "", .checksum = "", .local = true \
    }
#define OBJECT(bytes, time, type, sum)                                                     \
    {                                                                                      \
        .size = (bytes), .modified_ms = (time), .checksum_type = (type), .checksum = (sum) \
    }

static void verdicts(void **state)
{
    (void)state;
    static const struct {
        struct sync_entry from, to;
        enum sync_verdict plain, quick;
    } rows[] = {
        /* files to objects */
        {FILE_AT(1, 5), OBJECT(2, 9, "xxh3", "a"), SYNC_DIFFERS, SYNC_DIFFERS},
        {FILE_AT(1, 5), OBJECT(1, 9, "xxh3", "a"), SYNC_COMPARE, SYNC_SAME},
        {FILE_AT(1, 5), OBJECT(1, 5, "xxh3", "a"), SYNC_COMPARE, SYNC_SAME},
        {FILE_AT(1, 5), OBJECT(1, 4, "xxh3", "a"), SYNC_COMPARE, SYNC_COMPARE},
        {FILE_AT(1, 5), OBJECT(1, 9, "", ""), SYNC_SAME, SYNC_SAME},
        {FILE_AT(1, 5), OBJECT(1, 4, "", ""), SYNC_DIFFERS, SYNC_DIFFERS},
        {FILE_AT(1, 5), OBJECT(1, 4, "later", "a"), SYNC_DIFFERS, SYNC_DIFFERS},
        /* objects to files */
        {OBJECT(1, 5, "md5", "a"), FILE_AT(2, 5), SYNC_DIFFERS, SYNC_DIFFERS},
        {OBJECT(1, 5, "md5", "a"), FILE_AT(1, 5), SYNC_COMPARE, SYNC_SAME},
        {OBJECT(1, 5, "md5", "a"), FILE_AT(1, 9), SYNC_COMPARE, SYNC_COMPARE},
        {OBJECT(1, 5, "none", ""), FILE_AT(1, 9), SYNC_DIFFERS, SYNC_DIFFERS},
        {OBJECT(1, 5, "", ""), FILE_AT(1, 5), SYNC_SAME, SYNC_SAME},
        /* objects to objects */
        {OBJECT(1, 5, "xxh3", "a"), OBJECT(1, 1, "xxh3", "a"), SYNC_SAME, SYNC_SAME},
        {OBJECT(1, 5, "xxh3", "a"), OBJECT(1, 9, "xxh3", "b"), SYNC_DIFFERS, SYNC_DIFFERS},
        {OBJECT(1, 5, "xxh3", "a"), OBJECT(1, 9, "md5", "b"), SYNC_SAME, SYNC_SAME},
        {OBJECT(1, 5, "xxh3", "a"), OBJECT(1, 4, "md5", "b"), SYNC_DIFFERS, SYNC_DIFFERS},
        {OBJECT(1, 5, "", ""), OBJECT(2, 9, "", ""), SYNC_DIFFERS, SYNC_DIFFERS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(sync_compare(&rows[i].from, &rows[i].to, false), rows[i].plain);
        assert_int_equal(sync_compare(&rows[i].from, &rows[i].to, true), rows[i].quick);
    }
}

static void links_are_replaced(void **state)
{
    (void)state;
    const struct sync_entry from = OBJECT(1, 5, "md5", "a");
    struct sync_entry to = FILE_AT(1, 5);
    to.link = true;
    assert_int_equal(sync_compare(&from, &to, true), SYNC_DIFFERS);
}

static void parts(void **state)
{
    (void)state;
    assert_true(sync_is_unfinished(".dfc-part-0123456789abcdef"));
    assert_true(sync_is_unfinished("a/b/.dfc-part-0123456789abcdef.note"));
    assert_false(sync_is_unfinished("a/.dfc-part-x/b"));
    assert_false(sync_is_unfinished("a"));
    assert_true(sync_is_unfinished(".dfc-0123456xyz"));
    assert_true(sync_is_unfinished("a/b/.dfc-0123456789"));
    assert_false(sync_is_unfinished(".dfc-0123456789/b"));
    assert_false(sync_is_unfinished(".dfc-01234567890")); /* eleven */
    assert_false(sync_is_unfinished(".dfc-012345678"));
    assert_false(sync_is_unfinished(".dfc-012345678A"));
    assert_false(sync_is_unfinished(".dfc-cluster"));
    assert_false(sync_is_unfinished("x.dfc-0123456789"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts),
        cmocka_unit_test(links_are_replaced),
        cmocka_unit_test(parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
