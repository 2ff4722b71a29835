#include "api/ctl/names/glob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/cleanup.h"

static void what_is_a_pattern(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool is_glob;
        bool only_prefix;
        const char *plain; /* the prefix of a pattern, or the name */
    } rows[] = {
        {"", false, false, ""},           {"k", false, false, "k"},
        {"a\\b", false, false, "a\\b"}, /* no sign: the backslash is the name's */
        {"f*", true, true, "f"},          {"*", true, true, ""},
        {"d/f?", true, false, "d/f"},     {"f[12]x", true, false, "f"},
        {"f*.bin", true, false, "f"},     {"f**", true, false, "f"},
        {"f\\*", false, false, "f*"},     {"f\\[12]", false, false, "f[12]"},
        {"f\\*a*", true, true, "f*a"},    {"a\\\\*", true, true, "a\\"},
        {"f\\*\\", false, false, "f*\\"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        _cleanup_free_ char *plain =
            rows[i].is_glob ? glob_prefix(rows[i].key) : glob_name(rows[i].key);
        assert_int_equal(glob_is(rows[i].key), rows[i].is_glob);
        assert_string_equal(plain, rows[i].plain);
        if (rows[i].is_glob)
            assert_int_equal(glob_only_prefix(rows[i].key), rows[i].only_prefix);
    }
}

static void an_escaped_name_is_no_pattern(void **state)
{
    (void)state;
    static const char *const names[] = {"*", "img[1].jpg", "a\\?", "\\*\\", "é[ü]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        _cleanup_free_ char *key = glob_escape(names[i]);
        _cleanup_free_ char *name = glob_name(key);
        assert_false(glob_is(key));
        assert_string_equal(name, names[i]);
    }
}

static const struct {
    const char *pattern, *name;
    bool matches;
} matches[] = {
    {"f*", "f", true},
    {"f*", "f/a/b", true},
    {"f?", "f1", true},
    {"f?", "f", false},
    {"f[1-3]", "f2", true},
    {"f[!1-3]", "f2", false},
    {"f[!1-3]", "f4", true},
    {"*.tar", "d/a.tar", true},
    {"*.tar", "a.tar.gz", false},
    {"f\\*a*", "f*ab", true},
    {"f\\*a*", "fxab", false},
    {"f*", "xf", false},
    {"a?c", "aéc", true},
    {"a??c", "aéc", false},
    {"a[é]c", "aéc", true},
    {"a[à-ü]c", "aéc", true},
    {"a[!é]c", "aéc", false},
    {"a[!é]c", "aüc", true},
    {"a[é]c",
     "a\xc3"
     "c",
     false},
    {"?", "𝄞", true},
    {"?", "猫", true},
    {"*é", "éaé", true},
    {"a?c",
     "a\xff"
     "c",
     true},
    {"a\xff?",
     "a\xff"
     "c",
     true},
    {"?", "\xc3\xff", false},
    {"a[]x]", "a]", true},
    {"a[!]x]", "a]", false},
    {"a[x-]", "a-", true},
    {"a[x\\]]", "a]", true},
    {"a[\\!x]", "a!", true},
    {"a[^x]", "ay", true},
    {"a[z-a]", "am", false},
    {"a[x", "a[x", true},
    {"a[x", "ax", false},
    {"[", "[", true},
    {"a[[:digit:]]", "a7", true},
    {"a[[:digit:]x]", "ax", true},
    {"a[[:digit:]]", "ad", false},
    {"", "", true},
    {"", "a", false},
    {"*", "", true},
    {"?", "", false},
    {"a", "ab", false},
    {"*a*b", "xaab", true},
    {"*a*b", "xaabc", false},
    {"**", "x", true},
    {"*?", "x", true},
    {"*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
    {"a\\", "a\\", true},
    {"\\?\\\\", "?\\", true},
};

static void what_matches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof matches / sizeof *matches; i++)
        if (glob_matches(matches[i].pattern, matches[i].name) != matches[i].matches)
            fail_msg("'%s' and '%s'", matches[i].pattern, matches[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_a_pattern),
        cmocka_unit_test(an_escaped_name_is_no_pattern),
        cmocka_unit_test(what_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
