/* Any text goes through every conversion; what can be formatted comes back the same. */
#include "common/parse.h"

#include <assert.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_rc(int rc, const struct error *err)
{
    assert(rc == 0 || (rc == E_INVALID && err->code == E_INVALID && err->message[0] != '\0'));
}

static void check_numbers(const char *text)
{
    struct error err = ERROR_INIT;
    uint64_t u = 0;
    int64_t i = 0;
    double d = 0;
    bool b = false;
    char shown[16];
    check_rc(parse_u64(text, &u, &err), &err);
    check_rc(parse_i64(text, &i, &err), &err);
    check_rc(parse_double(text, &d, &err), &err);
    check_rc(parse_bool(text, &b, &err), &err);
    check_rc(parse_size(text, &u, &err), &err);
    assert(strlen(format_size(u, shown)) < sizeof shown);
    check_rc(parse_duration_ms(text, &u, &err), &err);
    assert(strlen(format_duration(u, shown)) < sizeof shown);
}

static void check_date(const char *text)
{
    int64_t unix_s = 0;
    int64_t again = 1;
    char shown[32];
    if (clock_parse_http(text, &unix_s) != 0)
        return;
    if (unix_s == 253402300800) /* the leap second after the year 9999, which has no text */
        return;
    int rc = clock_parse_http(clock_format_http(unix_s, shown), &again);
    assert(rc == 0 && again == unix_s);
}

static void check_hex(const void *data, size_t size)
{
    _cleanup_free_ char *text = xmalloc(2 * size + 1);
    _cleanup_free_ char *back = xmalloc(size);
    format_hex(data, size, text);
    int rc = parse_hex(text, back, size, NULL);
    assert(rc == 0 && (size == 0 || memcmp(back, data, size) == 0));
}

static void check_url(const char *text, size_t len)
{
    struct error err = ERROR_INIT;
    _cleanup_free_ char *plain = xmalloc(len + 1);
    _cleanup_free_ char *again = xmalloc(len + 1);
    _cleanup_(buf_done)
    struct buf escaped = BUF_INIT;
    int64_t used = parse_url_unescape(text, len, plain, &err);
    check_rc(used < 0 ? (int)used : 0, &err);
    if (used < 0)
        return;
    assert((size_t)used <= len && strlen(plain) == (size_t)used);
    buf_put_url_escaped(&escaped, plain, (size_t)used, "/");
    int64_t back = parse_url_unescape(buf_str(&escaped), escaped.len, again, NULL);
    assert(back == used && memcmp(plain, again, (size_t)used) == 0);
}

static void check_utf8(const char *text, size_t len)
{
    _cleanup_(buf_done)
    struct buf escaped = BUF_INIT;
    buf_put_json_escaped(&escaped, text, len);
    assert(utf8_valid(buf_str(&escaped), escaped.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = xstrndup((const char *)data, size);
    check_numbers(text);
    check_date(text);
    check_hex(data, size);
    check_url((const char *)data, size);
    check_utf8((const char *)data, size);
    return 0;
}
