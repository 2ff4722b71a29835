#include "target/archive/member_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "target/archive/member_list.h"

static void add(struct member_table *t, const char *name, uint64_t offset)
{
    member_table_add(t, &(struct member_place){.name = name,
                                               .name_len = strlen(name),
                                               .kind = MEMBER_FILE,
                                               .offset = offset,
                                               .size = 10 * offset,
                                               .mtime_s = -1});
}

static void expect(const struct member_table *t, const char *name, uint64_t offset)
{
    struct member_place m;
    assert_true(member_table_find(t, name, strlen(name), &m));
    assert_int_equal(m.offset, offset);
    assert_int_equal(m.size, 10 * offset);
}

static void test_the_last_of_a_name_wins(void **state)
{
    (void)state;
    struct member_table *t = member_table_new();
    struct member_place m;
    add(t, "b", 1);
    add(t, "a", 2);
    add(t, "b", 3);
    add(t, "ab", 4);
    add(t, "b", 5);
    member_table_finish(t);
    assert_int_equal(member_table_count(t), 3);
    expect(t, "a", 2);
    expect(t, "ab", 4);
    expect(t, "b", 5);
    assert_false(member_table_find(t, "", 0, &m));
    assert_false(member_table_find(t, "c", 1, &m));
    assert_false(member_table_find(t, "aa", 2, &m));
    member_table_free(t);
}

static void test_an_empty_table(void **state)
{
    (void)state;
    struct member_table *t = member_table_new();
    struct member_place m;
    struct buf page = BUF_INIT;
    const struct version version = {.term = 1, .map = 2, .counter = 3};
    member_table_finish(t);
    assert_int_equal(member_table_count(t), 0);
    assert_false(member_table_find(t, "a", 1, &m));
    member_list_put(&page, t, &version, "a", 1);
    assert_string_equal(buf_str(&page),
                        "{\"version\":\"1.2.3\",\"count\":0,\"members\":[],\"truncated\":false}");
    buf_done(&page);
    member_table_free(t);
}

static void test_pages_follow_one_another(void **state)
{
    (void)state;
    struct member_table *t = member_table_new();
    const struct version version = {.term = 1, .map = 1, .counter = 1};
    struct buf page = BUF_INIT;
    add(t, "\xff/x", 1);
    add(t, "\"b\"", 2);
    add(t, "a", 3);
    member_table_finish(t);
    member_list_put(&page, t, &version, NULL, 1);
    assert_non_null(strstr(buf_str(&page), "[{\"name\":\"\\\"b\\\"\",\"type\":\"file\",\"size\":20,"
                                           "\"offset\":2,\"modified\":-1}],\"truncated\":true}"));
    buf_clear(&page);
    member_list_put(&page, t, &version, "\"b\"", SIZE_MAX);
    assert_non_null(strstr(buf_str(&page), "{\"name\":\"a\""));
    assert_non_null(strstr(buf_str(&page), "{\"escaped\":\"%FF/x\""));
    assert_non_null(strstr(buf_str(&page), "\"truncated\":false}"));
    assert_null(strstr(buf_str(&page), "\\\"b"));
    buf_done(&page);
    member_table_free(t);
}

static void test_limits(void **state)
{
    (void)state;
    size_t limit;
    assert_int_equal(member_list_limit(NULL, &limit, NULL), 0);
    assert_int_equal(limit, MEMBER_LIST_DEFAULT);
    assert_int_equal(member_list_limit("10000", &limit, NULL), 0);
    assert_int_equal(limit, 10000);
    static const char *const bad[] = {"", "0", "10001", "x", "-1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(member_list_limit(bad[i], &limit, NULL), E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_of_a_name_wins),
        cmocka_unit_test(test_an_empty_table),
        cmocka_unit_test(test_pages_follow_one_another),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
