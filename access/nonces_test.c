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

static void take_all_places(struct nonces *n, const char *access)
{
    char name[16];
    for (int i = 0; i < NONCES_PER_KEY; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_int_equal(nonces_take(n, access, name, START), NONCE_TAKEN);
    }
    assert_int_equal(nonces_take(n, access, "more", START), NONCE_FULL);
}

static void test_a_key_without_places_is_refused_and_recovers(void **state)
{
    (void)state;
    struct nonces *n = nonces_new(WINDOW);
    take_all_places(n, "A");
    assert_int_equal(nonces_take(n, "A", "7", START), NONCE_USED);
    assert_int_equal(nonces_take(n, "A", "more", START + 2 * WINDOW), NONCE_TAKEN);
    assert_int_equal(nonces_take(n, "A", "7", START + 2 * WINDOW), NONCE_USED);
    nonces_free(n);
}

/* Nobody can stop the logins of others. */
static void test_other_keys_have_places_of_their_own(void **state)
{
    (void)state;
    char access[16];
    struct nonces *n = nonces_new(WINDOW);
    for (int i = 0; i < 64; i++) {
        snprintf(access, sizeof access, "key-%d", i);
        take_all_places(n, access);
    }
    assert_int_equal(nonces_take(n, "root", "1", START), NONCE_TAKEN);
    assert_int_equal(nonces_take(n, "root", "1", START), NONCE_USED);
    assert_int_equal(nonces_take(n, "key-0", "0", START), NONCE_USED);
    nonces_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_nonce_is_taken_once_for_each_key),
        cmocka_unit_test(test_a_nonce_is_known_for_two_windows_at_least),
        cmocka_unit_test(test_nonces_are_forgotten_in_the_end),
        cmocka_unit_test(test_a_key_without_places_is_refused_and_recovers),
        cmocka_unit_test(test_other_keys_have_places_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
