#include "common/checksum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "common/rng.h"

static void checksum_of(enum checksum_type type, const void *data, size_t len,
                        struct checksum_value *out)
{
    struct checksum *c = checksum_new(type);
    checksum_update(c, data, len);
    checksum_final(c, out);
    checksum_free(c);
}

static void published_vectors(void **state)
{
    (void)state;
    static const struct {
        enum checksum_type type;
        const char *text;
        const char *hex;
    } rows[] = {
        /* xxHash's own test vectors and command line tool */
        {CHECKSUM_XXH3, "", "2d06800538d394c2"},
        {CHECKSUM_XXH3, "a", "e6c632b61e964e1f"},
        {CHECKSUM_XXH3, "abc", "78af5f94892f3950"},
        /* RFC 3720 B.4 and the usual check value */
        {CHECKSUM_CRC32C, "", "00000000"},
        {CHECKSUM_CRC32C, "123456789", "e3069283"},
        /* RFC 1321 A.5 */
        {CHECKSUM_MD5, "", "d41d8cd98f00b204e9800998ecf8427e"},
        {CHECKSUM_MD5, "abc", "900150983cd24fb0d6963f7d28e17f72"},
        /* FIPS 180-2 B.1 */
        {CHECKSUM_SHA256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {CHECKSUM_SHA256, "abc",
         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {CHECKSUM_NONE, "abc", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct checksum_value v;
        char hex[2 * CHECKSUM_MAX + 1];
        checksum_of(rows[i].type, rows[i].text, strlen(rows[i].text), &v);
        checksum_hex(&v, hex);
        assert_string_equal(hex, rows[i].hex);
    }
}

/* RFC 3720 B.4: 32 bytes of zeros, ones, and counting up. */
static void crc32c_of_rfc3720(void **state)
{
    (void)state;
    unsigned char bytes[32];
    struct checksum_value v;
    char hex[2 * CHECKSUM_MAX + 1];
    memset(bytes, 0, sizeof bytes);
    checksum_of(CHECKSUM_CRC32C, bytes, sizeof bytes, &v);
    checksum_hex(&v, hex);
    assert_string_equal(hex, "8a9136aa");
    memset(bytes, 0xff, sizeof bytes);
    checksum_of(CHECKSUM_CRC32C, bytes, sizeof bytes, &v);
    checksum_hex(&v, hex);
    assert_string_equal(hex, "62a8ab43");
    for (unsigned char i = 0; i < 32; i++)
        bytes[i] = i;
    checksum_of(CHECKSUM_CRC32C, bytes, sizeof bytes, &v);
    checksum_hex(&v, hex);
    assert_string_equal(hex, "46dd794e");
}

static void pieces_give_the_same_as_the_whole(void **state)
{
    (void)state;
    static unsigned char data[100000];
    struct rng r;
    rng_seed(&r, 11);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)rng_next(&r);
    for (int type = CHECKSUM_NONE; type < CHECKSUM_TYPES; type++) {
        struct checksum_value whole;
        struct checksum_value pieces;
        checksum_of((enum checksum_type)type, data, sizeof data, &whole);
        struct checksum *c = checksum_new((enum checksum_type)type);
        for (size_t at = 0; at < sizeof data;) {
            size_t n = rng_below(&r, 3000);
            n = n < sizeof data - at ? n : sizeof data - at;
            checksum_update(c, data + at, n);
            at += n;
        }
        checksum_final(c, &pieces);
        checksum_free(c);
        assert_true(checksum_equal(&whole, &pieces));
        data[500] ^= 1;
        checksum_of((enum checksum_type)type, data, sizeof data, &pieces);
        assert_int_equal(checksum_equal(&whole, &pieces), type == CHECKSUM_NONE);
    }
}

static void names_are_found(void **state)
{
    (void)state;
    for (int i = 0; i < CHECKSUM_TYPES; i++) {
        enum checksum_type type = CHECKSUM_TYPES;
        const char *name = checksum_name((enum checksum_type)i);
        assert_int_equal(checksum_from_name(name, &type, NULL), 0);
        assert_int_equal(type, i);
        assert_true(checksum_size(type) <= CHECKSUM_MAX);
    }
    struct error err;
    enum checksum_type type;
    assert_int_equal(checksum_from_name("sha1", &type, &err), E_INVALID);
    assert_string_equal(err.message,
                        "checksum type 'sha1' is none of xxh3, crc32c, md5, sha256, none");
}

static void hex_parses_back(void **state)
{
    (void)state;
    for (int type = CHECKSUM_NONE; type < CHECKSUM_TYPES; type++) {
        struct checksum_value v;
        struct checksum_value back;
        char hex[2 * CHECKSUM_MAX + 1];
        checksum_of((enum checksum_type)type, "dfc", 3, &v);
        checksum_hex(&v, hex);
        assert_int_equal(checksum_parse((enum checksum_type)type, hex, &back, NULL), 0);
        assert_true(checksum_equal(&v, &back));
    }
    struct error err;
    struct checksum_value v;
    assert_int_equal(checksum_parse(CHECKSUM_CRC32C, "e306928", &v, &err), E_INVALID);
    assert_string_equal(err.message, "crc32c checksum: 'e306928' does not have 8 hex digits");
    assert_int_equal(checksum_parse(CHECKSUM_CRC32C, "e306928x", &v, &err), E_INVALID);
    assert_string_equal(err.message, "crc32c checksum: 'e306928x' is not hexadecimal");
}

static void types_differ_even_with_equal_bytes(void **state)
{
    (void)state;
    struct checksum_value a = {.type = CHECKSUM_XXH3};
    struct checksum_value b = {.type = CHECKSUM_CRC32C};
    assert_false(checksum_equal(&a, &b));
}

static void a_computation_may_be_given_up(void **state)
{
    (void)state;
    for (int type = CHECKSUM_NONE; type < CHECKSUM_TYPES; type++) {
        struct checksum *c = checksum_new((enum checksum_type)type);
        checksum_update(c, "x", 1);
        checksum_free(c);
    }
    checksum_free(NULL);
}

static void test_base64(void **state)
{
    (void)state;
    struct checksum_value v;
    char hex[2 * CHECKSUM_MAX + 1];
    assert_true(checksum_parse_base64(CHECKSUM_MD5, "kAFQmDzST7DWlj99KOF/cg==", &v)); /* "abc" */
    checksum_hex(&v, hex);
    assert_int_equal(v.type, CHECKSUM_MD5);
    assert_string_equal(hex, "900150983cd24fb0d6963f7d28e17f72");
    static const char *const bad[] = {"",
                                      "=",
                                      "kAFQmDzST7DWlj99KOF/cg=",
                                      "kAFQmDzST7DWlj99KOF/cg",
                                      "kAFQmDzST7DWlj99KOF/cg===",
                                      "kAFQmDzST7DWlj99KOF/c!==",
                                      "kAFQmDzST7DWlj99KOF/cgaa"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(checksum_parse_base64(CHECKSUM_MD5, bad[i], &v));
    assert_false(checksum_parse_base64(CHECKSUM_NONE, "", &v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base64),
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(crc32c_of_rfc3720),
        cmocka_unit_test(pieces_give_the_same_as_the_whole),
        cmocka_unit_test(names_are_found),
        cmocka_unit_test(hex_parses_back),
        cmocka_unit_test(types_differ_even_with_equal_bytes),
        cmocka_unit_test(a_computation_may_be_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
