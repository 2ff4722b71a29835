#include "common/origin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"

static void test_one_server_has_one_spelling(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"http://host", "http://host"},
        {"HTTP://Host.Example/a?b", "http://host.example"},
        {"http://host:80/", "http://host"},
        {"http://host:0080/", "http://host"},
        {"http://host:", "http://host"},
        {"https://host:443", "https://host"},
        {"https://host:80", "https://host:80"},
        {"http://host:443?x", "http://host:443"},
        {"http://host:08080", "http://host:8080"},
        {"http://host.example.:80", "http://host.example"},
        {"http://h%6Fst", "http://host"},
        {"http://h%2Fst", "http://h%2fst"},
        {"http://127.1:80", "http://127.0.0.1"},
        {"http://0x7f000001:9000/x", "http://127.0.0.1:9000"},
        {"http://2130706433", "http://127.0.0.1"},
        {"http://127.0.0.1.", "http://127.0.0.1"},
        {"http://[0:0::1]:80", "http://[::1]"},
        {"http://[::FFFF:1.2.3.4]:81", "http://[::ffff:1.2.3.4]:81"},
        {"http://[x]:81", "http://[x]:81"},
        {"http://[", "http://["},
        {"http://host:*", "http://host:*"},
        {"dfc://Host:80", "dfc://host:80"},
        {"Host.", "Host."},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_free_ char *got = origin_normal(rows[i][0]);
        if (strcmp(got, rows[i][1]) != 0)
            fail_msg("'%s' became '%s', not '%s'", rows[i][0], got, rows[i][1]);
    }
}

static void test_lengths(void **state)
{
    (void)state;
    assert_int_equal(origin_len("http://a:1/b?c"), 10);
    assert_int_equal(origin_len("http://a?c"), 8);
    assert_int_equal(origin_len("http://a"), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_server_has_one_spelling),
        cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
