#include "target/back_after.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void names_come_back(void **unused)
{
    (void)unused;
    char longest[ATTR_NAME_MAX + 1];
    memset(longest, '\xff', ATTR_NAME_MAX);
    longest[ATTR_NAME_MAX] = '\0';
    const char *const names[] = {"a", "ab", "abc", "x y\n", "\xc3\xa4/\xc3\xb6", longest};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        _cleanup_(buf_done)
        struct buf meta = BUF_INIT;
        char got[ATTR_NAME_MAX + 1];
        buf_append(&meta, "other\0x", 8);
        back_after_put(&meta, names[i]);
        assert_true(meta.len <= ATTR_META_MAX);
        const struct attr a = {.flags = ATTR_TOMBSTONE, .meta = meta.data, .meta_len = meta.len};
        assert_true(back_after_get(&a, got));
        assert_string_equal(got, names[i]);
    }
}

static void what_is_none(void **unused)
{
    (void)unused;
    static const struct {
        const char *meta;
        size_t len;
    } rows[] = {{NULL, 0},
                {"other\0x", 8},
                {BACK_AFTER "\0", sizeof BACK_AFTER + 1},
                {BACK_AFTER "\0!!!!", sizeof BACK_AFTER + 5},
                {BACK_AFTER "\0AAAA", sizeof BACK_AFTER + 5}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[ATTR_NAME_MAX + 1];
        const struct attr a = {.meta = rows[i].meta, .meta_len = rows[i].len};
        assert_false(back_after_get(&a, got));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_come_back),
        cmocka_unit_test(what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
