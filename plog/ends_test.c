/* Ends of segments, read in one or two pieces. */
#include "plog/ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/mem.h"

struct object {
    struct buf bytes;
    unsigned calls;
    uint64_t cut;        /* bytes that a read of the end lacks */
    struct buf replaced; /* unless it is empty, what the second call finds */
};

static int tail(void *ctx, const char *segment, uint64_t len, struct buf *out, struct error *err)
{
    struct object *o = ctx;
    const struct buf *bytes = o->calls++ > 0 && o->replaced.len > 0 ? &o->replaced : &o->bytes;
    const uint64_t has = bytes->len - o->cut;
    const uint64_t n = len < has ? len : has;
    if (segment[0] == '\0')
        return error_set(err, E_NOT_FOUND, "it is gone");
    buf_append(out, bytes->data + bytes->len - n, n);
    return 0;
}

/* A segment of so many writes, none of which joins another one. */
static void make(struct object *o, char name[static PLOG_NAME_MAX], uint32_t writes)
{
    struct plog_segment s = {.bytes = BUF_INIT};
    struct plog_segment_name n = {.epoch = 3, .writer = 7, .n = 1};
    for (uint32_t i = 0; i < writes; i++)
        plog_segment_write(&s, "x", 1, (uint64_t)i * i * 3);
    plog_segment_seal(&s, &n);
    plog_name_segment(name, "0123456789abcdef0123456789abcdef", &n);
    *o = (struct object){.bytes = BUF_INIT};
    buf_append(&o->bytes, s.bytes.data, s.bytes.len);
    plog_segment_done(&s);
}

static void expect(uint32_t writes, unsigned calls)
{
    struct object o;
    char name[PLOG_NAME_MAX];
    _cleanup_plog_end_ struct plog_end end;
    _cleanup_plog_map_ struct plog_map *map = plog_map_new();
    make(&o, name, writes);
    assert_int_equal(plog_end_read(tail, NULL, &o, name, &end, NULL), 0);
    assert_int_equal(o.calls, calls);
    assert_int_equal(plog_end_add(&end, name, map, NULL), 0);
    assert_int_equal(plog_map_segments(map), 1);
    assert_int_equal(plog_map_size(map), (uint64_t)(writes - 1) * (writes - 1) * 3 + 1);
    buf_done(&o.bytes);
}

static void test_short_and_long(void **state)
{
    (void)state;
    expect(2, 1);
    expect(60000, 2);
}

static void test_damage(void **state)
{
    (void)state;
    struct object o;
    char name[PLOG_NAME_MAX];
    struct error err = ERROR_INIT;
    _cleanup_plog_end_ struct plog_end end;
    _cleanup_plog_map_ struct plog_map *map = plog_map_new();
    make(&o, name, 9);
    assert_int_equal(plog_end_read(tail, NULL, &o, name, &end, NULL), 0);
    struct plog_segment_name other = {.epoch = 3, .writer = 8, .n = 1};
    char other_name[PLOG_NAME_MAX];
    plog_name_segment(other_name, "0123456789abcdef0123456789abcdef", &other);
    assert_int_equal(plog_end_add(&end, other_name, map, &err), E_CORRUPT);
    assert_non_null(strstr(err.message, "another one's footer"));
    assert_int_equal(plog_end_add(&end, "no segment", map, NULL), E_CORRUPT);
    end.bytes.data[end.bytes.len - PLOG_FOOTER - 1] ^= 1; /* of the index */
    assert_int_equal(plog_end_add(&end, name, map, NULL), E_CORRUPT);
    plog_end_done(&end);

    o.cut = o.bytes.len - PLOG_FOOTER - 1; /* the object has lost its beginning */
    assert_int_equal(plog_end_read(tail, NULL, &o, name, &end, &err), E_CORRUPT);
    assert_non_null(strstr(err.message, name));
    plog_end_done(&end);
    o.cut = o.bytes.len - 1;
    assert_int_equal(plog_end_read(tail, NULL, &o, name, &end, NULL), E_CORRUPT);
    plog_end_done(&end);
    assert_int_equal(plog_end_read(tail, NULL, &o, "", &end, NULL), E_NOT_FOUND);
    buf_done(&o.bytes);
}

/* Another object between the two calls, with a longer index or a shorter one. */
static void test_replaced(void **state)
{
    (void)state;
    for (uint32_t writes = 50000; writes <= 70000; writes += 20000) {
        struct object o, other;
        char name[PLOG_NAME_MAX], other_name[PLOG_NAME_MAX];
        struct error err = ERROR_INIT;
        _cleanup_plog_end_ struct plog_end end;
        make(&o, name, 60000);
        make(&other, other_name, writes);
        o.replaced = other.bytes;
        assert_int_equal(plog_end_read(tail, NULL, &o, name, &end, &err), E_CORRUPT);
        assert_non_null(strstr(err.message, "has changed"));
        assert_int_equal(o.calls, 2);
        buf_done(&o.bytes);
        buf_done(&other.bytes);
    }
}

static int admit_few(void *ctx, const struct plog_footer *f, struct error *err)
{
    (void)ctx;
    return f->records <= 100 ? 0 : error_set(err, E_TOO_LARGE, "%u records", f->records);
}

/* A long index is not read before there is memory for it. */
static void test_admit(void **state)
{
    (void)state;
    struct object o;
    char name[PLOG_NAME_MAX];
    struct plog_end end;
    make(&o, name, 60000);
    assert_int_equal(plog_end_read(tail, admit_few, &o, name, &end, NULL), E_TOO_LARGE);
    assert_int_equal(o.calls, 1);
    plog_end_done(&end);
    buf_done(&o.bytes);
    make(&o, name, 90);
    assert_int_equal(plog_end_read(tail, admit_few, &o, name, &end, NULL), 0);
    plog_end_done(&end);
    buf_done(&o.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_and_long), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_replaced), cmocka_unit_test(test_admit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
