/* A segment that is cut or damaged anywhere counts up to its last whole push. */
#include "ring/segment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"

enum { FIRST = 1000 };

struct told {
    const struct buf *bytes;
    uint64_t count, last;
};

static int read_bytes(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    (void)err;
    const struct told *t = ctx;
    assert_true(offset + len <= t->bytes->len);
    memcpy(out, t->bytes->data + offset, len);
    return 0;
}

static void note(void *ctx, const struct frame *f, uint64_t offset)
{
    struct told *t = ctx;
    struct frame there;
    assert_int_equal(frame_peek(t->bytes->data + offset, &there, NULL), 0);
    assert_int_equal(f->ordinal, FIRST + t->count++);
    t->last = f->ordinal;
}

static uint64_t scan(const struct buf *bytes, uint64_t size, bool payloads, uint64_t *count)
{
    struct told t = {.bytes = bytes};
    uint64_t end;
    const struct segment_scan s = {.read = read_bytes,
                                   .frame = note,
                                   .ctx = &t,
                                   .size = size,
                                   .first = FIRST,
                                   .payloads = payloads};
    assert_int_equal(segment_scan(&s, &end, NULL), 0);
    *count = t.count;
    return end;
}

/* Pushes of 1, 2, 3, … samples; ends[i]: where the i-th ends. */
static void make(struct buf *out, size_t pushes, uint64_t *ends)
{
    uint64_t ordinal = FIRST;
    for (size_t i = 0; i < pushes; i++) {
        for (size_t j = 0; j <= i; j++) {
            const size_t at = out->len;
            const struct frame_part part = {
                .name = "k", .dtype = "bytes", .data = &ordinal, .len = sizeof ordinal};
            struct frame f;
            assert_int_equal(frame_make(&part, 1, out, NULL), 0);
            assert_int_equal(frame_peek(out->data + at, &f, NULL), 0);
            f.ordinal = ordinal++;
            f.flags = j == i ? FRAME_ENDS : 0;
            frame_stamp(out->data + at, &f);
        }
        ends[i] = out->len;
    }
}

static void test_cut_at_every_byte(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT;
    uint64_t ends[4], count;
    make(&b, 4, ends);
    for (uint64_t size = 0; size <= b.len; size++) {
        uint64_t whole = 0, samples = 0;
        for (size_t i = 0; i < 4 && ends[i] <= size; i++) {
            whole = ends[i];
            samples += i + 1;
        }
        assert_int_equal(scan(&b, size, size % 2 == 0, &count), whole);
        assert_int_equal(count, samples);
    }
}

static void test_damage_ends_it(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT;
    uint64_t ends[3], count;
    make(&b, 3, ends);
    for (uint64_t at = 0; at < b.len; at++) {
        const uint64_t whole = at < ends[0] ? 0 : at < ends[1] ? ends[0] : ends[1];
        b.data[at] = (char)~b.data[at];
        assert_int_equal(scan(&b, b.len, true, &count), whole);
        b.data[at] = (char)~b.data[at];
    }
}

static void test_zeros_behind_the_end(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT;
    uint64_t ends[2], count;
    make(&b, 2, ends);
    for (int i = 0; i < 5000; i++)
        buf_putc(&b, '\0');
    assert_int_equal(scan(&b, b.len, false, &count), ends[1]);
    assert_int_equal(count, 3);
}

static void test_names(void **state)
{
    (void)state;
    char name[SEGMENT_NAME_MAX];
    uint64_t first;
    segment_name(0x1234, name);
    assert_string_equal(name, "0000000000001234.seg");
    assert_true(segment_name_parse(name, &first));
    assert_int_equal(first, 0x1234);
    assert_false(segment_name_parse("000000000000123g.seg", &first));
    assert_false(segment_name_parse("0000000000001234.sef", &first));
    assert_false(segment_name_parse("1234.seg", &first));
    assert_false(segment_name_parse("", &first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_damage_ends_it),
        cmocka_unit_test(test_zeros_behind_the_end),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
