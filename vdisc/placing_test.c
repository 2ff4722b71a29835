/* Contents get places: each once, and small ones side by side. */
#include "vdisc/placing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { FILES = 6 };

/* Sizes, and what all bytes of their SHA-256 are. */
static void fill(struct placing_file files[static FILES])
{
    static const struct {
        uint64_t size;
        uint8_t sha;
    } rows[FILES] = {{5, 9}, {PACKS_FILE_MAX + 1, 3}, {0, 7}, {5, 9}, {4096, 1}, {2049, 5}};
    memset(files, 0, FILES * sizeof *files);
    for (size_t i = 0; i < FILES; i++) {
        files[i].size = rows[i].size;
        memset(files[i].sha256, rows[i].sha, 32);
    }
}

static void assert_place(const struct placing_file *f, const char *key, uint64_t size,
                         uint64_t offset)
{
    assert_string_equal(f->part.bucket, "img");
    assert_string_equal(f->part.key, key);
    assert_int_equal(f->part.object_size, size);
    assert_int_equal(f->part.offset, offset);
}

static void test_each_content_is_an_object(void **state)
{
    (void)state;
    const struct placing_options options = {.bucket = "img"};
    struct placing_file files[FILES];
    size_t count;
    fill(files);
    _cleanup_(placing_freep)
    struct placing *c = placing_new(files, FILES, &options);
    const struct placing_object *o = placing_objects(c, &count);
    assert_int_equal(count, 5);
    assert_int_equal(o[0].files[0], 0);
    assert_int_equal(o[4].files[0], 5);
    assert_false(o[0].pack);
    placing_end(c);
    const char *nine =
        BURN_UNIQUE "/09/0909090909090909090909090909090909090909090909090909090909090909";
    assert_place(&files[0], nine, 5, 0);
    assert_place(&files[3], nine, 5, 0);
    assert_int_equal(files[2].part.object_size, 0);
}

static void test_small_ones_share_a_pack(void **state)
{
    (void)state;
    const struct placing_options options = {.bucket = "img", .pack = true};
    const struct checksum_value sum = {.type = CHECKSUM_SHA256, .bytes = {0xab}};
    struct placing_file files[FILES];
    size_t count;
    fill(files);
    _cleanup_(placing_freep)
    struct placing *c = placing_new(files, FILES, &options);
    struct placing_object *o = placing_objects(c, &count);
    assert_int_equal(count, 2);
    assert_true(!o[0].pack && o[0].files[0] == 1);
    assert_true(o[1].pack && o[1].count == 4 && o[1].key == NULL);
    assert_int_equal(o[1].size, 2048 + 2048 + 4096 + 4096);
    placing_name_pack(&o[1], &sum);
    placing_end(c);
    assert_place(&files[0], o[1].key, o[1].size, 0);
    assert_place(&files[2], o[1].key, o[1].size, 2048);
    assert_place(&files[3], o[1].key, o[1].size, 0);
    assert_place(&files[4], o[1].key, o[1].size, 4096);
    assert_place(&files[5], o[1].key, o[1].size, 8192);
    assert_int_equal(strncmp(o[1].key, BURN_PACKS "/ab/ab00", 18), 0);
    assert_true(checksum_equal(&files[5].part.object_checksum, &sum));
    assert_int_equal(files[1].part.object_checksum.type, CHECKSUM_NONE);
}

static void test_no_file(void **state)
{
    (void)state;
    const struct placing_options options = {.bucket = "img", .pack = true};
    struct placing_file none;
    size_t count;
    _cleanup_(placing_freep)
    struct placing *c = placing_new(&none, 0, &options);
    placing_objects(c, &count);
    assert_int_equal(count, 0);
    placing_end(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_content_is_an_object),
        cmocka_unit_test(test_small_ones_share_a_pack),
        cmocka_unit_test(test_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
