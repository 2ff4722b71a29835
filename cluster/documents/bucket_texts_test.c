#include "cluster/documents/bucket_texts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "common/jsonx.h"
#include "common/mem.h"

static int patch(struct bucket_texts *t, json_t *doc)
{
    return bucket_texts_patch(doc, "b.texts", t, NULL);
}

static void test_names(void **state)
{
    (void)state;
    for (enum bucket_text i = 0; i < BUCKET_TEXTS; i++)
        assert_int_equal(bucket_text_find(bucket_text_name(i)), i);
    assert_int_equal(bucket_text_find("policy"), BUCKET_TEXTS);
}

static void test_a_patch_changes_what_it_names(void **state)
{
    (void)state;
    struct bucket_texts t = {{[BUCKET_TAGS] = "a", [BUCKET_CORS] = "b"}};
    _cleanup_json_ json_t *doc =
        json_pack("{s:n, s:s, s:i}", "tags", "lifecycle", "c", "of a later release", 1);
    assert_int_equal(patch(&t, doc), 0);
    assert_null(t.text[BUCKET_TAGS]);
    assert_string_equal(t.text[BUCKET_CORS], "b");
    assert_string_equal(t.text[BUCKET_LIFECYCLE], "c");
    assert_int_equal(bucket_texts_bytes(&t), 2);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    struct bucket_texts t = {{NULL}};
    _cleanup_free_ char *most = xcalloc(1, BUCKET_TEXT_MAX + 2);
    _cleanup_json_ json_t *number = json_pack("{s:i}", "cors", 1);
    assert_int_equal(patch(&t, number), E_JSON);
    memset(most, 'x', BUCKET_TEXT_MAX);
    _cleanup_json_ json_t *fits = json_pack("{s:s}", "cors", most);
    assert_int_equal(patch(&t, fits), 0);
    most[BUCKET_TEXT_MAX] = 'x';
    _cleanup_json_ json_t *is_long = json_pack("{s:s}", "cors", most);
    assert_int_equal(patch(&t, is_long), E_INVALID);
}

static void test_json_and_copies_are_the_same(void **state)
{
    (void)state;
    const struct bucket_texts none = {{NULL}};
    const struct bucket_texts t = {{[BUCKET_CORS] = "<a>\n\"</a>", [BUCKET_LIFECYCLE] = "z"}};
    struct arena *a = arena_new(64);
    const struct bucket_texts copy = bucket_texts_copy(&t, a);
    _cleanup_json_ json_t *doc = bucket_texts_to_json(&t);
    struct bucket_texts read = {{NULL}};
    assert_null(bucket_texts_to_json(&none));
    assert_int_equal(patch(&read, doc), 0);
    assert_true(bucket_texts_equal(&t, &read));
    assert_true(bucket_texts_equal(&t, &copy));
    assert_ptr_not_equal(t.text[BUCKET_CORS], copy.text[BUCKET_CORS]);
    assert_false(bucket_texts_equal(&t, &none));
    arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_a_patch_changes_what_it_names),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_json_and_copies_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
