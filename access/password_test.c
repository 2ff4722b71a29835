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

static void test_a_tag_names_its_hash_and_is_no_access_key(void **state)
{
    (void)state;
    char tag[PASSWORD_TAG_CHARS + 1];
    password_tag("scrypt:15:8:1:000102030405060708090a0b0c0d0e0f:18", tag);
    assert_string_equal(tag, "p0001020304050607080");
    assert_false(access_key_is_valid(tag));
    password_tag("", tag);
    assert_string_equal(tag, "");
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

static void test_a_password_opens_for_its_user_alone(void **state)
{
    (void)state;
    char hash[PASSWORD_HASH_MAX];
    assert_int_equal(password_hash("correct horse", hash, NULL), 0);
    struct user anna = {.name = "anna", .enabled = true, .password = hash};
    const struct user none = {.name = "ben", .enabled = true, .password = ""};
    assert_true(password_opens(&anna, "correct horse"));
    assert_false(password_opens(&anna, "correct mule"));
    assert_false(password_opens(&none, "correct horse"));
    assert_false(password_opens(&none, ""));
    assert_false(password_opens(NULL, "correct horse"));
    anna.enabled = false;
    assert_false(password_opens(&anna, "correct horse"));
}

static void test_a_password_comes_in_clear_from_this_machine_alone(void **state)
{
    (void)state;
    static const char *const near[] = {"127.0.0.1:4711", "127.9.9.9:1", "[::1]:4711"};
    static const char *const far[] = {
        "192.0.2.1:4711",    "[2001:db8::1]:4711", "?:1", "", "[", "1",
        "12.127.0.1:127001", "[127.0.0.1.evil]:1"};
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        assert_true(password_peer_is_local(near[i]));
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        assert_false(password_peer_is_local(far[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_password_comes_in_clear_from_this_machine_alone),
        cmocka_unit_test(test_a_password_opens_for_its_user_alone),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_a_hash_of_python),
        cmocka_unit_test(test_a_tag_names_its_hash_and_is_no_access_key),
        cmocka_unit_test(test_what_is_no_hash_matches_nothing),
        cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
