/* Each format at the lengths and numbers where it begins and ends. */
#include "ais/msgpack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/mem.h"

#define EXPECT(out, bytes)                                   \
    do {                                                     \
        assert_int_equal((out)->len, sizeof(bytes) - 1);     \
        assert_memory_equal((out)->data, bytes, (out)->len); \
        buf_clear(out);                                      \
    } while (0)

static void test_numbers(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf out = BUF_INIT;
    msgpack_put_u64(&out, 0);
    EXPECT(&out, "\x00");
    msgpack_put_u64(&out, 127);
    EXPECT(&out, "\x7f");
    msgpack_put_u64(&out, 128);
    EXPECT(&out, "\xcc\x80");
    msgpack_put_u64(&out, 256);
    EXPECT(&out, "\xcd\x01\x00");
    msgpack_put_u64(&out, 65536);
    EXPECT(&out, "\xce\x00\x01\x00\x00");
    msgpack_put_u64(&out, UINT64_MAX);
    EXPECT(&out, "\xcf\xff\xff\xff\xff\xff\xff\xff\xff");
}

static void test_heads(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf out = BUF_INIT;
    msgpack_put_map(&out, 0);
    EXPECT(&out, "\x80");
    msgpack_put_map(&out, 16);
    EXPECT(&out, "\xde\x00\x10");
    msgpack_put_map(&out, 65536);
    EXPECT(&out, "\xdf\x00\x01\x00\x00");
    msgpack_put_array(&out, 15);
    EXPECT(&out, "\x9f");
    msgpack_put_array(&out, 10000);
    EXPECT(&out, "\xdc\x27\x10");
    msgpack_put_array(&out, 65536);
    EXPECT(&out, "\xdd\x00\x01\x00\x00");
}

/* The head of a text of `len` bytes. */
static void expect_text(size_t len, const char *head, size_t head_len)
{
    _cleanup_buf_ struct buf out = BUF_INIT;
    _cleanup_free_ char *text = xmalloc(len + 1);
    memset(text, 'x', len);
    text[len] = '\0';
    msgpack_put_str(&out, text);
    assert_int_equal(out.len, head_len + len);
    assert_memory_equal(out.data, head, head_len);
    assert_memory_equal(out.data + head_len, text, len);
}

static void test_texts(void **state)
{
    (void)state;
    expect_text(0, "\xa0", 1);
    expect_text(31, "\xbf", 1);
    expect_text(32, "\xd9\x20", 2);
    expect_text(255, "\xd9\xff", 2);
    expect_text(256, "\xda\x01\x00", 3);
    expect_text(65535, "\xda\xff\xff", 3);
    expect_text(65536, "\xdb\x00\x01\x00\x00", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
