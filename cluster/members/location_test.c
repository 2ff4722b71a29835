#include "cluster/members/location.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "common/parse.h"

static void paths_are_what_no_client_changes(void **unused)
{
    (void)unused;
    static const struct {
        const char *object;
        const char *path;
    } rows[] = {
        {"x", "/v1/objects/b/x"},
        {"a/b/c", "/v1/objects/b/a/b/c"},
        {"a/", "/v1/objects/b/a/"},
        {"a b?c#d%", "/v1/objects/b/a%20b%3Fc%23d%25"},
        {"\xc3\xa9", "/v1/objects/b/%C3%A9"},
        {"...", "/v1/objects/b/..."},
        {"a..b/.c", "/v1/objects/b/a..b/.c"},
        {".", "/v1/objects/b/%2E"},
        {"..", "/v1/objects/b/%2E%2E"},
        {"../x", "/v1/objects/b/..%2Fx"},
        {"a/../b", "/v1/objects/b/a%2F..%2Fb"},
        {"a/.", "/v1/objects/b/a%2F."},
        {"a//b", "/v1/objects/b/a%2F%2Fb"},
        {"/a", "/v1/objects/b/%2Fa"},
        {"/", "/v1/objects/b/%2F"},
        {"a//", "/v1/objects/b/a%2F%2F"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_(buf_done)
        struct buf out = BUF_INIT;
        location_put_object(&out, "b", rows[i].object);
        assert_string_equal(buf_str(&out), rows[i].path);
        char back[64];
        size_t head = strlen("/v1/objects/b/");
        int64_t len = parse_url_unescape(out.data + head, out.len - head, back, NULL);
        assert_int_equal(len, strlen(rows[i].object));
        assert_memory_equal(back, rows[i].object, (size_t)len);
    }
}

static void a_query_loses_only_what_is_named(void **unused)
{
    (void)unused;
    static const char *const drop[] = {"dfcb", "redirect", NULL};
    static const struct {
        const char *raw;
        const char *left;
    } rows[] = {
        {"", ""},
        {"a=b&c=d", "?a=b&c=d"},
        {"dfcb=9&a=%20b", "?a=%20b"},
        {"a=b&redirect=never", "?a=b"},
        {"redirect&dfcb=&a", "?a"},
        {"&&a=b&&", "?a=b"},
        {"redirects=1&xdfcb=2", "?redirects=1&xdfcb=2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_(buf_done)
        struct buf out = BUF_INIT;
        char separator = '?';
        location_put_query(&out, rows[i].raw, drop, &separator);
        assert_string_equal(buf_str(&out), rows[i].left);
        assert_int_equal(separator, rows[i].left[0] == '\0' ? '?' : '&');
    }
}

static void a_target_is_told_what_the_sender_knows(void **unused)
{
    (void)unused;
    struct cluster_state *s = state_new("c");
    s->term = 4;
    s->version = 71;
    const struct node n = {.public_url = "http://h:8081"};
    const struct bucket b = {.id = 3, .name = "bu"};
    _cleanup_(buf_done)
    struct buf out = BUF_INIT;
    location_put_target(&out, &n, s, &b, "o/p", "offset=5&dfcv=1.1&redirect=never");
    assert_string_equal(buf_str(&out), "http://h:8081/v1/objects/bu/o/p?offset=5&dfcb=3&dfcv=4.71");
    buf_clear(&out);
    location_put_upload_target(&out, &n, s, &b, "../p", "upload=U&part=2&dfca=x");
    assert_string_equal(buf_str(&out),
                        "http://h:8081/v1/uploads/bu/..%2Fp?upload=U&part=2&dfcb=3&dfcv=4.71");
    state_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_what_no_client_changes),
        cmocka_unit_test(a_query_loses_only_what_is_named),
        cmocka_unit_test(a_target_is_told_what_the_sender_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
