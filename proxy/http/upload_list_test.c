/* Lists of uploads of a whole proxy over targets that only answer HTTP; the merge itself is tested
 * in upload_merge_test.c. */
#include "proxy/http/upload_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/testing/test_cluster.h"

enum { TARGETS = 2 };

#define ID(n) "AAABk0dnAAABAgMEBQYHCAkKCwwAAAAAAAAA_" n
#define ROW(object, id) "{\"object\": \"" object "\", \"upload\": \"" id "\", \"time\": 7}"

static struct {
    struct test_client client;
    struct test_proxy *proxy;
    struct fake_target *targets[TARGETS];
} w;

static int setup(void **state)
{
    (void)state;
    test_client_open(&w.client);
    w.proxy = test_proxy_new("p1", NULL, NULL);
    for (int i = 0; i < TARGETS; i++) {
        char id[8];
        snprintf(id, sizeof id, "t%d", i + 1);
        w.targets[i] = fake_target_new(id);
        test_join(&w.client, w.proxy, w.targets[i]);
    }
    json_decref(test_json(&w.client, HTTP_POST, w.proxy->proxy->public_url, "/v1/buckets/b",
                          "{\"action\": \"create\"}", 201));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    test_client_close(&w.client);
    test_proxy_free(w.proxy);
    for (int i = 0; i < TARGETS; i++)
        fake_target_free(w.targets[i]);
    return 0;
}

static const char *base(void)
{
    return w.proxy->proxy->public_url;
}

static void expect(const char *path, const char *objects, bool more)
{
    _cleanup_json_ json_t *page = test_json(&w.client, HTTP_GET, base(), path, NULL, 200);
    _cleanup_(buf_done)
    struct buf got = BUF_INIT;
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(page, "uploads"), i, row)
        buf_puts(&got, json_string_value(json_object_get(row, "object")));
    assert_string_equal(buf_str(&got), objects);
    assert_int_equal(json_is_true(json_object_get(page, "more")), more);
}

static void refuses(const char *query, int status, const char *code, const char *words)
{
    _cleanup_free_ char *path = xprintf("/v1/uploads/%s", query);
    test_error(&w.client, HTTP_GET, base(), path, NULL, status, code, words);
}

static void all_targets_make_one_list(void **state)
{
    (void)state;
    char query[64];
    expect("/v1/uploads/b", "", false);
    fake_target_uploads(w.targets[0],
                        "{\"uploads\": [" ROW("a", ID("w")) ", " ROW("c", ID("w")) "]}");
    fake_target_uploads(w.targets[1], "{\"uploads\": [" ROW("b", ID("w")) "]}");
    expect("/v1/uploads/b", "abc", false);
    expect("/v1/uploads/b?limit=2&prefix=x%26&after=%C3%A9&after_upload=" ID("w"), "ab", true);
    fake_target_header(w.targets[0], "query", query);
    assert_non_null(strstr(query, "limit=2&prefix=x%26&after="));
    test_until(atomic_load(&w.proxy->proxy->lists) == 0);
}

static void what_is_asked_is_checked(void **state)
{
    (void)state;
    _cleanup_free_ char *long_query = xprintf("b?prefix=%01025d", 0);
    refuses("b?limit=0", 400, "invalid_argument", "'limit'");
    refuses("b?limit=1001", 400, "invalid_argument", "1 to 1000");
    refuses("b?limit=x", 400, "invalid_argument", "'limit'");
    refuses("b?after=o&after_upload=x", 400, "invalid_argument", "'after_upload'");
    refuses("b?after_upload=" ID("w"), 400, "invalid_argument", "needs 'after'");
    refuses("b?after=%FF", 400, "invalid_argument", "'after'");
    refuses(long_query, 400, "invalid_argument", "'prefix'");
    refuses("b?partial=true", 400, "invalid_argument", "partial");
    refuses("c", 404, "bucket_not_found", "'c'");
    assert_int_equal(atomic_load(&w.proxy->proxy->lists), 0);
}

static void a_target_that_fails_is_named(void **state)
{
    (void)state;
    fake_target_uploads(w.targets[1], NULL);
    refuses("b", 500, "io_error", "'t2'");
    fake_target_uploads(w.targets[1], "{}");
    refuses("b", 500, "corrupt", "'t2'");
    fake_target_free(w.targets[1]);
    refuses("b", 503, "node_unreachable", "'t2'");
    w.targets[1] = fake_target_new("t2");
    test_until(atomic_load(&w.proxy->proxy->lists) == 0);
}

static void a_limit_holds_for_lists(void **state)
{
    (void)state;
    atomic_store(&w.proxy->proxy->lists, (unsigned)param_live(w.proxy->proxy->params.lists_max));
    refuses("b", 503, "overloaded", "limit");
    atomic_store(&w.proxy->proxy->lists, 0);
    expect("/v1/uploads/b", "", false);
}

int main(void)
{
#define LIST_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        LIST_TEST(all_targets_make_one_list),
        LIST_TEST(what_is_asked_is_checked),
        LIST_TEST(a_target_that_fails_is_named),
        LIST_TEST(a_limit_holds_for_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
