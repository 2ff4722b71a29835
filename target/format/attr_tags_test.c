#include "target/format/attr_tags.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "target/format/attr.h"

#define ELEVEN "a=&b=&c=&d=&e=&f=&g=&h=&i=&j=&k="

static void what_is_stored(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *stored; /* NULL: refused */
    } rows[] = {
        {"", ""},
        {"a=1&b=2", "a=1&b=2"},
        {"b&a=x+y%2f", "a=x%20y%2F&b="},
        {"%C3%A4=\xc3\xb6", "%C3%A4=%C3%B6"},
        {"a=1&a=2", NULL},
        {"=1", NULL},
        {"aws:a=1", NULL},
        {"a=%zz", NULL},
        {"a=%00", NULL},
        {"a=%ff", NULL},
        {ELEVEN, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_buf_ struct buf out = BUF_INIT;
        struct error err = ERROR_INIT;
        int code = attr_tags_normalize(rows[i].text, &out, &err);
        assert_int_equal(code, rows[i].stored == NULL ? E_INVALID : 0);
        if (code == 0)
            assert_string_equal(buf_str(&out), rows[i].stored);
    }
}

static void read_pairs(const char *meta, size_t len, struct arena *a, struct s3_tags *out)
{
    attr_tags_read(&(struct attr){.meta = meta, .meta_len = len}, a, out);
}

static void what_is_read(void **unused)
{
    (void)unused;
    static const char two[] = "colour\0red\0entity-tags\0a=1&b=x%20y", none[] = "colour\0red",
                      damaged[] = "entity-tags\0a=1&a=2";
    _cleanup_arena_ struct arena *a = arena_new(256);
    struct s3_tags t;
    read_pairs(two, sizeof two, a, &t);
    assert_int_equal(t.count, 2);
    assert_string_equal(s3_tags_get(&t, "b"), "x y");
    read_pairs(none, sizeof none, a, &t);
    assert_int_equal(t.count, 0);
    read_pairs(damaged, sizeof damaged, a, &t);
    assert_int_equal(t.count, 0);
    read_pairs(NULL, 0, a, &t);
    assert_int_equal(t.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_stored),
        cmocka_unit_test(what_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
