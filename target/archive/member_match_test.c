/* Names against each way to choose members. */
#include "target/archive/member_match.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/mem.h"

static void names(void **state)
{
    (void)state;
    static const struct {
        const char *mode, *text, *name;
        int wanted;
    } rows[] = {
        {"prefix", "a/", "a/b", 1},
        {"prefix", "a/", "b/a/", 0},
        {"prefix", "abc", "ab", 0},
        {"suffix", ".jpg", "a/1.jpg", 1},
        {"suffix", ".jpg", "jpg", 0},
        {"suffix", "a", "a", 1},
        {"substr", "mid", "a-mid-b", 1},
        {"substr", "mid", "mi", 0},
        {"substr", "%", "100%", 1},
        {"wdskey", "d/1", "d/1.seg.png", 1},
        {"wdskey", "d/1", "d/1", 1},
        {"wdskey", "1", "d/1.png", 0},
        {"wdskey", "d.x/1", "d.x/1.a", 1},
        {"wdskey", "d", "d.x/1.a", 0},
        {"wdskey", "d/10", "d/1.jpg", 0},
        {"regexp", "^a.*\\.(jpg|cls)$", "a/1.cls", 1},
        {"regexp", "[0-9]{3}", "a/12", 0},
        {"regexp", "^.$", "\u00fc", 1},
        {"regexp", "b",
         "\xff"
         "b",
         1},
        {"regexp", "(?i)JPG", "x.jpg", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        _cleanup_(member_match_freep)
        struct member_match *m = NULL;
        assert_int_equal(member_match_new(rows[i].mode, rows[i].text, &m, &err), 0);
        if (member_match(m, rows[i].name, strlen(rows[i].name), &err) != rows[i].wanted)
            fail_msg("%s %s, %s", rows[i].mode, rows[i].text, rows[i].name);
    }
}

static void refuse(const char *mode, const char *text, const char *why)
{
    struct error err = ERROR_INIT;
    struct member_match *m = NULL;
    assert_int_equal(member_match_new(mode, text, &m, &err), E_INVALID);
    assert_null(m);
    assert_non_null(strstr(err.message, why));
}

static void what_is_asked_wrongly(void **state)
{
    (void)state;
    char large[MEMBER_MATCH_BYTES + 2];
    memset(large, 'a', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    refuse("glob", "a", "'mode' is 'glob'");
    refuse("prefix", "", "1 to 1024 bytes");
    refuse("regexp", large, "1 to 1024 bytes");
    refuse("regexp", "a(b", "wrong at byte 3");
    refuse("regexp", "\xff", "wrong at byte 0");
    refuse("regexp", "\\C", "wrong");
}

/* It would try two to the power of the name's length. */
static void an_expression_that_takes_for_ever(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char name[4000];
    memset(name, 'a', sizeof name);
    _cleanup_(member_match_freep)
    struct member_match *m = NULL;
    assert_int_equal(member_match_new("regexp", "^(a+)+$|^(a|aa)+b$", &m, &err), 0);
    name[sizeof name - 1] = '!';
    assert_int_equal(member_match(m, name, sizeof name, &err), E_INVALID);
    assert_non_null(strstr(err.message, "cannot be sought"));
}

/* What a compiler would unfold into gigabytes. */
static void an_expression_that_grows(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct member_match *m = NULL;
    assert_int_equal(member_match_new("regexp", "(((a{1,999}){1,999}){1,999}){1,999}", &m, &err),
                     E_INVALID);
    assert_null(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(what_is_asked_wrongly),
        cmocka_unit_test(an_expression_that_takes_for_ever),
        cmocka_unit_test(an_expression_that_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
