#include "net/syntax/chunk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/cleanup.h"

/* Decodes text in pieces of `step` bytes, taking at most `bite` of the data at once.  Returns how
 * much of the text was used, or the error. */
static ssize_t decode(const char *text, size_t len, size_t step, size_t bite, struct buf *out,
                      bool *ended)
{
    struct chunks c = CHUNKS_INIT;
    size_t at = 0;
    for (size_t have = 0; !chunk_ended(&c);) {
        if (at == have) {
            if (have == len)
                break;
            have = have + step < len ? have + step : len;
        }
        const char *data;
        size_t data_len;
        ssize_t n = chunk_next(&c, text + at, have - at, &data, &data_len, NULL);
        if (n < 0)
            return n;
        at += (size_t)n;
        size_t used = data_len < bite ? data_len : bite;
        if (used == 0)
            continue;
        buf_append(out, data, used);
        chunk_used(&c, used);
        at += used;
    }
    *ended = chunk_ended(&c);
    return (ssize_t)at;
}

static void test_bodies(void **state)
{
    (void)state;
    static const struct {
        const char *text, *body;
        size_t rest; /* of the text, not part of the body */
        bool ended;
    } rows[] = {
        {"0\r\n\r\n", "", 0, true},
        {"5\r\nhello\r\n0\r\n\r\nGET /", "hello", 5, true},
        {"3\r\nabc\r\n00A\r\n0123456789\r\n000\r\n\r\n", "abc0123456789", 0, true},
        {"a;name=\"v;w\"\r\n0123456789\r\n0;x\r\nTrailer: t\r\nOther: u\r\n\r\n", "0123456789", 0,
         true},
        {"5 \r\nhello\r\n0\r\n\r\n", "hello", 0, true},
        {"5 \t;x\r\nhello\r\n0\r\n\r\n", "hello", 0, true},
        {"5\r\nhel", "hel", 0, false},
        {"5\r\nhello\r\n", "hello", 0, false},
        {"0\r\n", "", 0, false},
        {"0\r\nT: x\r\n", "", 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = strlen(rows[i].text);
        for (size_t step = 1; step <= len; step++) {
            _cleanup_(buf_done)
            struct buf body = BUF_INIT;
            bool ended = false;
            ssize_t used = decode(rows[i].text, len, step, 1 + step % 4, &body, &ended);
            assert_int_equal(used, len - rows[i].rest);
            assert_string_equal(buf_str(&body), rows[i].body);
            assert_int_equal(ended, rows[i].ended);
        }
    }
}

static void test_malformed(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "\r\n",
        "x\r\n",
        "-1\r\n",
        "0x5\r\n",
        "5\nhello",
        "5 5\r\nhello",
        "5 x\r\nhello",
        "5\rhello",
        "5\r\nhelloX",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhello\rX",
        "1000000000000000\r\n",
        ";x\r\n",
        "5;\x01\r\n",
        "0\r\nT: \x7f\r\n\r\n",
        "0\r\n\rX",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t step = 1; step < 4; step++) {
            _cleanup_(buf_done)
            struct buf body = BUF_INIT;
            bool ended = false;
            if (decode(rows[i], strlen(rows[i]), step, 100, &body, &ended) != E_INVALID)
                fail_msg("row %zu was taken", i);
        }
    }
}

static void test_endless_lines(void **state)
{
    (void)state;
    static const char *const starts[] = {"5;", "0\r\nT: ", "5 "};
    for (size_t i = 0; i < 3; i++) {
        _cleanup_(buf_done)
        struct buf text = BUF_INIT;
        _cleanup_(buf_done)
        struct buf body = BUF_INIT;
        buf_puts(&text, starts[i]);
        for (int n = 0; n < 5000; n++)
            buf_putc(&text, i < 2 ? 'x' : ' ');
        bool ended;
        assert_int_equal(decode(text.data, text.len, 100, 100, &body, &ended), E_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_endless_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
