/* Sums over pages, and what is kept of them between requests. */
#include "proxy/ais/bucket_sums.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "proxy/ais/summaries.h"

static int add(struct bucket_sums *s, const char *text, char **next)
{
    struct error err = ERROR_INIT;
    const struct buf page = {.data = (char *)text, .len = strlen(text)};
    return bucket_sums_add(s, &page, next, &err);
}

static void expect_json(const struct bucket_sums *s, bool remote, const char *wanted)
{
    _cleanup_json_ json_t *doc = bucket_sums_json(s, "b", remote);
    _cleanup_free_ char *text = json_text(doc);
    assert_string_equal(text, wanted);
}

#define SUMS(present, remote, min, avg, max, bytes, all)                                           \
    "{\"name\":\"b\",\"provider\":\"ais\",\"ObjCount\":{\"obj_count_present\":\"" present          \
    "\",\"obj_count_remote\":\"" remote "\"},\"ObjSize\":{\"obj_min_size\":" min                   \
    ",\"obj_avg_size\":" avg ",\"obj_max_size\":" max "},\"TotalSize\":{\"size_on_disk\":\"" bytes \
    "\",\"size_all_present_objs\":\"" bytes "\",\"size_all_remote_objs\":\"" all                   \
    "\",\"total_disks_size\":\"0\"},\"used_pct\":0,\"is_present\":true}"

static void test_pages(void **state)
{
    (void)state;
    struct bucket_sums s = {0};
    char *next = NULL;
    expect_json(&s, false, SUMS("0", "0", "0", "0", "0", "0", "0"));
    assert_int_equal(add(&s, "{\"entries\":[],\"next\":\"\"}", &next), 0);
    assert_null(next);
    assert_int_equal(add(&s, "{\"entries\":[{\"size\":5},{\"size\":0}],\"next\":\"here\"}", &next),
                     0);
    assert_string_equal(next, "here");
    free(next);
    assert_int_equal(add(&s, "{\"entries\":[{\"size\":7,\"cached\":false}],\"next\":\"\"}", &next),
                     0);
    assert_null(next);
    expect_json(&s, true, SUMS("2", "3", "0", "4", "7", "5", "12"));
    expect_json(&s, false, SUMS("2", "0", "0", "4", "7", "5", "0"));
    static const char *const bad[] = {"", "[]", "{}", "{\"entries\":[]}",
                                      "{\"entries\":7,\"next\":\"\"}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_not_equal(add(&s, bad[i], &next), 0);
}

static void test_what_is_kept(void **state)
{
    (void)state;
    struct summaries *kept = summaries_new();
    struct bucket_sums s = {.all = 7}, got = {0};
    char *token = NULL, key[24];
    assert_false(summaries_take(kept, "a", &got, &token));
    summaries_put(kept, "a", &s, "t");
    assert_false(summaries_take(kept, "b", &got, &token));
    assert_true(summaries_take(kept, "a", &got, &token));
    assert_int_equal(got.all, 7);
    assert_string_equal(token, "t");
    free(token);
    assert_false(summaries_take(kept, "a", &got, &token));
    for (int i = 0; i <= SUMMARIES_MAX; i++) {
        snprintf(key, sizeof key, "%d", i);
        summaries_put(kept, key, &s, "t");
    }
    assert_false(summaries_take(kept, "0", &got, &token));
    assert_true(summaries_take(kept, "1", &got, &token));
    free(token);
    summaries_free(kept);
    summaries_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_what_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
