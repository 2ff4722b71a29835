#include "net/direct/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void test_learned(void **state)
{
    (void)state;
    char address[NAMES_ADDRESS_MAX];
    struct names *n = names_new();
    assert_false(names_find(n, "a:80", 5, address));
    names_learn(n, "a:80", "10.0.0.1:80", 5);
    assert_true(names_find(n, "a:80", 5, address));
    assert_string_equal(address, "10.0.0.1:80");
    assert_false(names_find(n, "a:81", 5, address));
    names_learn(n, "a:80", "[::1]:80", 5);
    assert_true(names_find(n, "a:80", 5, address));
    assert_string_equal(address, "[::1]:80");
    assert_true(names_find(n, "a:80", 5 + NAMES_KNOWN_MS - 1, address));
    assert_false(names_find(n, "a:80", 5 + NAMES_KNOWN_MS, address));
    names_free(n);
}

static void test_an_address_that_is_too_long(void **state)
{
    (void)state;
    char address[NAMES_ADDRESS_MAX], longest[NAMES_ADDRESS_MAX + 1];
    struct names *n = names_new();
    memset(longest, '1', NAMES_ADDRESS_MAX);
    longest[NAMES_ADDRESS_MAX] = '\0';
    names_learn(n, "a:80", longest, 5);
    assert_false(names_find(n, "a:80", 5, address));
    longest[NAMES_ADDRESS_MAX - 1] = '\0';
    names_learn(n, "a:80", longest, 5);
    assert_true(names_find(n, "a:80", 5, address));
    assert_string_equal(address, longest);
    names_free(n);
}

/* More names than the table has room for: each is right or unknown. */
static void test_many(void **state)
{
    (void)state;
    char name[32], address[NAMES_ADDRESS_MAX];
    unsigned known = 0;
    struct names *n = names_new();
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "node-%u:80", i);
        names_learn(n, name, name, 5);
        assert_true(names_find(n, name, 5, address));
    }
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "node-%u:80", i);
        if (!names_find(n, name, 5, address))
            continue;
        assert_string_equal(address, name);
        known++;
    }
    assert_true(known > 0 && known < 2000);
    names_free(n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learned),
        cmocka_unit_test(test_an_address_that_is_too_long),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
