#include "common/base64url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "common/rng.h"

/* RFC 4648 section 10, and two bytes that differ from base64. */
static void test_known_texts(void **state)
{
    (void)state;
    static const struct {
        const char *bytes, *text;
    } rows[] = {{"", ""},           {"f", "Zg"},          {"fo", "Zm8"},           {"foo", "Zm9v"},
                {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"\xfb\xff\xbf", "-_-_"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[16] = "", bytes[16] = "";
        size_t len = strlen(rows[i].bytes);
        assert_int_equal(base64url_encode(rows[i].bytes, len, text), strlen(rows[i].text));
        assert_int_equal(BASE64URL_CHARS(len), strlen(rows[i].text));
        assert_string_equal(text, rows[i].text);
        assert_true(base64url_decode(text, strlen(text), bytes));
        assert_string_equal(bytes, rows[i].bytes);
    }
}

static void test_what_no_bytes_have_as_their_text(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "Z", "Zh", "Zm9", "Zg=", "Zg==", "Zm+v", "Zm/v", "Z g", "Zm9vZ"};
    char bytes[16];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_false(base64url_decode(texts[i], strlen(texts[i]), bytes));
    assert_false(base64url_decode("Zg\0", 3, bytes));
}

static void test_random_bytes_come_back(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 1);
    for (size_t round = 0; round < 2000; round++) {
        unsigned char bytes[100], back[100];
        char text[BASE64URL_CHARS(sizeof bytes)];
        size_t len = rng_below(&r, sizeof bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = (unsigned char)rng_next(&r);
        size_t chars = base64url_encode(bytes, len, text);
        assert_true(base64url_decode(text, chars, back));
        assert_memory_equal(bytes, back, len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_texts),
        cmocka_unit_test(test_what_no_bytes_have_as_their_text),
        cmocka_unit_test(test_random_bytes_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
