#include "access/signed_url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"

#define LINE "0123456789abcdef0123456789abcdef-1\n"

static const struct token ann = {.user = "9f0c0000000000000000000000000001",
                                 .issued_ms = 1000,
                                 .expires_ms = 2000,
                                 .random = {1, 2, 3, 4, 5, 6, 7, 8}};
static const struct redirect_call get = {
    .reads = true, .method = "GET", .bucket_id = 7, .object = "a/b"};

static struct proof_keys *keys_of(const char *text)
{
    struct cluster_keys keys;
    assert_int_equal(cluster_keys_parse(text, strlen(text), &keys, NULL), 0);
    return proof_keys_new(&keys);
}

static enum proof_verdict check(const struct proof_keys *keys, struct buf *text,
                                const struct redirect_call *call)
{
    struct token t;
    return signed_url_check(keys, buf_str(text), 1500, call, &t);
}

static void test_a_url_is_good_for_its_call_until_it_expires(void **state)
{
    (void)state;
    struct proof_keys *keys = keys_of(LINE);
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    struct token t;
    signed_url_put(keys, &ann, &get, &text);
    assert_int_equal(signed_url_check(keys, buf_str(&text), 1999, &get, &t), PROOF_VALID);
    assert_string_equal(t.user, ann.user);
    assert_int_equal(t.issued_ms, 1000);
    assert_int_equal(t.expires_ms, 2000);
    assert_memory_equal(t.random, ann.random, sizeof t.random);
    assert_int_equal(signed_url_check(keys, buf_str(&text), 2000, &get, &t), PROOF_EXPIRED);
    proof_keys_unref(keys);
}

static void test_a_url_is_good_for_no_other_call(void **state)
{
    (void)state;
    const struct redirect_call others[] = {
        {.method = "PUT", .bucket_id = 7, .object = "a/b"},
        {.method = "DELETE", .bucket_id = 7, .object = "a/b"},
        {.reads = true, .bucket_id = 8, .object = "a/b"},
        {.reads = true, .bucket_id = 7, .object = "a/c"},
        {.reads = true, .bucket_id = 7, .object = "a/b", .offset = "0"},
        {.reads = true, .bucket_id = 7, .object = "a/b", .length = "1"},
        {.reads = true, .bucket_id = 7, .object = "a/b", .range = "bytes=0-"},
        {.reads = true, .bucket_id = 7, .object = "a/b", .new_name = "x"},
    };
    struct proof_keys *keys = keys_of(LINE);
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    signed_url_put(keys, &ann, &get, &text);
    assert_int_equal(check(keys, &text, &get), PROOF_VALID);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(check(keys, &text, &others[i]), PROOF_INVALID);
    proof_keys_unref(keys);
}

static void test_no_other_text_is_a_url(void **state)
{
    (void)state;
    struct proof_keys *keys = keys_of(LINE);
    struct proof_keys *others = keys_of("fedcba9876543210fedcba9876543210-2\n");
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    signed_url_put(keys, &ann, &get, &text);
    assert_int_equal(check(others, &text, &get), PROOF_INVALID);
    for (size_t at = 0; at < text.len; at++) {
        char was = text.data[at];
        text.data[at] = was == 'A' ? 'B' : 'A';
        assert_int_equal(check(keys, &text, &get), PROOF_INVALID);
        text.data[at] = '\0';
        assert_int_equal(check(keys, &text, &get), PROOF_INVALID);
        text.data[at] = was;
    }
    buf_putc(&text, 'A');
    assert_int_equal(check(keys, &text, &get), PROOF_INVALID);
    proof_keys_unref(others);
    proof_keys_unref(keys);
}

/* Else a redirect's proof of a minute would be a URL of an hour. */
static void test_neither_proof_is_the_other(void **state)
{
    (void)state;
    struct proof_keys *keys = keys_of(LINE);
    _cleanup_(buf_done)
    struct buf url = BUF_INIT;
    _cleanup_(buf_done)
    struct buf redirect = BUF_INIT;
    char user[TOKEN_USER_CHARS + 1];
    signed_url_put(keys, &ann, &get, &url);
    redirect_proof_put(keys, ann.user, 2000, &get, &redirect);
    assert_int_equal(check(keys, &redirect, &get), PROOF_INVALID);
    assert_int_equal(redirect_proof_check(keys, buf_str(&url), 1500, &get, user), PROOF_INVALID);
    proof_keys_unref(keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_url_is_good_for_its_call_until_it_expires),
        cmocka_unit_test(test_a_url_is_good_for_no_other_call),
        cmocka_unit_test(test_no_other_text_is_a_url),
        cmocka_unit_test(test_neither_proof_is_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
