#include "plog/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"

static const struct plog_head sample = {.id = "0123456789abcdef0123456789abcdef",
                                        .mode = 0644,
                                        .uid = 1000,
                                        .gid = UINT32_MAX,
                                        .created_ms = 5,
                                        .mtime_ms = 6,
                                        .epoch = 7,
                                        .size = INT64_MAX,
                                        .bytes = 8,
                                        .merged = 9,
                                        .nonce = UINT64_MAX - 1,
                                        .mark = 10};

static void test_round_trip(void **state)
{
    (void)state;
    _cleanup_buf_ struct buf text = BUF_INIT, again = BUF_INIT;
    struct plog_head h;
    plog_head_print(&sample, &text);
    assert_int_equal(plog_head_parse(text.data, text.len, &h, NULL), 0);
    plog_head_print(&h, &again);
    assert_string_equal(text.data, again.data);
    assert_true(h.nonce == sample.nonce && h.size == sample.size && h.mark == sample.mark);
    assert_string_equal(h.id, sample.id);
}

static int parse_with(const char *from, const char *to)
{
    _cleanup_buf_ struct buf text = BUF_INIT, other = BUF_INIT;
    struct plog_head h;
    plog_head_print(&sample, &text);
    const char *at = strstr(text.data, from);
    assert_non_null(at);
    buf_append(&other, text.data, (size_t)(at - text.data));
    buf_puts(&other, to);
    buf_puts(&other, at + strlen(from));
    return plog_head_parse(other.data, other.len, &h, NULL);
}

static void test_refused(void **state)
{
    (void)state;
    struct plog_head h;
    struct error err = ERROR_INIT;
    assert_int_equal(plog_head_parse("", 0, &h, &err), E_INVALID);
    assert_int_equal(plog_head_parse("[]", 2, &h, &err), E_INVALID);
    assert_int_equal(plog_head_parse("{\"a\":1}", 7, &h, &err), E_INVALID);
    assert_non_null(strstr(err.message, "the object is no plog"));
    assert_int_equal(parse_with("\"plog\":1", "\"plog\":2"), E_UNSUPPORTED);
    assert_int_equal(parse_with("\"mode\":420", "\"mode\":4096"), E_INVALID);
    assert_int_equal(parse_with("\"mode\":420", "\"mode\":-1"), E_INVALID);
    assert_int_equal(parse_with("\"id\":\"0", "\"id\":\""), E_INVALID);
    assert_int_equal(parse_with("\"nonce\":\"f", "\"nonce\":\""), E_INVALID);
    assert_int_equal(parse_with("\"merged\":9", "\"other\":9"), E_INVALID);
    assert_int_equal(parse_with(",\"mark\":10", ",\"mark\":-1"), E_INVALID);
    assert_int_equal(parse_with(",\"mark\":10", ""), 0);
    assert_int_equal(parse_with("\"mode\":420", "\"mode\":420"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
