#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "gateway/signing_keys.h"

static void make(int number, char access[static 32], unsigned char key[static AUTH_MAC_BYTES])
{
    snprintf(access, 32, "KEY%d", number);
    memset(key, number & 0xff, AUTH_MAC_BYTES);
}

static void test_a_key_is_for_its_secret_and_day(void **state)
{
    (void)state;
    struct signing_keys *k = signing_keys_new();
    unsigned char key[AUTH_MAC_BYTES], found[AUTH_MAC_BYTES];
    char access[32];
    make(7, access, key);
    assert_false(signing_keys_find(k, access, "sealed", "20260101", found));
    signing_keys_put(k, access, "sealed", "20260101", key);
    assert_true(signing_keys_find(k, access, "sealed", "20260101", found));
    assert_memory_equal(found, key, sizeof key);
    assert_false(signing_keys_find(k, access, "another", "20260101", found));
    assert_false(signing_keys_find(k, access, "sealed", "20260102", found));
    assert_false(signing_keys_find(k, "KEY8", "sealed", "20260101", found));
    signing_keys_free(k);
}

static void test_keys_beyond_the_places_replace_others(void **state)
{
    (void)state;
    struct signing_keys *k = signing_keys_new();
    unsigned char key[AUTH_MAC_BYTES], found[AUTH_MAC_BYTES];
    char access[32];
    int kept = 0;
    for (int i = 0; i < 4 * SIGNING_KEYS_MAX; i++) {
        make(i, access, key);
        signing_keys_put(k, access, "sealed", "20260101", key);
    }
    for (int i = 0; i < 4 * SIGNING_KEYS_MAX; i++) {
        make(i, access, key);
        if (!signing_keys_find(k, access, "sealed", "20260101", found))
            continue;
        assert_memory_equal(found, key, sizeof key);
        kept++;
    }
    assert_in_range(kept, SIGNING_KEYS_MAX / 2, SIGNING_KEYS_MAX);
    signing_keys_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_key_is_for_its_secret_and_day),
        cmocka_unit_test(test_keys_beyond_the_places_replace_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
