#include "target/cold/back_after.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void fill(struct back_after *a, const char *name, enum checksum_type type)
{
    *a = (struct back_after){
        .version = {INT64_MAX / 2, 7, INT64_MAX / 2}, .size = UINT64_MAX, .sum.type = type};
    memcpy(a->name, name, strlen(name) + 1);
    memset(a->sum.bytes, 0xa5, checksum_size(type));
}

static void records_come_back(void **unused)
{
    (void)unused;
    char longest[ATTR_NAME_MAX + 1];
    memset(longest, '\xff', ATTR_NAME_MAX);
    longest[ATTR_NAME_MAX] = '\0';
    const char *const names[] = {"a", "ab", "abc", "x y\n", "\xc3\xa4/\xc3\xb6", longest};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (enum checksum_type type = CHECKSUM_NONE; type < CHECKSUM_TYPES; type++) {
            _cleanup_buf_ struct buf meta = BUF_INIT;
            struct back_after put, got;
            fill(&put, names[i], type);
            buf_append(&meta, "other\0x", 8);
            back_after_put(&meta, &put);
            assert_true(meta.len <= ATTR_META_MAX);
            const struct attr a = {
                .flags = ATTR_TOMBSTONE, .meta = meta.data, .meta_len = meta.len};
            assert_true(back_after_get(&a, &got));
            assert_string_equal(got.name, names[i]);
            assert_int_equal(version_compare(&got.version, &put.version), 0);
            assert_int_equal(got.size, put.size);
            assert_int_equal(got.sum.type, type);
            assert_memory_equal(got.sum.bytes, put.sum.bytes, checksum_size(type));
        }
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
                {BACK_AFTER "\0AAAA", sizeof BACK_AFTER + 5},
                {BACK_AFTER_IS "\0001.7.3/5/none/", sizeof BACK_AFTER_IS + 14}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct back_after got;
        const struct attr a = {.meta = rows[i].meta, .meta_len = rows[i].len};
        assert_false(back_after_get(&a, &got));
    }
}

/* A name is there: what else the record says is nothing, or all of it. */
static void what_is_not_said(void **unused)
{
    (void)unused;
    static const char *const values[] = {"",
                                         "1.7.3",
                                         "1.7.3/5",
                                         "1.7.3/5/xxh3",
                                         "1.7.3/5/xxh3/0123",
                                         "1.7.3/-5/none/",
                                         "1.7/5/none/",
                                         "1.7.3/5/what/",
                                         "1.7.3/5/xxh3/0123456789abcdef/"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        _cleanup_buf_ struct buf meta = BUF_INIT;
        struct back_after got;
        buf_append(&meta, BACK_AFTER "\0YQ==", sizeof BACK_AFTER + 5);
        buf_append(&meta, BACK_AFTER_IS, sizeof BACK_AFTER_IS);
        buf_append(&meta, values[i], strlen(values[i]) + 1);
        const struct attr a = {.meta = meta.data, .meta_len = meta.len};
        assert_true(back_after_get(&a, &got));
        assert_string_equal(got.name, "a");
        assert_int_equal(got.version.counter, 0);
        assert_int_equal(got.size, 0);
        assert_int_equal(got.sum.type, CHECKSUM_NONE);
    }
}

enum what { NOTHING, DELETED, FROM_BACKEND, SENT };

static void steps(void **unused)
{
    (void)unused;
    static const struct {
        enum what what;
        uint64_t counter; /* the rename made 5 */
        enum back_after_step step;
    } rows[] = {
        {NOTHING, 0, BACK_AFTER_COMPARE},
        {SENT, 4, BACK_AFTER_COMPARE},
        {SENT, 5, BACK_AFTER_GO},
        {SENT, 6, BACK_AFTER_GO},
        {DELETED, 4, BACK_AFTER_COMPARE},
        {DELETED, 6, BACK_AFTER_GO},
        {FROM_BACKEND, 4, BACK_AFTER_COMPARE},
        {FROM_BACKEND, 6, BACK_AFTER_COMPARE},
    };
    const struct back_after after = {.name = "new", .version.counter = 5};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct object_held held = {.found = rows[i].what != NOTHING,
                                   .visible = rows[i].what >= FROM_BACKEND,
                                   .sent = rows[i].what == SENT,
                                   .version.counter = rows[i].counter};
        assert_int_equal(back_after_step(&after, &held, true), rows[i].step);
        bool goes = rows[i].step == BACK_AFTER_GO;
        assert_int_equal(back_after_step(&after, &held, false),
                         goes ? BACK_AFTER_GO : BACK_AFTER_WAIT);
        held.uploading = true; /* of what was there before, say */
        assert_int_equal(back_after_step(&after, &held, true), BACK_AFTER_WAIT);
        held.uploading = false;
        held.pending = true;
        assert_int_equal(back_after_step(&after, &held, true), BACK_AFTER_WAIT);
    }
    const struct object_held unreadable = {.unreadable = true};
    assert_int_equal(back_after_step(&after, &unreadable, true), BACK_AFTER_WAIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back),
        cmocka_unit_test(what_is_none),
        cmocka_unit_test(what_is_not_said),
        cmocka_unit_test(steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
