#include "common/backup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "common/jsonx.h"

static json_t *example(void)
{
    return json_pack("{s:i, s:s, s:{s:[i, i]}}", "format", 1, "cluster", "c-1", "bmd", "buckets", 1,
                     2);
}

static void what_was_wrapped_is_whole(void **unused)
{
    (void)unused;
    _cleanup_json_ json_t *state = example();
    _cleanup_json_ json_t *doc = backup_wrap(state, "0.1.0", 42);
    assert_true(backup_is(doc));
    assert_false(backup_is(state));
    /* Also when it was formatted anew, and its keys stand elsewhere. */
    _cleanup_free_ char *text = json_dumps(doc, JSON_INDENT(4) | JSON_SORT_KEYS);
    _cleanup_json_ json_t *again = NULL;
    json_t *found = NULL;
    assert_int_equal(json_parse(text, strlen(text), &again, NULL), 0);
    assert_int_equal(backup_unwrap(again, &found, NULL), 0);
    assert_true(json_equal(found, state));
}

static void what_was_changed_is_told(void **unused)
{
    (void)unused;
    _cleanup_json_ json_t *state = example();
    json_t *found;
    _cleanup_json_ json_t *changed = backup_wrap(state, "0.1.0", 42);
    json_object_set_new(state, "cluster", json_string("c-2")); /* the backup has the same object */
    assert_int_equal(backup_unwrap(changed, &found, NULL), E_CORRUPT);
    assert_int_equal(backup_unwrap(state, &found, NULL), E_INVALID);
    _cleanup_json_ json_t *later = backup_wrap(state, "0.1.0", 42);
    json_object_set_new(later, "dfc_backup", json_integer(2));
    assert_int_equal(backup_unwrap(later, &found, NULL), E_UNSUPPORTED);
    _cleanup_json_ json_t *cut = backup_wrap(state, "0.1.0", 42);
    json_object_del(cut, "checksum");
    assert_int_equal(backup_unwrap(cut, &found, NULL), E_CORRUPT);
    /* What a later release adds beside these is passed over. */
    _cleanup_json_ json_t *more = backup_wrap(state, "0.2.0", 42);
    json_object_set_new(more, "by", json_string("somebody"));
    assert_int_equal(backup_unwrap(more, &found, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_wrapped_is_whole),
        cmocka_unit_test(what_was_changed_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
