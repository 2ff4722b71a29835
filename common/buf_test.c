#include "common/buf.h"

#include <setjmp.h>
#include <cmocka.h>
#include <jansson.h>

#include "common/cleanup.h"
#include "common/rng.h"

static void an_empty_buffer_is_an_empty_text(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf b = BUF_INIT;
    assert_string_equal(buf_str(&b), "");
    buf_clear(&b);
    buf_append(&b, NULL, 0);
    assert_non_null(b.data);
    assert_int_equal(b.len, 0);
    assert_int_equal(b.data[0], 0);
}

static void appending_keeps_bytes_and_the_final_nul(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf b = BUF_INIT;
    for (int i = 0; i < 10000; i++) {
        buf_putc(&b, (char)i);
        assert_int_equal(b.data[b.len], 0);
        assert_true(b.len < b.cap);
    }
    for (int i = 0; i < 10000; i++)
        assert_int_equal(b.data[i], (char)i);
    buf_clear(&b);
    buf_puts(&b, "ab");
    buf_append(&b, "cd\0e", 4);
    assert_int_equal(b.len, 6);
    assert_memory_equal(b.data, "abcd\0e", 7);
}

static void printf_of_any_length(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf b = BUF_INIT;
    for (int width = 1; width < 300; width++) {
        buf_clear(&b);
        buf_puts(&b, "x");
        buf_printf(&b, "%*d|", width, 7);
        assert_int_equal(b.len, (size_t)width + 2);
        assert_string_equal(b.data + width, "7|");
    }
}

static void reserve_gives_room_that_does_not_move(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf b = BUF_INIT;
    buf_reserve(&b, 5000);
    const char *before = b.data;
    assert_string_equal(buf_str(&b), "");
    for (int i = 0; i < 5000; i++)
        buf_putc(&b, 'a');
    assert_ptr_equal(b.data, before);
}

static void stealing_leaves_a_usable_buffer(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf b = BUF_INIT;
    _cleanup_free_ char *empty = buf_steal(&b);
    assert_string_equal(empty, "");
    buf_puts(&b, "one");
    _cleanup_free_ char *one = buf_steal(&b);
    buf_puts(&b, "two");
    assert_string_equal(one, "one");
    assert_string_equal(buf_str(&b), "two");
}

static void json_escapes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t len;
        const char *want;
    } rows[] = {
        {"plain /text", 11, "plain /text"},
        {"\"\\\b\f\n\r\t", 7, "\\\"\\\\\\b\\f\\n\\r\\t"},
        {"a\0b\x01\x1f\x7f", 6, "a\\u0000b\\u0001\\u001f\\u007f"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8d\xb0", 15,
         "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x8d\xb0"},
        {"\xff", 1, "\\\\xff"},
        {"a\xc3", 2, "a\\\\xc3"},                     /* cut */
        {"\xc0\x80", 2, "\\\\xc0\\\\x80"},            /* overlong */
        {"\xed\xa0\x80", 3, "\\\\xed\\\\xa0\\\\x80"}, /* a surrogate */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_(buf_done)
        struct buf b = BUF_INIT;
        buf_put_json_escaped(&b, rows[i].text, rows[i].len);
        assert_string_equal(buf_str(&b), rows[i].want);
    }
}

static void json_escapes_of_random_bytes_are_json(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 1);
    for (int round = 0; round < 2000; round++) {
        char bytes[64];
        size_t len = rng_below(&r, sizeof bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)rng_next(&r);
        _cleanup_(buf_done)
        struct buf b = BUF_INIT;
        buf_putc(&b, '"');
        buf_put_json_escaped(&b, bytes, len);
        buf_putc(&b, '"');
        json_t *value = json_loadb(b.data, b.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        assert_non_null(value);
        json_decref(value);
    }
}

static void url_escapes(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf b = BUF_INIT;
    static const char text[] = "a/B_9.~-%?\0\xff #";
    buf_put_url_escaped(&b, text, sizeof text - 1, "/");
    assert_string_equal(buf_str(&b), "a/B_9.~-%25%3F%00%FF%20%23");
    buf_clear(&b);
    buf_put_url_escaped(&b, "a/b", 3, "");
    assert_string_equal(buf_str(&b), "a%2Fb");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_is_an_empty_text),
        cmocka_unit_test(appending_keeps_bytes_and_the_final_nul),
        cmocka_unit_test(printf_of_any_length),
        cmocka_unit_test(reserve_gives_room_that_does_not_move),
        cmocka_unit_test(stealing_leaves_a_usable_buffer),
        cmocka_unit_test(json_escapes),
        cmocka_unit_test(json_escapes_of_random_bytes_are_json),
        cmocka_unit_test(url_escapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
