#include "access/redirect_proof.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"

#define LINE "0123456789abcdef0123456789abcdef-1\n"
#define USER "9f0c0000000000000000000000000001"

static const struct redirect_call get = {.reads = true,
                                         .method = "GET",
                                         .bucket_id = 7,
                                         .object = "a/b",
                                         .offset = "1",
                                         .length = "2",
                                         .range = NULL,
                                         .new_name = NULL};

static struct proof_keys *keys_of(const char *text)
{
    struct cluster_keys keys;
    assert_int_equal(cluster_keys_parse(text, strlen(text), &keys, NULL), 0);
    return proof_keys_new(&keys);
}

static enum proof_verdict check(const struct proof_keys *keys, struct buf *proof,
                                const struct redirect_call *call)
{
    char user[TOKEN_USER_CHARS + 1];
    return redirect_proof_check(keys, buf_str(proof), 500, call, user);
}

static void test_a_proof_is_good_for_its_call_until_it_expires(void **state)
{
    (void)state;
    struct proof_keys *keys = keys_of(LINE);
    _cleanup_(buf_done)
    struct buf proof = BUF_INIT;
    char user[TOKEN_USER_CHARS + 1];
    redirect_proof_put(keys, USER, 1000, &get, &proof);
    assert_int_equal(redirect_proof_check(keys, proof.data, 999, &get, user), PROOF_VALID);
    assert_string_equal(user, USER);
    assert_int_equal(redirect_proof_check(keys, proof.data, 1000, &get, user), PROOF_EXPIRED);
    struct redirect_call head = get;
    head.method = "HEAD";
    assert_int_equal(check(keys, &proof, &head), PROOF_VALID);
    proof_keys_unref(keys);
}

static void test_a_proof_is_good_for_no_other_call(void **state)
{
    (void)state;
    const struct redirect_call others[] = {
        {.method = "PUT", .bucket_id = 7, .object = "a/b", .offset = "1", .length = "2"},
        {.reads = true, .bucket_id = 8, .object = "a/b", .offset = "1", .length = "2"},
        {.reads = true, .bucket_id = 7, .object = "a/c", .offset = "1", .length = "2"},
        {.reads = true, .bucket_id = 7, .object = "a/b", .offset = "2", .length = "2"},
        {.reads = true, .bucket_id = 7, .object = "a/b", .length = "2"},
        {.reads = true, .bucket_id = 7, .object = "a/b", .offset = "1", .length = "3"},
        {.reads = true, .bucket_id = 7, .object = "a/b", .offset = "1"},
        {.reads = true, .bucket_id = 7, .object = "a/b", .offset = "12", .length = ""},
        {.reads = true, .bucket_id = 7, .object = "a/b", .offset = "1", .range = "2"},
        {.reads = true, .bucket_id = 7, .object = "a/b", .offset = "1", .length = "2", .range = ""},
        {.reads = true,
         .bucket_id = 7,
         .object = "a/b",
         .offset = "1",
         .length = "2",
         .new_name = "x"},
    };
    struct proof_keys *keys = keys_of(LINE);
    _cleanup_(buf_done)
    struct buf proof = BUF_INIT;
    redirect_proof_put(keys, USER, 1000, &get, &proof);
    assert_int_equal(check(keys, &proof, &get), PROOF_VALID);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(check(keys, &proof, &others[i]), PROOF_INVALID);
    proof_keys_unref(keys);
}

static void test_no_other_text_is_a_proof(void **state)
{
    (void)state;
    struct proof_keys *keys = keys_of(LINE);
    _cleanup_(buf_done)
    struct buf proof = BUF_INIT;
    redirect_proof_put(keys, USER, 1000, &get, &proof);
    for (size_t at = 0; at < proof.len; at++) {
        char was = proof.data[at];
        proof.data[at] = was == 'A' ? 'B' : 'A';
        assert_int_equal(check(keys, &proof, &get), PROOF_INVALID);
        proof.data[at] = '\0';
        assert_int_equal(check(keys, &proof, &get), PROOF_INVALID);
        proof.data[at] = was;
    }
    buf_putc(&proof, 'A');
    assert_int_equal(check(keys, &proof, &get), PROOF_INVALID);
    proof_keys_unref(keys);
}

static void test_a_proof_of_another_cluster_is_none(void **state)
{
    (void)state;
    struct proof_keys *ours = keys_of(LINE);
    struct proof_keys *others = keys_of("fedcba9876543210fedcba9876543210-2\n");
    _cleanup_(buf_done)
    struct buf proof = BUF_INIT;
    redirect_proof_put(others, USER, 1000, &get, &proof);
    assert_int_equal(check(others, &proof, &get), PROOF_VALID);
    assert_int_equal(check(ours, &proof, &get), PROOF_INVALID);
    proof_keys_unref(ours);
    proof_keys_unref(others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_proof_is_good_for_its_call_until_it_expires),
        cmocka_unit_test(test_a_proof_is_good_for_no_other_call),
        cmocka_unit_test(test_no_other_text_is_a_proof),
        cmocka_unit_test(test_a_proof_of_another_cluster_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
