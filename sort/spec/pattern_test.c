#include "sort/spec/pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/mem.h"

static bool matches(const char *pattern, const char *name)
{
    _cleanup_(patterns_freep)
    struct patterns *p = patterns_new();
    struct error err = ERROR_INIT;
    uint32_t found[2];
    if (patterns_add(p, pattern, strlen(pattern), 7, &err) != 0)
        fail_msg("%s: %s", pattern, err.message);
    struct pattern_search *s = pattern_search_new(p);
    pattern_find(s, name, strlen(name), found);
    pattern_search_free(s);
    assert_int_equal(found[1], PATTERN_NONE);
    return found[0] == 7;
}

static const struct {
    const char *pattern, *name;
    bool match;
} rows[] = {
    {"b", "abc", true},
    {"^b", "abc", false},
    {"^a.c$", "abc", true},
    {"^a.c$", "a\nc", false},
    {"a$", "aba", true},
    {"^$", "", true},
    {"^$", "a", false},
    {"a|b|", "c", true},
    {"^(a|bc)d$", "bcd", true},
    {"^(a|bc)d$", "bd", false},
    {"^(?:ab)+$", "ababab", true},
    {"^(?:ab)+$", "ababa", false},
    {"^(a*)*$", "aaaa", true},
    {"^(a*)+b?$", "aaab", true},
    {"^a{2,3}$", "a", false},
    {"^a{2,3}$", "aaa", true},
    {"^a{2,3}$", "aaaa", false},
    {"^a{2,}$", "aaaaa", true},
    {"^a{3}?$", "aaa", true},
    {"^a{0}$", "", true},
    {"^[a-c_]+$", "ab_c", true},
    {"^[^a-c]+$", "xyb", false},
    {"^[]a-]+$", "]-a", true},
    {"^[^]]$", "]", false},
    {"^[\\d\\]x]+$", "1]x", true},
    {"^\\w+-\\d\\d\\s$", "a_Z-07 ", true},
    {"^\\W\\D\\S$", "-ab", true},
    {"^\\W$", "_", false},
    {"\\.\\$\\^\\(", "a.$^(", true},
    {"^.$", "\xff", true},
    {"^[\x80-\xff]+$", "\xc3\xa9", true},
    {"x*", "", true},
    {"^((a+b)+c)+$", "ababcaabc", true},
    {"^((a+b)+c)+$", "ababcaab", false},
    {"^(a*)+$", "", true},
    {"^()+$", "", true},
    {"^(){3}x(){2,}$", "x", true},
    {"^(ab|c|d|e*)x$", "dx", true},
    {"^(ab|c|d|e*)x$", "eex", true},
    {"^(ab|c|d|e*)x$", "cdx", false},
    {"^((a|b|c)d|e|(f|g)+){2}$", "bdfgf", true},
    {"^((a|b|c)d|e|(f|g)+){2}$", "bfgf", false},
};

static void test_matching(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (matches(rows[i].pattern, rows[i].name) != rows[i].match)
            fail_msg("'%s' in '%s': not %d", rows[i].pattern, rows[i].name, rows[i].match);
    }
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "*a",
        "a**",
        "a+*",
        "^*",
        "(",
        ")",
        "a)",
        "(a",
        "[a",
        "[]",
        "[b-a]",
        "[\\d-x]",
        "[x-\\d]",
        "a{",
        "a{x}",
        "a{2",
        "a{3,2}",
        "a{1001}",
        "{2}",
        "(?=a)",
        "(?P<n>a)",
        "(?i)a",
        "\\1",
        "\\b",
        "\\",
        "\\p{L}",
        "\\z",
        "[[:alpha:]]",
        "a{99999999999}",
        "x]{",
        "\\x41",
    };
    _cleanup_(patterns_freep)
    struct patterns *p = patterns_new();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = ERROR_INIT;
        if (patterns_add(p, bad[i], strlen(bad[i]), 0, &err) != E_SPEC)
            fail_msg("'%s' was not refused (%s)", bad[i], err.message);
        assert_non_null(strstr(err.message, "of the pattern: "));
    }
    assert_int_equal(patterns_count(p), 0);
}

/* n brackets around an a, behind each of which this stands. */
static char *nested(size_t n, const char *behind)
{
    size_t len = strlen(behind);
    char *text = xcalloc(1, n * (2 + len) + 2), *at = text;
    for (size_t i = 0; i < n; i++)
        *at++ = '(';
    *at++ = 'a';
    for (size_t i = 0; i < n; i++) {
        memcpy(at, behind, len);
        at += len;
        *at++ = ')';
    }
    return text;
}

/* What grows with its text alone. */
static void test_what_is_nested_stays_small(void **state)
{
    (void)state;
    static const char *const behind[] = {"+", "*", "?", "|b", "+|b|c"};
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
        _cleanup_(patterns_freep)
        struct patterns *p = patterns_new();
        _cleanup_free_ char *text = nested(45, behind[i]);
        struct error err = ERROR_INIT;
        if (patterns_add(p, text, strlen(text), 0, &err) != 0)
            fail_msg("%s: %s", text, err.message);
        assert_in_range(patterns_bytes(p), 1, 16384);
        assert_true(matches(text, "aaa"));
    }
}

/* Such patterns leave nothing behind, and so are not stopped by the room that they take. */
static void test_repetitions_have_a_limit_of_their_own(void **state)
{
    (void)state;
    static const char *const texts[] = {"((a{100}){100}){0}", "((a{100}){100}){0})"};
    static const int answers[] = {0, E_SPEC};
    for (size_t i = 0; i < 2; i++) {
        _cleanup_(patterns_freep)
        struct patterns *p = patterns_new();
        int rc = answers[i];
        for (unsigned n = 0; n < PATTERNS_MAX && rc == answers[i]; n++)
            rc = patterns_add(p, texts[i], strlen(texts[i]), 0, NULL);
        assert_int_equal(rc, E_TOO_LARGE);
    }
}

/* Neither takes long, nor much memory. */
static void test_what_would_explode(void **state)
{
    (void)state;
    char name[200];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_false(matches("^(a|a|a?)*(a*)*b$", name));
    assert_true(matches("^(a?){100}a{100}", name));
    _cleanup_(patterns_freep)
    struct patterns *p = patterns_new();
    static const char large[] = "((a{100}){100}){100}";
    assert_int_equal(patterns_add(p, large, strlen(large), 0, NULL), E_TOO_LARGE);
    char deep[200];
    memset(deep, '(', 100);
    memset(deep + 100, ')', 100);
    assert_int_equal(patterns_add(p, deep, sizeof deep, 0, NULL), E_SPEC);
}

static void test_several_at_once(void **state)
{
    (void)state;
    _cleanup_(patterns_freep)
    struct patterns *p = patterns_new();
    uint32_t found[2];
    for (uint32_t i = 0; i < PATTERNS_MAX; i++) {
        char text[32];
        snprintf(text, sizeof text, "^n%u(x|y)?$", i);
        assert_int_equal(patterns_add(p, text, strlen(text), i / 2, NULL), 0);
    }
    assert_int_equal(patterns_add(p, "a", 1, 0, NULL), E_TOO_LARGE);
    struct pattern_search *s = pattern_search_new(p);
    pattern_find(s, "n777y", 5, found);
    assert_true(found[0] == 388 && found[1] == PATTERN_NONE);
    pattern_find(s, "n1000", 5, found);
    assert_true(found[0] == PATTERN_NONE && found[1] == PATTERN_NONE);
    pattern_search_free(s);
}

static void test_patterns_that_disagree(void **state)
{
    (void)state;
    _cleanup_(patterns_freep)
    struct patterns *p = patterns_new();
    uint32_t found[2];
    assert_null(pattern_search_new(p));
    assert_int_equal(patterns_add(p, "a+", 2, 1, NULL), 0);
    assert_int_equal(patterns_add(p, "b$", 2, 2, NULL), 0);
    struct pattern_search *s = pattern_search_new(p);
    pattern_find(s, "ab", 2, found);
    assert_true(found[0] + found[1] == 3);
    pattern_find(s, "aba", 3, found);
    assert_true(found[0] == 1 && found[1] == PATTERN_NONE);
    pattern_search_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matching),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_what_is_nested_stays_small),
        cmocka_unit_test(test_repetitions_have_a_limit_of_their_own),
        cmocka_unit_test(test_what_would_explode),
        cmocka_unit_test(test_several_at_once),
        cmocka_unit_test(test_patterns_that_disagree),
    };
    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
