#include "access/seal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define OLD_KEY "0123456789abcdef0123456789abcdef0123456789abcdef"
#define NEW_KEY "fedcba9876543210fedcba9876543210fedcba9876543210"
#define USER "00112233445566778899aabbccddeeff"
#define OTHER "ffeeddccbbaa99887766554433221100"

static struct cluster_keys keys_of(const char *text)
{
    struct cluster_keys keys;
    assert_int_equal(cluster_keys_parse(text, strlen(text), &keys, NULL), 0);
    return keys;
}

struct pair {
    char access[ACCESS_KEY_CHARS + 1];
    char secret[SECRET_CHARS + 1];
    char sealed[SEALED_MAX];
};

static struct pair sealed_pair(const struct cluster_keys *keys, const char *user)
{
    struct pair p;
    secret_new(p.access, p.secret);
    assert_int_equal(seal_secret(keys, user, p.access, p.secret, p.sealed, NULL), 0);
    return p;
}

static void test_there_and_back(void **state)
{
    (void)state;
    struct cluster_keys keys = keys_of(OLD_KEY);
    struct pair p = sealed_pair(&keys, USER);
    char secret[SECRET_CHARS + 1];
    assert_true(access_key_is_valid(p.access));
    assert_int_equal(strlen(p.secret), SECRET_CHARS);
    assert_null(strstr(p.sealed, p.secret));
    assert_int_equal(seal_open(&keys, USER, p.access, p.sealed, secret, NULL), 0);
    assert_string_equal(secret, p.secret);
}

static void test_no_two_are_equal(void **state)
{
    (void)state;
    struct cluster_keys keys = keys_of(OLD_KEY);
    struct pair p = sealed_pair(&keys, USER);
    struct pair q = sealed_pair(&keys, USER);
    char again[SEALED_MAX];
    char a[USER_ID_CHARS + 1];
    char b[USER_ID_CHARS + 1];
    assert_string_not_equal(p.access, q.access);
    assert_string_not_equal(p.secret, q.secret);
    assert_int_equal(seal_secret(&keys, USER, p.access, p.secret, again, NULL), 0);
    assert_string_not_equal(p.sealed, again);
    user_id_new(a);
    user_id_new(b);
    assert_true(user_id_is_valid(a));
    assert_string_not_equal(a, b);
}

/* Each character of the text, changed, and each prefix of it. */
static void test_a_changed_text_does_not_open(void **state)
{
    (void)state;
    struct cluster_keys keys = keys_of(OLD_KEY);
    struct pair p = sealed_pair(&keys, USER);
    char secret[SECRET_CHARS + 1];
    for (size_t i = 0; p.sealed[i] != '\0'; i++) {
        char changed[SEALED_MAX];
        snprintf(changed, sizeof changed, "%s", p.sealed);
        changed[i] = changed[i] == '0' ? '1' : '0';
        assert_int_equal(seal_open(&keys, USER, p.access, changed, secret, NULL), E_CORRUPT);
        changed[i] = '\0';
        assert_int_equal(seal_open(&keys, USER, p.access, changed, secret, NULL), E_CORRUPT);
    }
}

static void test_a_secret_is_bound_to_its_user_and_key(void **state)
{
    (void)state;
    struct cluster_keys keys = keys_of(OLD_KEY);
    struct pair p = sealed_pair(&keys, USER);
    struct pair q = sealed_pair(&keys, OTHER);
    char secret[SECRET_CHARS + 1];
    assert_int_equal(seal_open(&keys, OTHER, q.access, p.sealed, secret, NULL), E_CORRUPT);
    assert_int_equal(seal_open(&keys, USER, q.access, p.sealed, secret, NULL), E_CORRUPT);
    assert_int_equal(seal_open(&keys, OTHER, p.access, p.sealed, secret, NULL), E_CORRUPT);
}

static void test_rotation(void **state)
{
    (void)state;
    struct cluster_keys old = keys_of(OLD_KEY);
    struct cluster_keys both = keys_of(NEW_KEY "\n" OLD_KEY);
    struct cluster_keys new = keys_of(NEW_KEY);
    struct cluster_keys none = {0};
    struct pair p = sealed_pair(&old, USER);
    char secret[SECRET_CHARS + 1];
    char resealed[SEALED_MAX];
    assert_int_equal(seal_open(&new, USER, p.access, p.sealed, secret, NULL), E_CORRUPT);
    assert_int_equal(seal_open(&none, USER, p.access, p.sealed, secret, NULL), E_CORRUPT);
    assert_int_equal(seal_open(&both, USER, p.access, p.sealed, secret, NULL), 0);
    assert_true(seal_is_current(&old, p.sealed));
    assert_false(seal_is_current(&both, p.sealed));
    assert_int_equal(seal_secret(&both, USER, p.access, secret, resealed, NULL), 0);
    assert_true(seal_is_current(&both, resealed));
    assert_int_equal(seal_open(&new, USER, p.access, resealed, secret, NULL), 0);
    assert_string_equal(secret, p.secret);
    assert_int_equal(seal_secret(&none, USER, p.access, secret, resealed, NULL), E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_no_two_are_equal),
        cmocka_unit_test(test_a_changed_text_does_not_open),
        cmocka_unit_test(test_a_secret_is_bound_to_its_user_and_key),
        cmocka_unit_test(test_rotation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
