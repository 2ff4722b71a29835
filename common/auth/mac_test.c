/* The vectors are those of tests/reference/authref.py, which tests/reference/authref_test.py looks
 * for in this file; and RFC 5869's. */
#include "common/auth/mac.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/auth/cluster_key.h"
#include "common/parse.h"

#define KEY_TEXT "0123456789abcdef0123456789abcdef"
#define NONCE_1 "1111111111111111111111111111111111111111111111111111111111111111"
#define NONCE_2 "2222222222222222222222222222222222222222222222222222222222222222"
#define SESSION "33333333333333333333333333333333"

static struct cluster_keys keys_of(const char *text)
{
    struct cluster_keys keys;
    struct error err = ERROR_INIT;
    if (cluster_keys_parse(text, strlen(text), &keys, &err) != 0)
        fail_msg("%s", err.message);
    return keys;
}

static struct auth_greeting greeting(const struct cluster_keys *keys, bool answered)
{
    return (struct auth_greeting){.key_id = keys->keys[0].id,
                                  .client_node = "p1",
                                  .client_boot = "bootofp1",
                                  .client_nonce = NONCE_1,
                                  .server_node = answered ? "t1" : NULL,
                                  .server_boot = answered ? "bootoft1" : NULL,
                                  .server_nonce = answered ? NONCE_2 : NULL,
                                  .session = answered ? SESSION : NULL};
}

static void test_hkdf_of_the_rfc(void **state)
{
    (void)state;
    unsigned char key[22], salt[13], info[10], out[AUTH_MAC_BYTES];
    char hex[AUTH_HEX_MAX];
    memset(key, 0x0b, sizeof key);
    for (size_t i = 0; i < sizeof salt; i++)
        salt[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof info; i++)
        info[i] = (unsigned char)(0xf0 + i);
    auth_hkdf(key, sizeof key, salt, sizeof salt, info, sizeof info, out);
    format_hex(out, sizeof out, hex);
    assert_string_equal(hex, "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf");
}

static void test_keys_and_greetings(void **state)
{
    (void)state;
    const struct cluster_keys keys = keys_of(KEY_TEXT "\n");
    const unsigned char *secret = keys.keys[0].secret;
    unsigned char key[AUTH_MAC_BYTES];
    char hex[AUTH_HEX_MAX];
    format_hex(secret, CLUSTER_SECRET_BYTES, hex);
    assert_string_equal(hex, "23027eab055f45063827a8b11ee800ad369f5a9343e9f2c712da3372705d32bd");
    assert_string_equal(keys.keys[0].id, "ad38ac28c1646e71");
    struct auth_greeting g = greeting(&keys, false);
    auth_hello_proof(secret, &g, hex); /* of the earlier form */
    assert_string_equal(hex, "aef82ce883492fc5cd043f5500c77d2aa643811054d3b6d8c6b1a4be0596698d");
    g.server_node = "t1";
    g.server_nonce = NONCE_2;
    auth_hello_proof(secret, &g, hex);
    assert_string_equal(hex, "3385ab69c875d20da0ec10f7dae7d814b75e35defeabc65c6c7d3727e2913a63");
    g = greeting(&keys, true);
    auth_welcome_proof(secret, &g, hex);
    assert_string_equal(hex, "8071b89030294983681856c527dadb6b7071797e7c7e0cbcbb680c149795c589");
    auth_session_key(secret, &g, key);
    format_hex(key, sizeof key, hex);
    assert_string_equal(hex, "d5088d11689bf7455b54c5de54c633b2795efacddd7e7a68823cfb942c3e074b");
}

static void test_requests(void **state)
{
    (void)state;
    static const char body[] = "{\"action\": \"run\"}";
    const struct cluster_keys keys = keys_of(KEY_TEXT);
    const struct auth_greeting g = greeting(&keys, true);
    unsigned char key[AUTH_MAC_BYTES];
    char digest[AUTH_HEX_MAX], hex[AUTH_HEX_MAX];
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    auth_session_key(keys.keys[0].secret, &g, key);
    auth_digest(body, strlen(body), digest);
    assert_string_equal(digest, "4fdf4aadf1f571d8bc890a816ed522cda2f016a333ff4e34c54c51bffb7c6474");
    struct auth_request r = {.session = SESSION,
                             .counter = 7,
                             .method = "POST",
                             .path = "/v1/xactions/srt-1",
                             .query = "dfcv=4",
                             .length = (int64_t)strlen(body),
                             .digest = digest};
    auth_request_text(&r, &text);
    auth_header_text("Content-Type", "application/json", 16, &text);
    auth_header_text("Dfc-State", "c-0123456789 1.4", 16, &text);
    auth_header_text("dfc-auth", "not counted", 11, &text);
    auth_header_text("DFC-Forwarded", "p2", 2, &text);
    auth_request_mac(key, &text, hex);
    assert_string_equal(hex, "ccc118ce5c52a7132a4a4ce04931cb85a4faa016b4f0acf6005f1b82e89b0677");
    r = (struct auth_request){.session = SESSION,
                              .counter = 8,
                              .method = "PUT",
                              .path = "/v1/objects/b/a%20b",
                              .query = "",
                              .length = -1,
                              .digest = "-"};
    buf_clear(&text);
    auth_request_text(&r, &text);
    auth_request_mac(key, &text, hex);
    assert_string_equal(hex, "fb69c2bc8948c50bb93bbf5bc5bf358e7b34c8e5efcb5e28f0c32fbb9cfea42d");
}

static void test_same(void **state)
{
    (void)state;
    assert_true(auth_same("ab", "ab"));
    assert_false(auth_same("ab", "ac"));
    assert_false(auth_same("ab", "abc"));
    assert_false(auth_same("abc", "ab"));
    assert_true(auth_same("", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hkdf_of_the_rfc),
        cmocka_unit_test(test_keys_and_greetings),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
