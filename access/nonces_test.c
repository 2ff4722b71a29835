#include "access/nonces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

enum { WINDOW = 1000, START = 1000000 };

static void test_a_nonce_is_taken_once_for_each_key(void **state)
{
    (void)state;
    struct nonces *n = nonces_new(WINDOW);
    assert_int_equal(nonces_take(n, "A", "1", START), NONCE_TAKEN);
    assert_int_equal(nonces_take(n, "A", "1", START), NONCE_USED);
    assert_int_equal(nonces_take(n, "B", "1", START), NONCE_TAKEN);
    assert_int_equal(nonces_take(n, "A", "2", START), NONCE_TAKEN);
    nonces_free(n);
}

static void test_a_nonce_is_known_for_two_windows_at_least(void **state)
{
    (void)state;
    for (uint64_t at = 0; at < 4 * WINDOW; at += 100) {
        struct nonces *n = nonces_new(WINDOW);
        assert_int_equal(nonces_take(n, "A", "0", START), NONCE_TAKEN);
        assert_int_equal(nonces_take(n, "A", "1", START + at), NONCE_TAKEN);
        for (uint64_t later = 0; later < 2 * WINDOW; later += 100)
            assert_int_equal(nonces_take(n, "A", "1", START + at + later), NONCE_USED);
        nonces_free(n);
    }
}

static void test_nonces_are_forgotten_in_the_end(void **state)
{
    (void)state;
    struct nonces *n = nonces_new(WINDOW);
    assert_int_equal(nonces_take(n, "A", "1", START), NONCE_TAKEN);
    assert_int_equal(nonces_take(n, "A", "1", START + 5 * WINDOW), NONCE_TAKEN);
    nonces_free(n);
}

static void test_a_full_table_refuses_and_recovers(void **state)
{
    (void)state;
    char name[16];
    struct nonces *n = nonces_new(WINDOW);
    for (int i = 0; i < NONCES_MAX; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_int_equal(nonces_take(n, "A", name, START), NONCE_TAKEN);
    }
    assert_int_equal(nonces_take(n, "A", "more", START), NONCE_FULL);
    assert_int_equal(nonces_take(n, "A", "7", START), NONCE_USED);
    assert_int_equal(nonces_take(n, "A", "more", START + 2 * WINDOW), NONCE_TAKEN);
    assert_int_equal(nonces_take(n, "A", "7", START + 2 * WINDOW), NONCE_USED);
    nonces_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_nonce_is_taken_once_for_each_key),
        cmocka_unit_test(test_a_nonce_is_known_for_two_windows_at_least),
        cmocka_unit_test(test_nonces_are_forgotten_in_the_end),
        cmocka_unit_test(test_a_full_table_refuses_and_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
