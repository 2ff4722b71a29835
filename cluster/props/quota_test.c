#include "cluster/props/quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_amount(struct quota_amount a, uint64_t objects, uint64_t bytes)
{
    assert_int_equal(a.objects, objects);
    assert_int_equal(a.bytes, bytes);
}

static void judgements(void **state)
{
    (void)state;
    static const struct {
        uint64_t quota_objects, quota_bytes;
        struct quota_amount used, growth;
        enum quota_verdict verdict;
    } rows[] = {
        {0, 0, {9, 900}, {1, 100}, QUOTA_FITS},
        {10, 1000, {9, 900}, {1, 100}, QUOTA_FITS}, /* to the last byte and object */
        {10, 1000, {9, 900}, {1, 101}, QUOTA_BYTES_USED},
        {10, 1000, {10, 900}, {1, 1}, QUOTA_OBJECTS_USED},
        {10, 1000, {10, 900}, {0, 1}, QUOTA_FITS}, /* an object that grows is no new one */
        {0, 1000, {5000, 900}, {1, 1}, QUOTA_FITS},
        {10, 0, {9, UINT64_MAX}, {1, UINT64_MAX}, QUOTA_FITS},
        {10, 1000, {50, 5000}, {0, 0}, QUOTA_FITS}, /* beyond both: what does not grow */
        {0, 1000, {9, 5000}, {1, 0}, QUOTA_FITS},   /* an empty object */
        {0, 1000, {0, 900}, {1, UINT64_MAX}, QUOTA_BYTES_USED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bucket_props p = BUCKET_PROPS_DEFAULT;
        p.quota_objects = rows[i].quota_objects;
        p.quota_bytes = rows[i].quota_bytes;
        assert_int_equal(quota_judge(&p, rows[i].used, rows[i].growth), rows[i].verdict);
    }
}

static void a_write_grows_by_what_it_adds(void **state)
{
    (void)state;
    assert_amount(quota_growth(100, false, 0), 1, 100);
    assert_amount(quota_growth(100, true, 60), 0, 40);
    assert_amount(quota_growth(60, true, 100), 0, 0);
    assert_amount(quota_growth(0, false, 0), 1, 0);
}

static void amounts_saturate(void **state)
{
    (void)state;
    const struct quota_amount most = {1, UINT64_MAX}, few = {3, 5};
    assert_amount(quota_plus(most, few), 4, UINT64_MAX);
    assert_amount(quota_minus(few, most), 2, 0);
}

static void the_fuller_bound_counts(void **state)
{
    (void)state;
    static const struct {
        struct quota_amount used;
        enum quota_use use;
        const char *text;
    } rows[] = {
        {{0, 0}, QUOTA_FREE, "0 of 10 objects, 0 B of 1000 B"},
        {{8, 899}, QUOTA_FREE, "8 of 10 objects, 899 B of 1000 B"},
        {{8, 900}, QUOTA_NEAR, "8 of 10 objects, 900 B of 1000 B"},
        {{9, 0}, QUOTA_NEAR, "9 of 10 objects, 0 B of 1000 B"},
        {{10, 0}, QUOTA_OVER, "10 of 10 objects, 0 B of 1000 B"},
        {{1, 1000}, QUOTA_OVER, "1 of 10 objects, 1000 B of 1000 B"},
    };
    struct bucket_props p = BUCKET_PROPS_DEFAULT;
    p.quota_objects = 10;
    p.quota_bytes = 1000;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        _cleanup_(buf_done)
        struct buf text = BUF_INIT;
        assert_int_equal(quota_use(&p, rows[i].used), rows[i].use);
        quota_put_use(&p, rows[i].used, &text);
        assert_string_equal(buf_str(&text), rows[i].text);
    }
    p.quota_objects = 0;
    assert_int_equal(quota_use(&p, (struct quota_amount){UINT64_MAX, 0}), QUOTA_FREE);
    assert_string_equal(quota_use_name(QUOTA_NEAR), "near");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judgements),
        cmocka_unit_test(a_write_grows_by_what_it_adds),
        cmocka_unit_test(amounts_saturate),
        cmocka_unit_test(the_fuller_bound_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
