#include "cluster/access/grant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/jsonx.h"
#include "common/mem.h"

static void test_patterns(void **state)
{
    static const struct {
        const char *pattern, *other;
        bool covers;
    } rows[] = {
        {"b", "b", true},
        {"b", "bb", false},
        {"bb", "b", false},
        {"*", "b", true},
        {"*", "*", true},
        {"*", "a?c*", true},
        {"?", "b", true},
        {"?", "?", true},
        {"?", "*", false},
        {"a*", "*", false},
        {"a*", "a*", true},
        {"a*", "ab*", true},
        {"ab*", "a*", false},
        {"train-*", "train-", true},
        {"train-*", "train", false},
        {"*-x", "a-b-x", true},
        {"*-x", "a-b-y", false},
        {"a*b*c", "a1b2b3c", true},
        {"a*b*c", "a1b2b3", false},
        {"a?c", "abc", true},
        {"a?c", "ac", false},
        {"a**", "a", true},
        {"b", "B", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (pattern_covers(rows[i].pattern, rows[i].other) != rows[i].covers)
            fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].other);
    }
}

/* JSON with ' in place of ", so that the rows can be read. */
static json_t *load(const char *text)
{
    char *quoted = xstrdup(text);
    for (char *at = quoted; *at != '\0'; at++)
        *at = *at == '\'' ? '"' : *at;
    json_t *doc = json_loads(quoted, 0, NULL);
    assert_non_null(doc);
    free(quoted);
    return doc;
}

static struct grant parse(struct arena *a, const char *text)
{
    _cleanup_json_ json_t *doc = load(text);
    struct grant g;
    struct error err = ERROR_INIT;
    if (grant_from_json(doc, "g", a, &g, &err) != 0)
        fail_msg("%s: %s", text, err.message);
    return g;
}

static void test_what_covers_what(void **state)
{
    static const struct {
        const char *held, *other;
        bool covers;
    } rows[] = {
        {"{'rights': ['read'], 'bucket': '*'}", "{'rights': ['read'], 'bucket': 'b'}", true},
        {"{'rights': ['read'], 'bucket': 'b'}", "{'rights': ['read'], 'bucket': '*'}", false},
        {"{'rights': ['read'], 'bucket': 'b'}", "{'rights': ['read', 'list'], 'bucket': 'b'}",
         false},
        {"{'rights': ['read'], 'bucket': 'b'}",
         "{'rights': ['read'], 'bucket': 'b', 'prefix': 'x/'}", true},
        {"{'rights': ['read'], 'bucket': 'b', 'prefix': 'x/'}",
         "{'rights': ['read'], 'bucket': 'b'}", false},
        {"{'rights': ['read'], 'bucket': 'b', 'prefix': 'x/'}",
         "{'rights': ['read'], 'bucket': 'b', 'prefix': 'x/y'}", true},
        {"{'rights': ['read'], 'bucket': 'b', 'prefix': 'x/'}",
         "{'rights': ['read'], 'bucket': 'b', 'prefix': 'y/'}", false},
        {"{'rights': ['admin']}", "{'rights': ['admin', 'delete'], 'bucket': '*'}", true},
        {"{'rights': ['admin']}", "{'rights': ['users', 'see', 'admin']}", true},
        {"{'rights': ['admin'], 'bucket': '*'}", "{'rights': ['admin']}", false},
        {"{'rights': ['admin'], 'bucket': '*'}", "{'rights': ['read'], 'bucket': 'b'}", false},
        {"{'rights': ['users']}", "{'rights': ['see']}", false},
        {"{'rights': ['users', 'see']}", "{'rights': ['see']}", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena *a = arena_new(512);
        struct grant h = parse(a, rows[i].held);
        struct grant o = parse(a, rows[i].other);
        if (grants_cover(&(struct grants){1, &h}, &o) != rows[i].covers)
            fail_msg("%s and %s", rows[i].held, rows[i].other);
        arena_free(a);
    }
}

/* Two grants may cover together what none does alone. */
static void test_grants_cover_together(void **state)
{
    (void)state;
    struct arena *a = arena_new(512);
    struct grant held[] = {parse(a, "{'rights': ['read'], 'bucket': '*'}"),
                           parse(a, "{'rights': ['list'], 'bucket': 'b*'}")};
    struct grant other = parse(a, "{'rights': ['list', 'read'], 'bucket': 'bb'}");
    assert_true(grants_cover(&(struct grants){2, held}, &other));
    assert_false(grants_cover(&(struct grants){1, held}, &other));
    arena_free(a);
}

static void test_json_there_and_back(void **state)
{
    static const char *const texts[] = {
        "{'rights': ['list', 'read'], 'bucket': 'train-*', 'prefix': 'a/'}",
        "{'rights': ['admin'], 'bucket': 'b'}",
        "{'rights': ['see', 'jobs']}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct arena *a = arena_new(512);
        struct grant g = parse(a, texts[i]);
        _cleanup_json_ json_t *want = load(texts[i]);
        _cleanup_json_ json_t *got = grant_to_json(&g);
        assert_true(json_equal(want, got));
        arena_free(a);
    }
}

static void test_what_is_refused(void **state)
{
    static const char *const texts[] = {
        "{'bucket': 'b'}",
        "{'rights': [], 'bucket': 'b'}",
        "{'rights': ['fly'], 'bucket': 'b'}",
        "{'rights': [1], 'bucket': 'b'}",
        "{'rights': ['see'], 'bucket': 'b'}",
        "{'rights': ['read']}",
        "{'rights': ['read'], 'bucket': ''}",
        "{'rights': ['read'], 'bucket': 'a/b'}",
        "{'rights': ['read'], 'bucket': '[ab]'}",
        "{'rights': ['see'], 'prefix': 'x'}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct arena *a = arena_new(512);
        struct grant g;
        struct error err = ERROR_INIT;
        _cleanup_json_ json_t *doc = load(texts[i]);
        if (grant_from_json(doc, "g", a, &g, &err) == 0)
            fail_msg("%s", texts[i]);
        arena_free(a);
    }
}

static void test_bounds(void **state)
{
    (void)state;
    struct arena *a = arena_new(512);
    struct grants g = {0};
    struct error err = ERROR_INIT;
    _cleanup_json_ json_t *doc = json_pack("{s:[]}", "grants");
    json_t *array = json_object_get(doc, "grants");
    for (int i = 0; i < GRANTS_MAX; i++) {
        char bucket[16];
        snprintf(bucket, sizeof bucket, "b%d", i);
        json_array_append_new(array, json_pack("{s:[s], s:s}", "rights", "read", "bucket", bucket));
    }
    assert_int_equal(grants_from_json(doc, "g", a, &g, &err), 0);
    assert_int_equal(g.count, GRANTS_MAX);
    json_array_append_new(array, json_pack("{s:[s], s:s}", "rights", "read", "bucket", "more"));
    assert_int_equal(grants_from_json(doc, "g", a, &g, &err), E_INVALID);
    json_array_clear(array);
    for (int i = 0; i < 2; i++)
        json_array_append_new(array, json_pack("{s:[s], s:s}", "rights", "read", "bucket", "b"));
    assert_int_equal(grants_from_json(doc, "g", a, &g, &err), E_INVALID);
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_what_covers_what),
        cmocka_unit_test(test_grants_cover_together),
        cmocka_unit_test(test_json_there_and_back),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
