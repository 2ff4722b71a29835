#include "plog/segment.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/mem.h"

/* Is the object a segment, whole and sound? */
static int check(const char *bytes, size_t len, struct plog_footer *f)
{
    const uint8_t *at = (const uint8_t *)bytes;
    if (len < PLOG_FOOTER)
        return E_CORRUPT;
    int code = plog_footer_parse(at + len - PLOG_FOOTER, f, NULL);
    if (code == 0 && plog_footer_size(f) != len)
        code = E_CORRUPT;
    const uint8_t *index = at + f->name.bytes;
    if (code == 0)
        code = plog_index_check(f, index, NULL);
    for (uint64_t i = 0; code == 0 && i * PLOG_BLOCK < f->name.bytes; i++) {
        const uint64_t left = f->name.bytes - i * PLOG_BLOCK;
        if (!plog_index_block(f, index, i, at + i * PLOG_BLOCK,
                              left < PLOG_BLOCK ? left : PLOG_BLOCK))
            code = E_CORRUPT;
    }
    return code;
}

static void test_round_trip(void **state)
{
    (void)state;
    struct plog_segment s = {.end = 0};
    struct plog_segment_name name = {.epoch = 3, .writer = 4, .n = 5};
    struct plog_footer f;
    assert_true(plog_segment_empty(&s));
    plog_segment_write(&s, "hello", 5, 1000);
    plog_segment_cut(&s, 1002);
    plog_segment_write(&s, "x", 1, 10);
    plog_segment_seal(&s, &name);
    assert_true(name.end == 1005 && name.bytes == 6 && name.cuts);
    assert_int_equal(check(s.bytes.data, s.bytes.len, &f), 0);
    assert_int_equal(f.name.epoch, 3);
    assert_true(f.name.writer == 4 && f.name.end == 1005);
    assert_int_equal(f.records, 3);
    plog_segment_done(&s);
    assert_true(plog_segment_empty(&s));
}

static void test_cut_alone(void **state)
{
    (void)state;
    struct plog_segment s = {.end = 0};
    struct plog_segment_name name = {.epoch = 1};
    struct plog_footer f;
    plog_segment_cut(&s, 0);
    assert_false(plog_segment_empty(&s));
    plog_segment_seal(&s, &name);
    assert_int_equal(check(s.bytes.data, s.bytes.len, &f), 0);
    assert_true(f.name.bytes == 0 && f.name.end == 0 && f.name.cuts);
    plog_segment_done(&s);
}

static void test_blocks(void **state)
{
    (void)state;
    const size_t size = 2 * PLOG_BLOCK + 7;
    char *data = xcalloc(1, size);
    struct plog_segment s = {.end = 0};
    struct plog_segment_name name = {.epoch = 1};
    struct plog_footer f;
    for (size_t i = 0; i < size; i++)
        data[i] = (char)((i * 31 >> 3) + (i >> 20));
    plog_segment_write(&s, data, size, 0);
    plog_segment_seal(&s, &name);
    assert_int_equal(check(s.bytes.data, s.bytes.len, &f), 0);
    const uint8_t *index = (uint8_t *)s.bytes.data + size;
    assert_true(plog_index_block(&f, index, 2, data + 2 * PLOG_BLOCK, 7));
    assert_false(plog_index_block(&f, index, 2, data + 2 * PLOG_BLOCK, 6));
    assert_false(plog_index_block(&f, index, 3, data, 0));
    assert_false(plog_index_block(&f, index, 1, data, PLOG_BLOCK));
    plog_segment_done(&s);
    free(data);
}

/* A change of any byte is found. */
static void test_damage(void **state)
{
    (void)state;
    struct plog_segment s = {.end = 0};
    struct plog_segment_name name = {.epoch = 1, .writer = 77};
    struct plog_footer f;
    for (uint64_t i = 0; i < 20; i++)
        plog_segment_write(&s, "abc", 3, i * i * 5);
    plog_segment_cut(&s, 100);
    plog_segment_seal(&s, &name);
    for (size_t i = 0; i < s.bytes.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            s.bytes.data[i] ^= (char)(1 << bit);
            assert_int_not_equal(check(s.bytes.data, s.bytes.len, &f), 0);
            s.bytes.data[i] ^= (char)(1 << bit);
        }
    }
    assert_int_not_equal(check(s.bytes.data, s.bytes.len - 1, &f), 0);
    assert_int_equal(check(s.bytes.data, s.bytes.len, &f), 0);
    plog_segment_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_cut_alone),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
