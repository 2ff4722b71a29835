#include "sort/shard/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/mem.h"

static struct record_table *new_table(enum sort_policy duplicates)
{
    return record_table_new("s.tar", SORT_KEY_FIRST_DOT, duplicates, 16 * 1024 * 1024);
}

static struct tar_member member(const char *path, uint64_t offset, uint64_t length)
{
    struct tar_member m = {
        .path = path, .path_len = strlen(path), .type = '0', .offset = offset, .piece_count = 1};
    m.pieces[0] = (struct tar_piece){.offset = offset, .length = length};
    return m;
}

static bool add(struct record_table *t, const char *path, uint64_t offset, uint64_t length)
{
    struct tar_member m = member(path, offset, length);
    bool replaced = false;
    assert_int_equal(record_table_add(t, &m, &replaced, NULL), 0);
    return replaced;
}

static void expect_record(struct record_table *t, size_t i, const char *name, const char *pieces)
{
    size_t len = 0;
    const char *got = record_table_name(t, i, &len);
    assert_int_equal(len, strlen(name));
    assert_memory_equal(got, name, len);
    struct buf found = BUF_INIT;
    struct buf text = BUF_INIT;
    record_table_pieces(t, i, &found);
    const struct record_piece *p = (const void *)found.data;
    for (size_t n = 0; n < found.len / sizeof *p; n++)
        buf_printf(&text, "%s%llu+%llu ", p[n].is_inline ? "i" : "",
                   (unsigned long long)p[n].offset, (unsigned long long)p[n].length);
    assert_string_equal(buf_str(&text), pieces);
    buf_done(&found);
    buf_done(&text);
}

static void test_keys(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        size_t first, last;
    } rows[] = {
        {"a/b.jpg", 3, 3}, {"a/b.seg.png", 3, 7}, {"a.d/b.c", 5, 5},
        {"a.d/b", 5, 5},   {"plain", 5, 5},       {".hidden", 0, 0},
        {"d/.x.y", 2, 4},  {"./a.b", 3, 3},       {"b.", 1, 1},
        {"", 0, 0},        {"d/", 2, 2},          {"a..b", 1, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len = strlen(rows[i].path);
        assert_int_equal(record_key_len(rows[i].path, len, SORT_KEY_FIRST_DOT), rows[i].first);
        assert_int_equal(record_key_len(rows[i].path, len, SORT_KEY_LAST_DOT), rows[i].last);
    }
}

static void test_members_group_wherever_they_stand(void **state)
{
    (void)state;
    struct record_table *t = new_table(SORT_ABORT);
    add(t, "b.jpg", 0, 512);
    add(t, "b.cls", 512, 1024);
    add(t, "a.jpg", 1536, 512);
    add(t, "b.txt", 2048, 512);
    add(t, "a.cls", 2560, 512);
    assert_int_equal(record_table_finish(t, NULL), 0);
    assert_int_equal(record_table_count(t), 2);
    expect_record(t, 0, "b", "0+1536 2048+512 ");
    expect_record(t, 1, "a", "1536+512 2560+512 ");
    record_table_free(t);
}

static void test_duplicates(void **state)
{
    (void)state;
    struct record_table *t = new_table(SORT_WARN);
    assert_false(add(t, "a.jpg", 0, 512));
    assert_false(add(t, "a.cls", 512, 512));
    assert_false(add(t, "b.x", 1024, 512));
    assert_true(add(t, "a.jpg", 1536, 512));
    assert_true(add(t, "a.jpg", 2048, 1024));
    assert_int_equal(record_table_finish(t, NULL), 0);
    expect_record(t, 0, "a", "512+512 2048+1024 ");
    expect_record(t, 1, "b", "1024+512 ");
    record_table_free(t);

    t = new_table(SORT_ABORT);
    add(t, "a.jpg", 0, 512);
    struct tar_member m = member("a.jpg", 512, 512);
    struct error err = ERROR_INIT;
    bool replaced;
    assert_int_equal(record_table_add(t, &m, &replaced, &err), E_DUPLICATE_RECORD);
    assert_string_equal(err.message, "shard 's.tar', byte 512: 'a.jpg' comes twice");
    record_table_free(t);
}

static int add_link(struct record_table *t, const char *path, const char *target)
{
    struct tar_member m = member(path, 0, 512);
    m.type = '1';
    m.link = target;
    m.link_len = strlen(target);
    bool replaced;
    return record_table_add(t, &m, &replaced, NULL);
}

static void test_hard_links_stay_with_their_record(void **state)
{
    (void)state;
    static const struct {
        const char *first, *link, *target, *second;
        int code;
    } rows[] = {
        {"a.x", "a.y", "a.x", "b.z", 0},
        {"a.x", "b.y", "a.x", "b.z", E_SHARD_UNSUPPORTED}, /* another record */
        {"b.z", "a.y", "a.x", "a.x", E_SHARD_UNSUPPORTED}, /* after the link */
        {"b.z", "a.y", "gone", "a.x", E_SHARD_UNSUPPORTED},
        {"b.z", "a.y", "a.y", "a.x", E_SHARD_UNSUPPORTED}, /* itself */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct record_table *t = new_table(SORT_ABORT);
        add(t, rows[i].first, 0, 512);
        assert_int_equal(add_link(t, rows[i].link, rows[i].target), 0);
        add(t, rows[i].second, 1024, 512);
        assert_int_equal(record_table_finish(t, NULL), rows[i].code);
        record_table_free(t);
    }
}

/* A link whose target was dropped for a later member of that name would lose it. */
static void test_hard_link_to_a_dropped_member(void **state)
{
    (void)state;
    struct record_table *t = new_table(SORT_IGNORE);
    add(t, "a.x", 0, 512);
    add_link(t, "a.y", "a.x");
    add(t, "a.x", 1024, 512);
    assert_int_equal(record_table_finish(t, NULL), E_SHARD_UNSUPPORTED);
    record_table_free(t);
}

static void test_inline_bytes_are_kept_once(void **state)
{
    (void)state;
    struct record_table *t = new_table(SORT_ABORT);
    static const char head[512] = "head";
    static const char other[512] = "other";
    const char *texts[] = {head, head, other, head};
    for (unsigned i = 0; i < 4; i++) {
        char path[8];
        snprintf(path, sizeof path, "r%u.x", i);
        struct tar_member m = member(path, 1024 * i, 512);
        m.pieces[1] = m.pieces[0];
        m.pieces[0] = (struct tar_piece){.inline_data = texts[i], .length = 512};
        m.piece_count = 2;
        bool replaced;
        assert_int_equal(record_table_add(t, &m, &replaced, NULL), 0);
    }
    assert_int_equal(record_table_inline(t)->len, 3 * 512);
    expect_record(t, 1, "r1", "i0+512 1024+512 ");
    expect_record(t, 3, "r3", "i1024+512 3072+512 ");
    record_table_free(t);
}

static void test_many(void **state)
{
    (void)state;
    struct record_table *t = new_table(SORT_ABORT);
    char path[32];
    for (unsigned i = 0; i < 30000; i++) {
        snprintf(path, sizeof path, "%05u.%u", i % 10000, i / 10000);
        add(t, path, (uint64_t)i * 512, 512);
    }
    assert_int_equal(record_table_count(t), 10000);
    expect_record(t, 77, "00077", "39424+512 5159424+512 10279424+512 ");
    record_table_free(t);
}

static void test_memory_is_bounded(void **state)
{
    (void)state;
    struct record_table *t = record_table_new("s.tar", SORT_KEY_FIRST_DOT, SORT_ABORT, 256 * 1024);
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < 100000; i++) {
        char path[32];
        snprintf(path, sizeof path, "%u", i);
        struct tar_member m = member(path, (uint64_t)i * 512, 512);
        bool replaced;
        rc = record_table_add(t, &m, &replaced, NULL);
    }
    assert_int_equal(rc, E_NOMEM);
    record_table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_members_group_wherever_they_stand),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_hard_links_stay_with_their_record),
        cmocka_unit_test(test_hard_link_to_a_dropped_member),
        cmocka_unit_test(test_inline_bytes_are_kept_once),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
