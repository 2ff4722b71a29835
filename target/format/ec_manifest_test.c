#include "target/format/ec_manifest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "target/format/attr.h"
#include "target/index/record.h"

static struct ec_manifest example(void)
{
    return (struct ec_manifest){
        .layout = {.k = 4, .m = 2, .unit = EC_UNIT_DEFAULT, .length = 1048577},
        .tag = 0x00f3000000000007,
        .checksum = {.type = CHECKSUM_XXH3, .bytes = {1, 2, 3, 4, 5, 6, 7, 255}}};
}

static const char example_text[] = "1:4:2:65536:1048577:00f3000000000007:xxh3:01020304050607ff";

static void manifests_come_back(void **unused)
{
    (void)unused;
    struct ec_manifest m = example(), back;
    char text[EC_MANIFEST_TEXT_MAX], again[EC_MANIFEST_TEXT_MAX];
    assert_string_equal(ec_manifest_text(&m, text), example_text); /* of the disk format */
    assert_int_equal(ec_manifest_parse(text, &back, NULL), 0);
    assert_string_equal(ec_manifest_text(&back, again), text);
    m.checksum = (struct checksum_value){.type = CHECKSUM_NONE};
    assert_int_equal(ec_manifest_parse(ec_manifest_text(&m, text), &back, NULL), 0);
    assert_int_equal(back.checksum.type, CHECKSUM_NONE);
}

static void the_longest_has_room(void **unused)
{
    (void)unused;
    struct ec_manifest m = {
        .layout = {.k = 32, .m = 8, .unit = EC_UNIT_MAX, .length = EC_LENGTH_MAX},
        .tag = UINT64_MAX,
        .checksum = {.type = CHECKSUM_SHA256}};
    char text[EC_MANIFEST_TEXT_MAX];
    struct ec_manifest back;
    assert_int_equal(ec_manifest_parse(ec_manifest_text(&m, text), &back, NULL), 0);
    assert_true(back.tag == m.tag && back.layout.length == m.layout.length);
}

static void what_is_none_is_refused(void **unused)
{
    (void)unused;
    static const char *const bad[] = {
        "",
        ":",
        "1",
        "1:4:2:65536:1048577:00f3000000000007:xxh3",
        "1:4:2:65536:1048577:00f3000000000007:xxh3:01020304050607ff:",
        "1:4:2:65536:1048577:00f3000000000007:xxh3:01020304050607",
        "1:4:2:65536:1048577:00f3000000000007:none:01",
        "1:4:2:65536:1048577:f3000000000007:xxh3:01020304050607ff",
        "1:4:2:65536:1048577:00F3000000000007:xxh3:01020304050607ff",
        "1:0:2:65536:1048577:00f3000000000007:xxh3:01020304050607ff",
        "1:4:2:65535:1048577:00f3000000000007:xxh3:01020304050607ff",
        "1:4:2:65536:99999999999999999999:00f3000000000007:xxh3:01020304050607ff",
        "01:4:2:65536:1048577:00f3000000000007:xxh3:01020304050607ff",
    };
    struct ec_manifest m;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(ec_manifest_parse(bad[i], &m, NULL), E_CORRUPT);
    assert_int_equal(ec_manifest_parse("2:who:knows", &m, NULL), E_UNSUPPORTED);
    char text[sizeof example_text];
    for (size_t i = 0; i + 1 < sizeof example_text; i++) {
        memcpy(text, example_text, sizeof text);
        text[i] = ';';
        assert_int_not_equal(ec_manifest_parse(text, &m, NULL), 0);
    }
}

static void names_of_slices_come_back(void **unused)
{
    (void)unused;
    char name[EC_SLICE_NAME_MAX];
    uint64_t tag;
    unsigned index;
    static const char *const bad[] = {"",
                                      ".1",
                                      "00f3000000000007",
                                      "00f3000000000007.",
                                      "00f3000000000007.40",
                                      "00f3000000000007.01",
                                      "00f300000000000g.1",
                                      "0f3000000000007.1"};
    assert_string_equal(ec_slice_name(0xf3000000000007, 39, name), "00f3000000000007.39");
    assert_int_equal(ec_slice_name_parse(name, &tag, &index, NULL), 0);
    assert_true(tag == 0xf3000000000007 && index == 39);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(ec_slice_name_parse(bad[i], &tag, &index, NULL), E_INVALID);
    assert_true(ec_is_slices_bucket(ec_slices_bucket(7)) && !ec_is_slices_bucket(7));
    assert_true(ec_bucket_of_slices(ec_slices_bucket(7)) == 7);
}

static void users_see_the_object(void **unused)
{
    (void)unused;
    struct attr a = {.name = "a", .slices = example_text};
    struct index_record rec = index_record_of(&a);
    assert_int_equal(rec.size, 1048577);
    assert_int_equal(rec.checksum.type, CHECKSUM_XXH3);
    unsigned char raw[INDEX_RECORD_MAX];
    struct index_record again;
    assert_int_equal(index_record_decode(raw, index_record_encode(&rec, raw), &again, NULL), 0);
    assert_true(rec.sliced && again.sliced);
    assert_true(ec_manifest_tag(&a) == 0x00f3000000000007);
    assert_int_equal(ec_manifest_show(&a, NULL), 0);
    assert_int_equal(a.size, 1048577);
    struct attr whole = {.name = "a", .size = 3};
    assert_int_equal(ec_manifest_show(&whole, NULL), 0);
    assert_int_equal(whole.size, 3);
    assert_true(ec_manifest_tag(&whole) == 0);
    a.slices = "1:";
    assert_int_equal(ec_manifest_show(&a, NULL), E_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(manifests_come_back),     cmocka_unit_test(the_longest_has_room),
        cmocka_unit_test(what_is_none_is_refused), cmocka_unit_test(names_of_slices_come_back),
        cmocka_unit_test(users_see_the_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
