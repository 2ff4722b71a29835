#include "plog/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/rng.h"

static struct plog_cursor cursor_of(struct plog_encoder *e)
{
    plog_encode_flush(e);
    const uint8_t *bytes = (const uint8_t *)buf_str(&e->out);
    return (struct plog_cursor){.at = bytes, .end = bytes + e->out.len};
}

static void need_one(struct plog_encoder *e, struct plog_record *r)
{
    struct plog_cursor c = cursor_of(e);
    struct plog_record more;
    assert_int_equal(plog_cursor_next(&c, r, NULL), 1);
    assert_int_equal(plog_cursor_next(&c, &more, NULL), 0);
    assert_int_equal(e->records, 1);
}

static void test_strided_is_one_record(void **state)
{
    (void)state;
    _cleanup_(plog_encoder_done)
    struct plog_encoder e = {.records = 0};
    struct plog_record r;
    for (uint64_t i = 0; i < 400000; i++)
        plog_encode_write(&e, 47001 * (3 + 64 * i), 47001);
    need_one(&e, &r);
    assert_true(r.start == 47001 * 3 && r.length == 47001 && r.count == 400000);
    assert_true(r.stride == 47001 * 64 && !r.is_cut && r.physical == 0);
    assert_true(e.out.len < 20);
}

/* Blocks that are written by several calls each. */
static void test_strided_blocks_are_one_record(void **state)
{
    (void)state;
    _cleanup_(plog_encoder_done)
    struct plog_encoder e = {.records = 0};
    struct plog_record r;
    for (uint64_t i = 0; i < 100; i++) {
        for (uint64_t j = 0; j < 4; j++)
            plog_encode_write(&e, 1000 * i + 10 * j, 10);
    }
    need_one(&e, &r);
    assert_true(r.length == 40 && r.count == 100 && r.stride == 1000);
}

static void test_sequential_is_one_run(void **state)
{
    (void)state;
    _cleanup_(plog_encoder_done)
    struct plog_encoder e = {.records = 0};
    struct plog_record r;
    for (uint64_t i = 0; i < 1000; i++)
        plog_encode_write(&e, 7 + 10 * i, 10);
    need_one(&e, &r);
    assert_true(r.start == 7 && r.length == 10000 && r.count == 1 && r.stride == 0);
}

static void test_limits(void **state)
{
    (void)state;
    _cleanup_(plog_encoder_done)
    struct plog_encoder e = {.records = 0};
    struct plog_record r;
    plog_encode_write(&e, PLOG_OFFSET_MAX - 1, 1);
    plog_encode_write(&e, 0, 1);
    plog_encode_cut(&e, 0);
    plog_encode_write(&e, PLOG_OFFSET_MAX - 1, 1);
    plog_encode_cut(&e, PLOG_OFFSET_MAX);
    struct plog_cursor c = cursor_of(&e);
    const uint64_t starts[] = {PLOG_OFFSET_MAX - 1, 0, 0, PLOG_OFFSET_MAX - 1, PLOG_OFFSET_MAX};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(plog_cursor_next(&c, &r, NULL), 1);
        assert_true(r.start == starts[i]);
        assert_int_equal(r.is_cut, i == 2 || i == 4);
    }
    assert_int_equal(plog_cursor_next(&c, &r, NULL), 0);
}

/* The runs of the records are those that were written, one behind the other, in their order. */
static void test_random(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 1);
    for (int round = 0; round < 2000; round++) {
        _cleanup_(plog_encoder_done)
        struct plog_encoder e = {.records = 0};
        uint64_t starts[64], lengths[64];
        uint64_t at = rng_below(&rng, 50), step = 1 + rng_below(&rng, 20);
        for (int i = 0; i < 64; i++) {
            starts[i] = at;
            lengths[i] = 1 + (rng_below(&rng, 8) == 0 ? rng_below(&rng, 9) : step % 4);
            at = rng_below(&rng, 6) == 0 ? rng_below(&rng, 1000) : at + step;
            plog_encode_write(&e, starts[i], lengths[i]);
        }
        struct plog_cursor c = cursor_of(&e);
        struct plog_record r;
        uint64_t physical = 0, within = 0;
        int i = 0;
        while (plog_cursor_next(&c, &r, NULL) == 1) {
            assert_true(r.physical == physical);
            for (uint64_t k = 0; k < r.count; k++) {
                for (uint64_t b = 0; b < r.length; b++) { /* byte by byte */
                    assert_true(r.start + k * r.stride + b == starts[i] + within);
                    within = within + 1 < lengths[i] ? within + 1 : 0;
                    i += within == 0;
                }
            }
            physical += r.count * r.length;
        }
        assert_int_equal(i, 64);
    }
}

static int decode(const char *bytes, size_t len)
{
    struct plog_cursor c = {.at = (const uint8_t *)bytes, .end = (const uint8_t *)bytes + len};
    struct plog_record r;
    return plog_cursor_next(&c, &r, NULL);
}

static void test_refused(void **state)
{
    (void)state;
    assert_int_equal(decode("\x03\x00\x01", 3), E_CORRUPT);         /* kind */
    assert_int_equal(decode("\x00\x00\x00", 3), E_CORRUPT);         /* length 0 */
    assert_int_equal(decode("\x00\x00", 2), E_CORRUPT);             /* cut short */
    assert_int_equal(decode("\x00\x01\x01", 3), E_CORRUPT);         /* before 0 */
    assert_int_equal(decode("\x01\x00\x02\x02\x02", 5), E_CORRUPT); /* stride = length */
    assert_int_equal(decode("\x01\x00\x02\x03\x01", 5), E_CORRUPT); /* count 1 */
    assert_int_equal(decode("\x01\x00\x02\x03\x02", 5), 1);
    assert_int_equal(decode("\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11), E_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strided_is_one_record),
        cmocka_unit_test(test_strided_blocks_are_one_record),
        cmocka_unit_test(test_sequential_is_one_run),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
