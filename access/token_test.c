#include "access/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"

#define OLD_LINE "0123456789abcdef0123456789abcdef-old\n"
#define NEW_LINE "0123456789abcdef0123456789abcdef-new\n"

static const struct token sample = {.user = "9f0c0000000000000000000000000001",
                                    .access = "DFC4JAAAAAAAAAAAAAA1",
                                    .issued_ms = 1000,
                                    .expires_ms = 2000,
                                    .random = {1, 2, 3, 4, 5, 6, 7, 8}};

static struct proof_keys *keys_of(const char *text)
{
    struct cluster_keys keys;
    assert_int_equal(cluster_keys_parse(text, strlen(text), &keys, NULL), 0);
    return proof_keys_new(&keys);
}

static void test_a_token_comes_back(void **state)
{
    (void)state;
    struct proof_keys *keys = keys_of(OLD_LINE);
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct token t;
    token_put(keys, &sample, &text);
    assert_memory_equal(text.data, "dfc1.", 5);
    assert_int_equal(token_check(keys, text.data, 1999, &t), PROOF_VALID);
    assert_string_equal(t.user, sample.user);
    assert_string_equal(t.access, sample.access);
    assert_int_equal(t.issued_ms, 1000);
    assert_int_equal(t.expires_ms, 2000);
    assert_memory_equal(t.random, sample.random, sizeof t.random);
    assert_int_equal(token_check(keys, text.data, 2000, &t), PROOF_EXPIRED);
    proof_keys_unref(keys);
}

static void test_a_token_of_a_password_has_no_access_key(void **state)
{
    (void)state;
    struct proof_keys *keys = keys_of(OLD_LINE);
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct token t = sample;
    t.access[0] = '\0';
    token_put(keys, &t, &text);
    assert_int_equal(token_check(keys, text.data, 1999, &t), PROOF_VALID);
    assert_string_equal(t.access, "");
    proof_keys_unref(keys);
}

/* The last character of each part has spare bits, which must be zero. */
static void test_no_other_text_is_a_token(void **state)
{
    (void)state;
    static const char others[] = "ABab01-_.=~ \x80";
    struct proof_keys *keys = keys_of(OLD_LINE);
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct token t;
    token_put(keys, &sample, &text);
    for (size_t at = 0; at < text.len; at++) {
        char was = text.data[at];
        for (const char *c = others; *c != '\0'; c++) {
            text.data[at] = *c;
            if (*c != was)
                assert_int_equal(token_check(keys, text.data, 1500, &t), PROOF_INVALID);
        }
        text.data[at] = '\0';
        assert_int_equal(token_check(keys, text.data, 1500, &t), PROOF_INVALID);
        text.data[at] = was;
    }
    buf_putc(&text, 'A');
    assert_int_equal(token_check(keys, text.data, 1500, &t), PROOF_INVALID);
    proof_keys_unref(keys);
}

static void test_a_key_is_changed_without_a_pause(void **state)
{
    (void)state;
    struct proof_keys *old = keys_of(OLD_LINE), *both = keys_of(OLD_LINE NEW_LINE);
    struct proof_keys *turned = keys_of(NEW_LINE OLD_LINE), *new = keys_of(NEW_LINE);
    _cleanup_(buf_done)
    struct buf by_old = BUF_INIT, by_new = BUF_INIT;
    struct token t;
    token_put(both, &sample, &by_old);
    token_put(turned, &sample, &by_new);
    assert_int_equal(token_check(old, by_old.data, 1500, &t), PROOF_VALID);
    assert_int_equal(token_check(turned, by_old.data, 1500, &t), PROOF_VALID);
    assert_int_equal(token_check(both, by_new.data, 1500, &t), PROOF_VALID);
    assert_int_equal(token_check(new, by_new.data, 1500, &t), PROOF_VALID);
    assert_int_equal(token_check(new, by_old.data, 1500, &t), PROOF_INVALID);
    assert_int_equal(token_check(old, by_new.data, 1500, &t), PROOF_INVALID);
    buf_done(&by_new);
    proof_keys_unref(old);
    proof_keys_unref(both);
    proof_keys_unref(turned);
    proof_keys_unref(new);
}

/* The sum is HMAC-SHA256 of the token key, as another implementation computes it. */
static void test_the_sum_is_hmac(void **state)
{
    (void)state;
    struct cluster_keys keys;
    unsigned char key[AUTH_MAC_BYTES], wanted[AUTH_MAC_BYTES], got[AUTH_MAC_BYTES];
    assert_int_equal(cluster_keys_parse(OLD_LINE, strlen(OLD_LINE), &keys, NULL), 0);
    struct proof_keys *proof = proof_keys_new(&keys);
    auth_hkdf(keys.keys[0].secret, CLUSTER_SECRET_BYTES, NULL, 0, "dfc-token-1", 11, key);
    auth_hmac(key, sizeof key, "text", 4, wanted);
    mac_key_sum(proof_keys_own(proof)->token, "text", 4, got);
    assert_memory_equal(got, wanted, sizeof got);
    mac_key_sum(proof_keys_own(proof)->redirect, "text", 4, got);
    assert_memory_not_equal(got, wanted, sizeof got);
    proof_keys_unref(proof);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_token_comes_back),
        cmocka_unit_test(test_a_token_of_a_password_has_no_access_key),
        cmocka_unit_test(test_no_other_text_is_a_token),
        cmocka_unit_test(test_a_key_is_changed_without_a_pause),
        cmocka_unit_test(test_the_sum_is_hmac),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
