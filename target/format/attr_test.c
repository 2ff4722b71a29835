#include "target/format/attr.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "common/rng.h"

static const char meta_pairs[] = "owner\0alice\0empty\0\0"; /* the literal adds one more NUL */

static struct attr full_attr(void)
{
    return (struct attr){
        .flags = ATTR_DURABLE | ATTR_OVER_TOMBSTONE | ATTR_PENDING,
        .name = "a/ü.tar",
        .size = 1234567890123,
        .version = {.term = 1, .map = 300, .counter = UINT64_MAX},
        .checksum = {.type = CHECKSUM_XXH3, .bytes = {1, 2, 3, 4, 5, 6, 7, 255}},
        .modified_ms = 1795230245123,
        .content_type = "text/plain",
        .job = "srt-0123456789",
        .meta = meta_pairs,
        .meta_len = sizeof meta_pairs - 1,
        .slices = "1:2:1:65536:1000:00000000000000ff:none:",
    };
}

static void assert_text_equal(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        assert_ptr_equal(a, b);
    else
        assert_string_equal(a, b);
}

static void assert_attr_equal(const struct attr *a, const struct attr *b)
{
    assert_int_equal(a->flags, b->flags);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->size, b->size);
    assert_int_equal(version_compare(&a->version, &b->version), 0);
    assert_true(checksum_equal(&a->checksum, &b->checksum));
    assert_int_equal(a->modified_ms, b->modified_ms);
    assert_text_equal(a->content_type, b->content_type);
    assert_text_equal(a->job, b->job);
    assert_text_equal(a->slices, b->slices);
    assert_int_equal(a->meta_len, b->meta_len);
    if (a->meta_len > 0)
        assert_memory_equal(a->meta, b->meta, a->meta_len);
}

static void assert_round_trip(const struct attr *a)
{
    unsigned char raw[ATTR_ENCODED_MAX];
    size_t len;
    struct attr back;
    assert_int_equal(attr_encode(a, raw, &len, NULL), 0);
    assert_int_equal(attr_decode(raw, len, &back, NULL), 0);
    assert_attr_equal(a, &back);
}

static void test_everything_round_trips(void **state)
{
    (void)state;
    struct attr a = full_attr();
    assert_round_trip(&a);
    assert_round_trip(&(struct attr){.name = "x", .flags = ATTR_TOMBSTONE});
    assert_round_trip(&(struct attr){.name = "x", .content_type = ""});
}

static void test_ordinary_attribute_fits_in_the_inode(void **state)
{
    (void)state;
    struct attr a = {.flags = ATTR_DURABLE,
                     .name = "train/shard-000123-000456.tar",
                     .size = 1u << 30,
                     .version = {.term = 1, .map = 100, .counter = 1},
                     .checksum = {.type = CHECKSUM_XXH3},
                     .modified_ms = 1795230245123};
    unsigned char raw[ATTR_ENCODED_MAX];
    size_t len;
    assert_int_equal(attr_encode(&a, raw, &len, NULL), 0);
    assert_true(len <= 68);
}

static void test_largest_attribute_fits_in_a_block(void **state)
{
    (void)state;
    static char name[ATTR_NAME_MAX + 1], type[ATTR_CONTENT_TYPE_MAX + 1], job[ATTR_JOB_MAX + 1];
    static char meta[ATTR_META_MAX];
    memset(name, 'n', sizeof name - 1);
    memset(type, 't', sizeof type - 1);
    memset(job, 'j', sizeof job - 1);
    memset(meta, 'm', sizeof meta);
    meta[1000] = meta[sizeof meta - 1] = '\0';
    struct attr a = {.name = name,
                     .size = UINT64_MAX,
                     .version = {UINT64_MAX, UINT64_MAX, UINT64_MAX},
                     .checksum = {.type = CHECKSUM_SHA256},
                     .modified_ms = INT64_MAX,
                     .content_type = type,
                     .job = job,
                     .meta = meta,
                     .meta_len = sizeof meta};
    assert_round_trip(&a);
    assert_true(ATTR_ENCODED_MAX <= 4096 - 32 - 20 - 4); /* ext4's headers in the block */
}

static void assert_refused(struct attr a, int code, const char *words)
{
    unsigned char raw[ATTR_ENCODED_MAX];
    size_t len;
    struct error err = ERROR_INIT;
    assert_int_equal(attr_encode(&a, raw, &len, &err), code);
    assert_non_null(strstr(err.message, words));
}

static void test_each_limit_is_refused_by_name(void **state)
{
    (void)state;
    static char longest[4096];
    memset(longest, 'x', sizeof longest - 1);
    struct attr ok = {.name = "x"};

    struct attr a = ok;
    a.name = longest + sizeof longest - 1 - ATTR_NAME_MAX - 1;
    assert_refused(a, E_NAME, "1 to 1024 bytes");
    a.name = "";
    assert_refused(a, E_NAME, "1 to 1024 bytes");
    a = ok;
    a.content_type = longest + sizeof longest - 1 - ATTR_CONTENT_TYPE_MAX - 1;
    assert_refused(a, E_INVALID, "content type");
    a = ok;
    a.job = "";
    assert_refused(a, E_INVALID, "job id");
    a = ok;
    a.modified_ms = -1;
    assert_refused(a, E_INVALID, "1970");
    a = ok;
    a.meta = longest;
    a.meta_len = ATTR_META_MAX + 1;
    assert_refused(a, E_INVALID, "user metadata");
    a.meta = "name\0value";
    a.meta_len = 10; /* without the last NUL */
    assert_refused(a, E_INVALID, "within a pair");
    a.meta = "\0value";
    a.meta_len = 7;
    assert_refused(a, E_INVALID, "name is empty");
}

static void test_every_damaged_byte_is_found(void **state)
{
    (void)state;
    struct attr a = full_attr(), back;
    unsigned char raw[ATTR_ENCODED_MAX];
    size_t len;
    assert_int_equal(attr_encode(&a, raw, &len, NULL), 0);
    for (size_t i = 0; i < len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            raw[i] ^= (unsigned char)(1u << bit);
            int code = attr_decode(raw, len, &back, NULL);
            assert_true(i == 0 ? code == E_UNSUPPORTED : code == E_CORRUPT);
            raw[i] ^= (unsigned char)(1u << bit);
        }
    }
    for (size_t cut = 0; cut < len; cut++)
        assert_int_equal(attr_decode(raw, cut, &back, NULL), E_CORRUPT);
}

static void test_pairs_are_walked_in_order(void **state)
{
    (void)state;
    struct attr a = full_attr();
    size_t pos = 0;
    const char *name, *value;
    assert_true(attr_meta_next(&a, &pos, &name, &value));
    assert_string_equal(name, "owner");
    assert_string_equal(value, "alice");
    assert_true(attr_meta_next(&a, &pos, &name, &value));
    assert_string_equal(name, "empty");
    assert_string_equal(value, "");
    assert_false(attr_meta_next(&a, &pos, &name, &value));
    struct attr none = {.name = "x"};
    pos = 0;
    assert_false(attr_meta_next(&none, &pos, &name, &value));
}

static uint64_t random_wide(struct rng *r)
{
    return rng_next(r) >> rng_below(r, 64);
}

static const char *random_text(struct rng *r, char *out, size_t max)
{
    size_t len = 1 + rng_below(r, max);
    for (size_t i = 0; i < len; i++)
        out[i] = (char)(1 + rng_below(r, 255));
    out[len] = '\0';
    return out;
}

static void test_random_attributes_round_trip(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 7);
    for (int i = 0; i < 3000; i++) {
        char name[ATTR_NAME_MAX + 1], type[ATTR_CONTENT_TYPE_MAX + 1], job[ATTR_JOB_MAX + 1];
        struct attr a = {
            .flags = (unsigned)rng_below(&r, 8),
            .name = random_text(&r, name, ATTR_NAME_MAX),
            .size = random_wide(&r),
            .version = {random_wide(&r), random_wide(&r), random_wide(&r)},
            .modified_ms = (int64_t)(random_wide(&r) >> 1),
            .checksum = {.type = (enum checksum_type)rng_below(&r, CHECKSUM_TYPES)},
        };
        for (size_t b = 0; b < checksum_size(a.checksum.type); b++)
            a.checksum.bytes[b] = (unsigned char)rng_next(&r);
        if (rng_below(&r, 2))
            a.content_type = random_text(&r, type, ATTR_CONTENT_TYPE_MAX);
        if (rng_below(&r, 2))
            a.job = random_text(&r, job, ATTR_JOB_MAX);
        if (rng_below(&r, 2)) {
            a.meta = meta_pairs;
            a.meta_len = sizeof meta_pairs - 1;
        }
        assert_round_trip(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_round_trips),
        cmocka_unit_test(test_ordinary_attribute_fits_in_the_inode),
        cmocka_unit_test(test_largest_attribute_fits_in_a_block),
        cmocka_unit_test(test_each_limit_is_refused_by_name),
        cmocka_unit_test(test_every_damaged_byte_is_found),
        cmocka_unit_test(test_pairs_are_walked_in_order),
        cmocka_unit_test(test_random_attributes_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
