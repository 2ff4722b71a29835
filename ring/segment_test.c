/* A segment that is cut anywhere counts up to its last whole push; damage takes what it is in. */
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
    uint64_t count, next, broken;
};

static int read_bytes(void *ctx, void *out, size_t len, uint64_t offset, struct error *err)
{
    (void)err;
    const struct told *t = ctx;
    assert_true(offset + len <= t->bytes->len);
    memcpy(out, t->bytes->data + offset, len);
    return 0;
}

static void note(void *ctx, const struct frame *f, uint64_t offset, bool is_of_whole)
{
    struct told *t = ctx;
    struct frame there;
    assert_int_equal(frame_peek(t->bytes->data + offset, &there, NULL), 0);
    assert_int_equal(f->ordinal, there.ordinal);
    assert_true(f->ordinal >= t->next);
    t->next = f->ordinal + 1;
    t->count++;
    t->broken += !is_of_whole;
}

static struct told scan_as(const struct buf *bytes, const struct segment_scan *how, uint64_t *end)
{
    struct told t = {.bytes = bytes, .next = FIRST};
    struct segment_scan s = *how;
    s.read = read_bytes;
    s.frame = note;
    s.ctx = &t;
    s.first = FIRST;
    assert_int_equal(segment_scan(&s, end, NULL), 0);
    return t;
}

static uint64_t scan(const struct buf *bytes, uint64_t size, bool payloads, uint64_t *count)
{
    uint64_t end;
    const struct segment_scan s = {.size = size, .payloads = payloads};
    const struct told t = scan_as(bytes, &s, &end);
    assert_int_equal(t.next, FIRST + t.count);
    assert_int_equal(t.broken, 0);
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

/* Each byte in turn of four pushes: its sample alone is lost.  Two cannot be told from a crash:
 * damage of the last push, and of the first bytes of the sample before it. */
static void test_damage_takes_its_sample(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT;
    uint64_t ends[4], end;
    make(&b, 4, ends);
    const uint64_t last = ends[2] - (ends[2] - ends[1]) / 3; /* sample before the last push */
    const struct segment_scan s = {.size = b.len, .payloads = true};
    for (uint64_t at = 0; at < b.len; at++) {
        const bool hides_end = at >= last && at < last + 32;
        b.data[at] = (char)~b.data[at];
        const struct told t = scan_as(&b, &s, &end);
        assert_int_equal(end, hides_end ? ends[1] : at < ends[2] ? ends[3] : ends[2]);
        assert_int_equal(t.count, hides_end ? 3 : at < ends[2] ? 9 : 6);
        assert_true(t.broken <= 4);
        b.data[at] = (char)~b.data[at];
    }
}

static uint64_t begin_of_push(uint64_t sample)
{
    uint64_t begin = 0;
    for (uint64_t size = 1; begin + size <= sample; size++)
        begin += size;
    return begin;
}

/* As a lost block leaves it.  The last push has samples 10 to 14. */
static void test_zeros_in_the_middle(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT, whole = BUF_INIT;
    uint64_t ends[5], end;
    make(&whole, 5, ends);
    const uint64_t size = whole.len / 15; /* of a sample */
    for (uint64_t from = 0; from < 10; from++) {
        for (uint64_t to = from + 1; to <= 10; to++) {
            b.len = 0;
            buf_append(&b, whole.data, whole.len);
            memset(b.data + from * size + size / 2, 0, (to - from) * size - size / 2);
            const struct segment_scan s = {.size = b.len, .payloads = true};
            const bool hides_end = to == 10 && from < 9;
            assert_int_equal(scan_as(&b, &s, &end).count,
                             hides_end ? begin_of_push(from) : 15 - (to - from));
        }
    }
}

static void test_a_segment_that_another_follows(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT;
    uint64_t ends[3], end;
    make(&b, 3, ends);
    const uint64_t middle = ends[1] + (ends[2] - ends[1]) / 3; /* the second of three samples */
    b.data[middle] = (char)~b.data[middle];
    const struct segment_scan s = {.size = b.len, .is_followed = true};
    assert_int_equal(scan_as(&b, &s, &end).count, 5);
    assert_int_equal(end, ends[1]);
}

/* Samples that have frames as their bytes do not pass for others. */
static void test_frames_in_a_sample(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf b = BUF_INIT, inner = BUF_INIT;
    uint64_t ends[3], end, ordinal = FIRST;
    make(&inner, 3, ends);
    for (int i = 0; i < 3; i++) {
        const size_t at = b.len;
        const struct frame_part part = {
            .name = "k", .dtype = "bytes", .data = inner.data, .len = inner.len};
        struct frame f;
        assert_int_equal(frame_make(&part, 1, &b, NULL), 0);
        assert_int_equal(frame_peek(b.data + at, &f, NULL), 0);
        f.ordinal = ordinal++;
        f.flags = FRAME_ENDS;
        frame_stamp(b.data + at, &f);
    }
    b.data[b.len / 2] = (char)~b.data[b.len / 2]; /* in the payload of the second */
    const struct segment_scan s = {.size = b.len, .payloads = true};
    const struct told t = scan_as(&b, &s, &end);
    assert_int_equal(t.count, 2);
    assert_int_equal(t.next, FIRST + 3);
    assert_int_equal(end, b.len);
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
        cmocka_unit_test(test_damage_takes_its_sample),
        cmocka_unit_test(test_zeros_in_the_middle),
        cmocka_unit_test(test_a_segment_that_another_follows),
        cmocka_unit_test(test_frames_in_a_sample),
        cmocka_unit_test(test_zeros_behind_the_end),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
