/* A header comes back as it was, and nothing else is taken for one. */
#include "ec/header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct ec_header sample(unsigned index)
{
    struct ec_header h = {.layout = {.k = 4, .m = 2, .unit = 65536, .length = 1234567},
                          .index = index,
                          .term = 7,
                          .map = 8,
                          .counter = 9,
                          .tag = 0x0123456789abcdef,
                          .object = {.type = CHECKSUM_XXH3},
                          .slice_sum = 42};
    memset(h.object.bytes, 0x5a, checksum_size(CHECKSUM_XXH3));
    return h;
}

static void test_there_and_back(void **state)
{
    (void)state;
    unsigned char bytes[EC_HEADER_BYTES], again[EC_HEADER_BYTES];
    const struct ec_header h = sample(5);
    struct ec_header back;
    ec_header_encode(&h, bytes);
    assert_int_equal(ec_header_decode(bytes, sizeof bytes, &back, NULL), 0);
    ec_header_encode(&back, again);
    assert_memory_equal(bytes, again, sizeof bytes);
    assert_int_equal(back.index, 5);
    assert_int_equal(back.layout.length, 1234567);
    assert_int_equal(back.slice_sum, 42);
}

static void test_any_flipped_bit_is_seen(void **state)
{
    (void)state;
    unsigned char bytes[EC_HEADER_BYTES];
    const struct ec_header h = sample(0);
    struct ec_header back;
    ec_header_encode(&h, bytes);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        int code = ec_header_decode(bytes, sizeof bytes, &back, NULL);
        assert_true(code == E_CORRUPT || (code == E_UNSUPPORTED && bit < 8));
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (size_t len = 0; len < sizeof bytes; len++)
        assert_int_equal(ec_header_decode(bytes, len, &back, NULL), E_CORRUPT);
}

static void test_what_its_check_does_not_make_right(void **state)
{
    (void)state;
    unsigned char bytes[EC_HEADER_BYTES];
    struct ec_header back;
    struct ec_header wrong[] = {sample(6), sample(0), sample(0), sample(0)};
    wrong[1].layout.k = 0;
    wrong[2].layout.unit = 65;
    wrong[3].object.type = CHECKSUM_NONE; /* its bytes are not written */
    for (size_t i = 0; i < 3; i++) {
        ec_header_encode(&wrong[i], bytes);
        assert_int_equal(ec_header_decode(bytes, sizeof bytes, &back, NULL), E_CORRUPT);
    }
    ec_header_encode(&wrong[3], bytes);
    assert_int_equal(ec_header_decode(bytes, sizeof bytes, &back, NULL), 0);
}

static void assert_mismatch(const struct ec_header *a, const struct ec_header *b, const char *word)
{
    struct error err = ERROR_INIT;
    assert_int_equal(ec_header_match(a, b, &err), E_CORRUPT);
    if (strstr(err.message, word) == NULL)
        fail_msg("'%s' is not in: %s", word, err.message);
}

static void test_what_does_not_go_together(void **state)
{
    (void)state;
    const struct ec_header a = sample(0), b = sample(1);
    assert_int_equal(ec_header_match(&a, &b, NULL), 0);
    assert_mismatch(&a, &a, "twice");
#define CHANGED(field, word)                \
    do {                                    \
        struct ec_header other = sample(1); \
        other.field++;                      \
        assert_mismatch(&a, &other, word);  \
    } while (0)
    CHANGED(layout.k, "data slices");
    CHANGED(layout.m, "parity");
    CHANGED(layout.unit, "unit");
    CHANGED(layout.length, "length");
    CHANGED(term, "term");
    CHANGED(map, "map");
    CHANGED(counter, "counter");
    CHANGED(tag, "tag");
    CHANGED(object.bytes[0], "checksums");
#undef CHANGED
}

static void test_short_files(void **state)
{
    (void)state;
    const struct ec_header h = sample(0);
    uint64_t right = ec_layout_slice_bytes(&h.layout);
    assert_int_equal(ec_header_check_file(&h, right, NULL), 0);
    assert_int_equal(ec_header_check_file(&h, right - 1, NULL), E_CORRUPT);
    assert_int_equal(ec_header_check_file(&h, 0, NULL), E_CORRUPT);
}

static void test_tags(void **state)
{
    (void)state;
    uint64_t tag = ec_tag(1, "a", 2, 3, 4);
    assert_int_equal(tag, ec_tag(1, "a", 2, 3, 4));
    assert_int_not_equal(tag, ec_tag(2, "a", 2, 3, 4));
    assert_int_not_equal(tag, ec_tag(1, "b", 2, 3, 4));
    assert_int_not_equal(tag, ec_tag(1, "a", 2, 3, 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_any_flipped_bit_is_seen),
        cmocka_unit_test(test_what_its_check_does_not_make_right),
        cmocka_unit_test(test_what_does_not_go_together),
        cmocka_unit_test(test_short_files),
        cmocka_unit_test(test_tags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
