#include "access/password.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_there_and_back(void **state)
{
    (void)state;
    char hash[PASSWORD_HASH_MAX];
    char again[PASSWORD_HASH_MAX];
    assert_int_equal(password_hash("correct horse", hash, NULL), 0);
    assert_int_equal(password_hash("correct horse", again, NULL), 0);
    assert_string_not_equal(hash, again);
    assert_null(strstr(hash, "horse"));
    assert_true(password_matches("correct horse", hash));
    assert_true(password_matches("correct horse", again));
    assert_false(password_matches("correct hors", hash));
    assert_false(password_matches("", hash));
}

/* hashlib.scrypt(b"pleaseletmein", salt=bytes(range(16)), n=1<<15, r=8, p=1, maxmem=1<<26,
 * dklen=32) of Python. */
static void test_a_hash_of_python(void **state)
{
    (void)state;
    assert_true(password_matches(
        "pleaseletmein", "scrypt:15:8:1:000102030405060708090a0b0c0d0e0f:"
                         "186e14cb910dac4f2a1bc3d1782fb5b4fae093ea02937860e081f41fbac1b804"));
}

static void test_what_is_no_hash_matches_nothing(void **state)
{
    (void)state;
    assert_false(password_matches("", ""));
    assert_false(password_matches("x", ""));
    assert_false(password_matches("x", "scrypt:15:8:1:zz:zz"));
    assert_false(password_matches("x", "x"));
}

static void test_lengths(void **state)
{
    (void)state;
    char hash[PASSWORD_HASH_MAX];
    char longest[PASSWORD_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[PASSWORD_MAX + 1] = '\0';
    assert_int_equal(password_hash("1234567", hash, NULL), E_INVALID);
    assert_int_equal(password_hash(longest, hash, NULL), E_INVALID);
    longest[PASSWORD_MAX] = '\0';
    assert_int_equal(password_hash(longest, hash, NULL), 0);
    assert_true(password_matches(longest, hash));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_a_hash_of_python),
        cmocka_unit_test(test_what_is_no_hash_matches_nothing),
        cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
