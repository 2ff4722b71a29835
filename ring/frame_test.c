/* A frame comes back as it was made, and nothing else is taken for one. */
#include "ring/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"

static const uint64_t shape[] = {2, 3};

static void make(struct buf *out)
{
    static const float data[6] = {1, 2, 3, 4, 5, 6};
    const struct frame_part parts[] = {
        {.name = "data", .dtype = "<f4", .dims = 2, .shape = shape, .data = data, .len = 24},
        {.name = "label", .dtype = "bytes", .data = "cat", .len = 3},
        {.name = "empty",
         .dtype = "|u1",
         .dims = 1,
         .shape = (uint64_t[]){0},
         .data = "",
         .len = 0},
    };
    assert_int_equal(frame_make(parts, 3, out, NULL), 0);
}

static void test_there_and_back(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT;
    struct frame f;
    struct frame_kind k;
    uint64_t count;
    make(&b);
    assert_int_equal(frame_peek(b.data, &f, NULL), 0);
    assert_int_equal(f.total, b.len);
    assert_int_equal(f.kinds, 3);
    assert_int_equal(frame_check_head(b.data, &f, NULL), 0);
    frame_kind(b.data, 0, &k);
    assert_int_equal(k.dims, 2);
    assert_int_equal(k.shape[1], 3);
    assert_int_equal(k.offset % FRAME_ALIGN, 0);
    assert_int_equal(k.length, 24);
    assert_memory_equal(k.dtype, "<f4", 3);
    frame_kind(b.data, 1, &k);
    assert_memory_equal(k.name, "label", 5);
    assert_memory_equal(b.data + k.offset, "cat", 3);
    frame_kind(b.data, 2, &k);
    assert_int_equal(k.length, 0);
    assert_int_equal(frame_check_push(b.data, b.len, &count, NULL), 0);
    assert_int_equal(count, 1);
}

static void test_a_stamp_stays(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT;
    struct frame f, again;
    make(&b);
    assert_int_equal(frame_peek(b.data, &f, NULL), 0);
    f.ordinal = 77;
    f.producer = 0x123456789abcdef0;
    f.sequence = 5;
    f.flags = FRAME_ENDS;
    frame_stamp(b.data, &f);
    assert_int_equal(frame_peek(b.data, &again, NULL), 0);
    assert_int_equal(again.ordinal, 77);
    assert_true(again.producer == f.producer);
    assert_int_equal(again.sequence, 5);
    assert_int_equal(again.flags, FRAME_ENDS);
    assert_true(again.payload_sum == f.payload_sum);
    assert_int_equal(frame_check_head(b.data, &again, NULL), 0);
}

static void test_any_flipped_bit_is_seen(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT;
    uint64_t count;
    make(&b);
    for (size_t bit = 0; bit < 8 * b.len; bit++) {
        b.data[bit / 8] = (char)(b.data[bit / 8] ^ (1 << bit % 8));
        int code = frame_check_push(b.data, b.len, &count, NULL);
        assert_true(code == E_FRAME || code == E_CHECKSUM);
        b.data[bit / 8] = (char)(b.data[bit / 8] ^ (1 << bit % 8));
    }
    for (size_t len = 0; len < b.len; len++)
        assert_int_equal(frame_check_push(b.data, len, &count, NULL), E_FRAME);
    assert_int_equal(frame_check_push(b.data, b.len, &count, NULL), 0);
}

static void test_what_cannot_be_a_sample(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT;
    const struct frame_part one = {.name = "a", .dtype = "bytes", .data = "x", .len = 1};
    const struct frame_part twice[] = {one, one};
    struct frame_part wrong = one;
    assert_int_equal(frame_make(&one, 0, &b, NULL), E_FRAME);
    assert_int_equal(frame_make(twice, 2, &b, NULL), E_FRAME);
    wrong.name = "a/b";
    assert_int_equal(frame_make(&wrong, 1, &b, NULL), E_FRAME);
    wrong.name = "";
    assert_int_equal(frame_make(&wrong, 1, &b, NULL), E_FRAME);
    wrong = one;
    wrong.dtype = "";
    assert_int_equal(frame_make(&wrong, 1, &b, NULL), E_FRAME);
    wrong = one;
    wrong.dims = FRAME_DIMS_MAX + 1;
    assert_int_equal(frame_make(&wrong, 1, &b, NULL), E_FRAME);
}

static void test_a_push_of_several(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT;
    uint64_t count;
    for (int i = 0; i < 5; i++)
        make(&b);
    assert_int_equal(frame_check_push(b.data, b.len, &count, NULL), 0);
    assert_int_equal(count, 5);
    b.data[b.len - 1] = 1; /* the padding counts, too */
    struct error err;
    assert_int_equal(frame_check_push(b.data, b.len, &count, &err), E_CHECKSUM);
    assert_non_null(strstr(err.message, "sample 4 of the push"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_a_stamp_stays),
        cmocka_unit_test(test_any_flipped_bit_is_seen),
        cmocka_unit_test(test_what_cannot_be_a_sample),
        cmocka_unit_test(test_a_push_of_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
