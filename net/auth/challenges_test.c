#include "net/auth/challenges.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/mem.h"

static void test_a_challenge_is_taken_once(void **state)
{
    (void)state;
    _cleanup_free_ struct auth_challenges *c = xcalloc(1, sizeof *c);
    char one[AUTH_HEX_MAX], two[AUTH_HEX_MAX];
    auth_challenges_init(c);
    auth_challenges_new(c, 1000, one);
    auth_challenges_new(c, 1000, two);
    assert_string_not_equal(one, two);
    assert_int_equal(auth_challenges_take(c, 1001, one), AUTH_CHALLENGE_TAKEN);
    assert_int_equal(auth_challenges_take(c, 1002, one), AUTH_CHALLENGE_USED);
    assert_int_equal(auth_challenges_take(c, 1003, two), AUTH_CHALLENGE_TAKEN);
}

static void test_a_challenge_holds_for_a_time(void **state)
{
    (void)state;
    _cleanup_free_ struct auth_challenges *c = xcalloc(1, sizeof *c);
    char hex[AUTH_HEX_MAX];
    auth_challenges_init(c);
    auth_challenges_new(c, 1000, hex);
    assert_int_equal(auth_challenges_take(c, 1001 + AUTH_CHALLENGE_MS, hex), AUTH_CHALLENGE_LATE);
    assert_int_equal(auth_challenges_take(c, 1000 + AUTH_CHALLENGE_MS, hex), AUTH_CHALLENGE_TAKEN);
}

static void test_nobody_else_makes_one(void **state)
{
    (void)state;
    _cleanup_free_ struct auth_challenges *c = xcalloc(1, sizeof *c);
    _cleanup_free_ struct auth_challenges *other = xcalloc(1, sizeof *other);
    char hex[AUTH_HEX_MAX];
    auth_challenges_init(c);
    auth_challenges_init(other);
    auth_challenges_new(other, 1000, hex);
    assert_int_equal(auth_challenges_take(c, 1000, hex), AUTH_CHALLENGE_FOREIGN);
    auth_challenges_new(c, 1000, hex);
    hex[0] = 'f'; /* its time */
    assert_int_equal(auth_challenges_take(c, 1000, hex), AUTH_CHALLENGE_FOREIGN);
    assert_int_equal(auth_challenges_take(c, 1000, ""), AUTH_CHALLENGE_FOREIGN);
    assert_int_equal(auth_challenges_take(c, 1000, "challenge"), AUTH_CHALLENGE_FOREIGN);
}

/* As many as are remembered, and one more: the first is forgotten, the second is not. */
static void test_what_was_used_is_remembered(void **state)
{
    (void)state;
    _cleanup_free_ struct auth_challenges *c = xcalloc(1, sizeof *c);
    char first[AUTH_HEX_MAX], second[AUTH_HEX_MAX], hex[AUTH_HEX_MAX];
    auth_challenges_init(c);
    auth_challenges_new(c, 1000, first);
    auth_challenges_new(c, 1000, second);
    assert_int_equal(auth_challenges_take(c, 1000, first), AUTH_CHALLENGE_TAKEN);
    assert_int_equal(auth_challenges_take(c, 1000, second), AUTH_CHALLENGE_TAKEN);
    for (size_t i = 1; i < AUTH_CHALLENGES_USED_MAX; i++) {
        auth_challenges_new(c, 1000, hex);
        assert_int_equal(auth_challenges_take(c, 1000, hex), AUTH_CHALLENGE_TAKEN);
    }
    assert_int_equal(auth_challenges_take(c, 1000, second), AUTH_CHALLENGE_USED);
    assert_int_equal(auth_challenges_take(c, 1000, first), AUTH_CHALLENGE_TAKEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_challenge_is_taken_once),
        cmocka_unit_test(test_a_challenge_holds_for_a_time),
        cmocka_unit_test(test_nobody_else_makes_one),
        cmocka_unit_test(test_what_was_used_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
