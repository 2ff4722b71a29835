#include "target/index/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define HEX "d41d8cd98f00b204e9800998ecf8427e"

static const char with_md5[] = "a\0b\0" ATTR_MD5 "\0" HEX, of_parts[] = ATTR_MD5 "\0" HEX "-10000";

static struct attr an_object(const char *meta, size_t len)
{
    return (struct attr){.name = "o",
                         .size = 300,
                         .version = {.term = 1, .map = 2, .counter = 3},
                         .modified_ms = 5,
                         .meta = meta,
                         .meta_len = len};
}

static void read_again(const struct index_record *rec, struct index_record *again,
                       unsigned char raw[static INDEX_RECORD_MAX])
{
    size_t len = index_record_encode(rec, raw);
    assert_int_equal(index_record_decode(raw, len, again, NULL), 0);
    assert_int_equal(again->size, rec->size);
    assert_int_equal(version_compare(&again->version, &rec->version), 0);
}

static void an_md5_is_kept(void **unused)
{
    (void)unused;
    struct attr a = an_object(with_md5, sizeof with_md5);
    unsigned char raw[INDEX_RECORD_MAX];
    char hex[2 * CHECKSUM_MAX + 1];
    struct index_record rec = index_record_of(&a), again;
    rec.job = "srt-1";
    read_again(&rec, &again, raw);
    assert_int_equal(again.md5.type, CHECKSUM_MD5);
    checksum_hex(&again.md5, hex);
    assert_string_equal(hex, HEX);
    assert_string_equal(again.job, "srt-1");
}

static void the_count_of_parts_is_kept(void **unused)
{
    (void)unused;
    struct attr a = an_object(of_parts, sizeof of_parts);
    unsigned char raw[INDEX_RECORD_MAX];
    char hex[2 * CHECKSUM_MAX + 1];
    struct index_record rec = index_record_of(&a), again;
    rec.job = "srt-1";
    read_again(&rec, &again, raw);
    assert_int_equal(again.md5.type, CHECKSUM_MD5);
    checksum_hex(&again.md5, hex);
    assert_string_equal(hex, HEX);
    assert_int_equal(again.md5_parts, 10000);
    assert_string_equal(again.job, "srt-1");
}

#define IS(text)                                       \
    {                                                  \
        ATTR_MD5 "\0" text, sizeof(ATTR_MD5 "\0" text) \
    }

static void what_is_no_md5_is_left_out(void **unused)
{
    (void)unused;
    static const struct {
        const char *meta;
        size_t len;
    } rows[] = {IS("x"),     IS(HEX "-"),   IS(HEX "-0"),
                IS(HEX "0"), IS(HEX "-1x"), IS(HEX "-9999999999")};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct attr a = an_object(rows[i].meta, rows[i].len);
        unsigned char raw[INDEX_RECORD_MAX];
        struct index_record rec = index_record_of(&a), again;
        read_again(&rec, &again, raw);
        assert_int_equal(again.md5.type, CHECKSUM_NONE);
        assert_int_equal(again.md5_parts, 0);
    }
}

static void records_of_earlier_builds_are_read(void **unused)
{
    (void)unused;
    static const unsigned char raw[] = {1, 2, 0, 0xac, 2, 1, 2, 3, 5, 'j', 0};
    struct index_record rec;
    assert_int_equal(index_record_decode(raw, sizeof raw, &rec, NULL), 0);
    assert_int_equal(rec.size, 300);
    assert_int_equal(rec.modified_ms, 5);
    assert_int_equal(rec.md5.type, CHECKSUM_NONE);
    assert_string_equal(rec.job, "j");
}

static void what_is_cut_is_refused(void **unused)
{
    (void)unused;
    struct attr a = an_object(with_md5, sizeof with_md5);
    unsigned char raw[INDEX_RECORD_MAX];
    struct index_record rec = index_record_of(&a), again;
    rec.md5_parts = 300;
    size_t whole = index_record_encode(&rec, raw);
    for (size_t len = 0; len < whole; len++)
        assert_int_equal(index_record_decode(raw, len, &again, NULL), E_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_md5_is_kept),
        cmocka_unit_test(the_count_of_parts_is_kept),
        cmocka_unit_test(what_is_no_md5_is_left_out),
        cmocka_unit_test(records_of_earlier_builds_are_read),
        cmocka_unit_test(what_is_cut_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
