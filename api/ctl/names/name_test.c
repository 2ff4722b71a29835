#include "api/ctl/names/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void names(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"b", "b", ""},          {"b/", "b", ""},
        {"b/k", "b", "k"},       {"dfc://b/k", "b", "k"},
        {"dfc://b", "b", ""},    {"b/a/b/", "b", "a/b/"},
        {"b//k", "b", "/k"},     {"b/s3://x/k", "b", "s3://x/k"},
        {"b/../k", "b", "../k"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct object_name n;
        assert_int_equal(object_name_parse(rows[i][0], &n, NULL), 0);
        assert_string_equal(n.bucket, rows[i][1]);
        assert_string_equal(n.key, rows[i][2]);
        object_name_done(&n);
    }
    static const char *const bad[] = {"", "/k", "dfc://", "dfc:///k", "s3://b/k"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct object_name n;
        assert_int_equal(object_name_parse(bad[i], &n, NULL), E_NAME);
    }
}

static void paths_stay_below(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "a/b", "...", "a..b", "..a/b.", ".hidden", "\\..", "~"};
    static const char *const bad[] = {"",     "/",    "/a",     "a/", "a//b", "..",
                                      "../a", "a/..", "a/../b", ".",  "./a",  "a/./b"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(name_check_local(good[i], NULL), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(name_check_local(bad[i], NULL), E_NAME);
}

static void parts(void **state)
{
    (void)state;
    struct buf b = BUF_INIT;
    assert_string_equal(name_base("a/b/c"), "c");
    assert_string_equal(name_base("a/"), "");
    assert_string_equal(name_base("a"), "a");
    name_join(&b, "p", "x");
    assert_string_equal(buf_str(&b), "p/x");
    buf_clear(&b);
    name_join(&b, "p/", "x");
    assert_string_equal(buf_str(&b), "p/x");
    buf_clear(&b);
    name_join(&b, "", "x");
    assert_string_equal(buf_str(&b), "x");
    buf_done(&b);
}

static void what_looks_like_a_pattern(void **state)
{
    (void)state;
    static const char *const rows[][3] = {
        {"k", "object_not_found", "gone"},
        {"f*.bin", "object_not_found",
         "gone; this command takes no patterns (ls, get, rm and cp do)"},
        {"d/f?", "object_not_found",
         "gone; this command takes no patterns (ls, get, rm and cp do)"},
        {"d/[ab]", "object_not_found",
         "gone; this command takes no patterns (ls, get, rm and cp do)"},
        {"f*", "bucket_not_found", "gone"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct dfc_error err = {.message = "gone"};
        snprintf(err.code, sizeof err.code, "%s", rows[i][1]);
        name_note_pattern(rows[i][0], &err);
        assert_string_equal(err.message, rows[i][2]);
    }
}

static void prefixes(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool overlap;
    } rows[] = {
        {"b", "b", true},          {"b/x", "b", true},    {"b/x", "b/x/y", true},
        {"b/x/", "b/x", true},     {"b/x", "c/x", false}, {"b/x", "b/xx", false},
        {"b/x/z", "b/x/y", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct object_name a, b;
        assert_int_equal(object_name_parse(rows[i].a, &a, NULL), 0);
        assert_int_equal(object_name_parse(rows[i].b, &b, NULL), 0);
        object_name_make_prefix(&a);
        object_name_make_prefix(&b);
        assert_int_equal(names_overlap(&a, &b), rows[i].overlap);
        assert_int_equal(names_overlap(&b, &a), rows[i].overlap);
        object_name_done(&a);
        object_name_done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes),
        cmocka_unit_test(names),
        cmocka_unit_test(paths_stay_below),
        cmocka_unit_test(parts),
        cmocka_unit_test(what_looks_like_a_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
