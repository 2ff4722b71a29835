/* Maps against a plain array: writes and cuts of random writers, each in the order of its key. */
#include "plog/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/mem.h"
#include "common/rng.h"

enum { FILE_MAX = 600, SEGMENTS = 12, OPS = 30 };

struct fixture { /* segments by their keys, and the file that they make */
    struct plog_segment segments[SEGMENTS];
    struct plog_segment_name names[SEGMENTS];
    size_t count;
    uint8_t file[FILE_MAX];
    uint64_t size;
};

static void write_some(struct fixture *x, struct plog_segment *s, struct rng *rng)
{
    uint8_t data[40];
    const uint64_t length = 1 + rng_below(rng, sizeof data);
    const uint64_t offset = rng_below(rng, FILE_MAX - length + 1);
    for (uint64_t i = 0; i < length; i++)
        data[i] = (uint8_t)(1 + rng_below(rng, 255));
    plog_segment_write(s, data, length, offset);
    memcpy(x->file + offset, data, length);
    if (offset + length > x->size)
        x->size = offset + length;
}

/* Equal writes at equal distances. */
static void write_strided(struct fixture *x, struct plog_segment *s, struct rng *rng)
{
    const uint64_t length = 1 + rng_below(rng, 8), stride = length + rng_below(rng, 20);
    for (uint64_t at = rng_below(rng, 100); at + length <= FILE_MAX; at += stride) {
        uint8_t data[8];
        memset(data, (int)(1 + rng_below(rng, 255)), sizeof data);
        plog_segment_write(s, data, length, at);
        memcpy(x->file + at, data, length);
        if (at + length > x->size)
            x->size = at + length;
    }
}

static void cut(struct fixture *x, struct plog_segment *s, struct rng *rng)
{
    const uint64_t length = rng_below(rng, FILE_MAX);
    plog_segment_cut(s, length);
    memset(x->file + length, 0, FILE_MAX - length);
    x->size = length;
}

static void make(struct fixture *x, struct rng *rng)
{
    struct plog_segment_name name = {.epoch = 1};
    *x = (struct fixture){.count = 1 + rng_below(rng, SEGMENTS)};
    for (size_t i = 0; i < x->count; i++) {
        struct plog_segment *s = &x->segments[i];
        const uint64_t ops = rng_below(rng, OPS);
        for (uint64_t k = 0; k < ops; k++) {
            const uint64_t which = rng_below(rng, 12);
            (which == 0 ? cut : which < 3 ? write_strided : write_some)(x, s, rng);
        }
        switch (rng_below(rng, 3)) { /* the next key */
        case 0:
            name = (struct plog_segment_name){.epoch = name.epoch + 1};
            break;
        case 1:
            name = (struct plog_segment_name){.epoch = name.epoch, .writer = name.writer + 5};
            break;
        default:
            name.n++;
        }
        x->names[i] = name;
        plog_segment_seal(s, &x->names[i]);
    }
}

static void fixture_done(struct fixture *x)
{
    for (size_t i = 0; i < x->count; i++)
        plog_segment_done(&x->segments[i]);
}

static void add(struct plog_map *m, const struct plog_segment *s)
{
    struct plog_footer f;
    const uint8_t *bytes = (const uint8_t *)s->bytes.data;
    assert_int_equal(plog_footer_parse(bytes + s->bytes.len - PLOG_FOOTER, &f, NULL), 0);
    assert_int_equal(plog_map_add(m, &f, bytes + f.name.bytes, NULL), 0);
}

static void shuffle(size_t *order, size_t count, struct rng *rng)
{
    for (size_t i = 0; i < count; i++) {
        const size_t other = rng_below(rng, i + 1);
        order[i] = order[other];
        order[other] = i;
    }
}

static const struct plog_segment *segment_of(const struct fixture *x, const struct plog_map *m,
                                             size_t i)
{
    char mine[PLOG_NAME_MAX], other[PLOG_NAME_MAX];
    plog_name_segment(mine, "", &plog_map_segment(m, i)->name);
    for (size_t k = 0; k < x->count; k++) {
        plog_name_segment(other, "", &x->names[k]);
        if (strcmp(mine, other) == 0)
            return &x->segments[k];
    }
    fail_msg("no segment %s", mine);
    return NULL;
}

static void check_range(const struct fixture *x, struct plog_map *m, uint64_t from, uint64_t to)
{
    uint8_t seen[FILE_MAX] = {0};
    struct plog_extents e;
    uint64_t last = from;
    assert_true(plog_map_paint(m, from, to, &e) == to);
    for (size_t i = 0; i < e.count; i++) {
        const struct plog_extent *x1 = &e.items[i];
        assert_true(x1->start >= last && x1->length > 0);
        last = x1->start + x1->length;
        assert_true(last <= to);
        memcpy(seen + x1->start, segment_of(x, m, x1->segment)->bytes.data + x1->physical,
               x1->length);
    }
    plog_extents_done(&e);
    if (from < to)
        assert_memory_equal(seen + from, x->file + from, to - from);
}

static void check_map(const struct fixture *x, struct plog_map *m, struct rng *rng)
{
    assert_true(plog_map_size(m) == x->size);
    check_range(x, m, 0, FILE_MAX);
    for (int i = 0; i < 10; i++)
        check_range(x, m, rng_below(rng, FILE_MAX), rng_below(rng, FILE_MAX + 1));
}

/* In any order of arrival, in one go or by way of merged indexes, the map is the same. */
static void test_random(void **state)
{
    (void)state;
    struct rng rng;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct fixture x;
        size_t order[SEGMENTS];
        rng_seed(&rng, seed);
        make(&x, &rng);
        shuffle(order, x.count, &rng);
        _cleanup_plog_map_ struct plog_map *m = plog_map_new();
        for (size_t i = 0; i < x.count; i++) {
            add(m, &x.segments[order[i]]);
            if (rng_below(&rng, 4) == 0)
                (void)plog_map_size(m);
            if (rng_below(&rng, 4) == 0) {
                struct buf merged = BUF_INIT;
                plog_map_print(m, &merged);
                plog_map_free(m);
                m = plog_map_new();
                assert_int_equal(plog_map_parse(m, (const uint8_t *)merged.data, merged.len, NULL),
                                 0);
                buf_done(&merged);
            }
            add(m, &x.segments[order[rng_below(&rng, i + 1)]]); /* once more: nothing happens */
        }
        assert_int_equal(plog_map_segments(m), x.count);
        check_map(&x, m, &rng);
        fixture_done(&x);
    }
}

static void test_empty(void **state)
{
    (void)state;
    _cleanup_plog_map_ struct plog_map *m = plog_map_new();
    struct plog_extents e;
    struct buf merged = BUF_INIT;
    assert_true(plog_map_size(m) == 0 && plog_map_bytes(m) == 0 && plog_map_epoch(m) == 0);
    plog_map_paint(m, 0, UINT64_MAX, &e);
    assert_int_equal(e.count, 0);
    plog_map_print(m, &merged);
    assert_int_equal(plog_map_parse(m, (const uint8_t *)merged.data, merged.len, NULL), 0);
    merged.data[9]++;
    assert_int_equal(plog_map_parse(m, (const uint8_t *)merged.data, merged.len, NULL),
                     E_UNSUPPORTED);
    assert_int_equal(plog_map_parse(m, (const uint8_t *)merged.data, 8, NULL), E_CORRUPT);
    buf_done(&merged);
}

static void test_damage(void **state)
{
    (void)state;
    struct fixture x;
    struct rng rng;
    struct buf merged = BUF_INIT;
    rng_seed(&rng, 5);
    make(&x, &rng);
    struct plog_map *m = plog_map_new();
    for (size_t i = 0; i < x.count; i++)
        add(m, &x.segments[i]);
    plog_map_print(m, &merged);
    plog_map_free(m);
    for (size_t i = 0; i < merged.len; i++) {
        m = plog_map_new();
        merged.data[i] ^= 0x10;
        assert_int_not_equal(plog_map_parse(m, (const uint8_t *)merged.data, merged.len, NULL), 0);
        merged.data[i] ^= 0x10;
        plog_map_free(m);
    }
    buf_done(&merged);
    fixture_done(&x);
}

/* A window far into a strided file of many writers: neighbours become extents, none is lost. */
static void test_far_window(void **state)
{
    (void)state;
    enum { WRITERS = 64, LENGTH = 47001 };
    struct plog_map *m = plog_map_new();
    struct plog_extents e;
    char *data = xcalloc(1, LENGTH);
    for (uint64_t w = 0; w < WRITERS; w++) {
        struct plog_segment s = {.end = 0};
        struct plog_segment_name name = {.epoch = 1, .writer = w};
        for (uint64_t i = 0; i < 20; i++)
            plog_segment_write(&s, data, LENGTH, LENGTH * (w + WRITERS * i));
        plog_segment_seal(&s, &name);
        assert_int_equal(s.index.records, 1);
        add(m, &s);
        plog_segment_done(&s);
    }
    const uint64_t from = LENGTH * (uint64_t)(WRITERS * 15) + 5;
    plog_map_paint(m, from, from + (uint64_t)10 * LENGTH, &e);
    assert_int_equal(e.count, 11);
    assert_true(e.items[0].start == from && e.items[0].physical == (uint64_t)15 * LENGTH + 5);
    plog_extents_done(&e);
    assert_true(plog_map_size(m) == (uint64_t)LENGTH * WRITERS * 20);
    uint64_t at;
    assert_true(plog_map_next(m, from, &at) && at == from);
    assert_false(plog_map_next(m, plog_map_size(m), &at));
    plog_map_free(m);
    free(data);
}

/* Patterns of few bytes that have more runs than fit: the range is painted in parts. */
static void test_too_many_runs(void **state)
{
    (void)state;
    enum { SEGMENTS_OF_RUNS = 40, RUNS = 16384 };
    struct plog_map *m = plog_map_new();
    uint64_t at = 1, parts = 0, bytes = 0;
    for (uint64_t w = 0; w < SEGMENTS_OF_RUNS; w++) {
        struct plog_segment s = {.end = 0};
        struct plog_segment_name name = {.epoch = 1, .writer = w};
        for (uint64_t i = 0; i < RUNS; i++)
            plog_segment_write(&s, "x", 1, w % 2 + 2 * i);
        plog_segment_seal(&s, &name);
        assert_int_equal(s.index.records, 1);
        add(m, &s);
        plog_segment_done(&s);
    }
    for (uint64_t end; at < 2 * RUNS; at = end, parts++) {
        struct plog_extents e;
        end = plog_map_paint(m, at, 2 * RUNS, &e);
        assert_true(end > at && e.count == end - at);
        bytes += e.count;
        assert_true((end - at) * SEGMENTS_OF_RUNS / 2 <= PLOG_RUNS_MAX + SEGMENTS_OF_RUNS);
        assert_int_equal(e.items[0].segment, SEGMENTS_OF_RUNS - 2 + at % 2);
        plog_extents_done(&e);
    }
    assert_int_equal(bytes, 2 * RUNS - 1);
    assert_true(parts > 1);
    plog_map_free(m);
}

/* A range that is rewritten without end: its runs are as many as its records, and it is painted in
 * one step. */
static void test_rewritten(void **state)
{
    (void)state;
    enum { LENGTH = 1000, REWRITES = PLOG_RUNS_MAX + 1000 };
    struct plog_map *m = plog_map_new();
    struct plog_segment s = {.end = 0};
    struct plog_segment_name name = {.epoch = 1};
    struct plog_extents e;
    char data[LENGTH] = {0};
    plog_segment_write(&s, data, LENGTH, 0);
    for (uint64_t i = 0; i < REWRITES; i++)
        plog_segment_write(&s, "x", 1, 10);
    plog_segment_seal(&s, &name);
    assert_int_equal(s.index.records, 1 + REWRITES);
    add(m, &s);
    assert_true(plog_map_paint(m, 0, LENGTH, &e) == LENGTH);
    assert_int_equal(e.count, 3);
    assert_true(e.items[1].start == 10 && e.items[1].physical == LENGTH + REWRITES - 1);
    plog_extents_done(&e);
    plog_segment_done(&s);
    plog_map_free(m);
}

/* A limit counts a piece for each record, of which an index needs few bytes. */
static void test_memory(void **state)
{
    (void)state;
    struct plog_map *m = plog_map_new();
    struct plog_segment s = {.end = 0};
    struct plog_segment_name name = {.epoch = 1};
    struct plog_footer f;
    struct error err = ERROR_INIT;
    for (uint64_t i = 0; i < 1000; i++)
        plog_segment_write(&s, "x", 1, i * i * 3);
    plog_segment_seal(&s, &name);
    const uint8_t *bytes = (const uint8_t *)s.bytes.data;
    assert_int_equal(plog_footer_parse(bytes + s.bytes.len - PLOG_FOOTER, &f, NULL), 0);
    assert_true(f.records >= 500);
    assert_true(plog_footer_memory(&f) > f.records * sizeof(struct plog_record) + f.index_bytes);
    plog_map_limit(m, plog_footer_memory(&f) - 1, "take a larger machine");
    assert_int_equal(plog_map_add(m, &f, bytes + f.name.bytes, &err), E_TOO_LARGE);
    assert_non_null(strstr(err.message, "bytes of memory: take a larger machine"));
    assert_true(plog_map_segments(m) == 0 && plog_map_memory(m) == 0);
    plog_map_limit(m, plog_footer_memory(&f), NULL);
    assert_int_equal(plog_map_add(m, &f, bytes + f.name.bytes, NULL), 0);
    assert_int_equal(plog_map_add(m, &f, bytes + f.name.bytes, NULL), 0); /* the map has it */
    assert_true(plog_map_memory(m) == plog_footer_memory(&f));
    f.name.n++;
    assert_int_equal(plog_map_add(m, &f, bytes + f.name.bytes, NULL), E_TOO_LARGE);
    plog_segment_done(&s);
    plog_map_free(m);
}

static void test_next(void **state)
{
    (void)state;
    struct plog_map *m = plog_map_new();
    struct plog_segment s = {.end = 0};
    struct plog_segment_name name = {.epoch = 1};
    uint64_t at;
    for (uint64_t i = 0; i < 10; i++)
        plog_segment_write(&s, "abc", 3, 1000 + i * 1000); /* 1000, 2000, … 10000 */
    plog_segment_write(&s, "abc", 3, 5500);
    plog_segment_seal(&s, &name);
    add(m, &s);
    const uint64_t pairs[][2] = {{0, 1000},    {1002, 1002}, {1003, 2000}, {5003, 5500},
                                 {5501, 5501}, {5503, 6000}, {9999, 10000}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_true(plog_map_next(m, pairs[i][0], &at));
        assert_true(at == pairs[i][1]);
    }
    assert_false(plog_map_next(m, 10003, &at));
    plog_segment_done(&s);
    plog_map_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random), cmocka_unit_test(test_empty),
        cmocka_unit_test(test_damage), cmocka_unit_test(test_far_window),
        cmocka_unit_test(test_next),   cmocka_unit_test(test_too_many_runs),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_rewritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
