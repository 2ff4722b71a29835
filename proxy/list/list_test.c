/* Lists of a whole proxy over targets that only answer HTTP; the merge itself is tested in
 * list_merge_test.c. */
#include "proxy/list/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/testing/test_cluster.h"

enum { TARGETS = 3 };

struct world {
    struct test_client client;
    struct test_proxy *proxy;
    struct fake_target *targets[TARGETS];
};

static const char *const first[] = {"a", "d", "g", NULL};
static const char *const second[] = {"b", "e", "h", NULL};
static const char *const third[] = {"c", "d", "f", NULL};

static int setup_with(void **state, const char *const *settings)
{
    static const char *const *const names[TARGETS] = {first, second, third};
    struct world *w = xcalloc(1, sizeof *w);
    test_client_open(&w->client);
    w->proxy = test_proxy_new("p1", NULL, settings);
    for (int i = 0; i < TARGETS; i++) {
        char id[8];
        snprintf(id, sizeof id, "t%d", i + 1);
        w->targets[i] = fake_target_new(id);
        fake_target_names(w->targets[i], names[i]);
        test_join(&w->client, w->proxy, w->targets[i]);
    }
    json_decref(test_json(&w->client, HTTP_POST, w->proxy->proxy->public_url, "/v1/buckets/b",
                          "{\"action\": \"create\"}", 201));
    *state = w;
    return 0;
}

static int setup(void **state)
{
    static const char *const settings[] = {"lists_max=8", NULL};
    return setup_with(state, settings);
}

static int setup_impatient(void **state)
{
    static const char *const settings[] = {"keepalive_timeout=400ms", NULL};
    return setup_with(state, settings);
}

static int teardown(void **state)
{
    struct world *w = *state;
    test_client_close(&w->client);
    test_proxy_free(w->proxy);
    for (int i = 0; i < TARGETS; i++)
        fake_target_free(w->targets[i]);
    free(w);
    return 0;
}

static const char *base(const struct world *w)
{
    return w->proxy->proxy->public_url;
}

/* The names of a page, one after the other; its token in *next. */
static char *names_of(json_t *page, char **next)
{
    _cleanup_(buf_done)
    struct buf names = BUF_INIT;
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(page, "entries"), i, entry)
        buf_puts(&names, json_string_value(json_object_get(entry, "name")));
    if (next != NULL)
        *next = xstrdup(json_string_value(json_object_get(page, "next")));
    buf_puts(&names, "");
    return buf_steal(&names);
}

static void expect(struct world *w, const char *path, const char *names, bool incomplete)
{
    _cleanup_json_ json_t *page = test_json(&w->client, HTTP_GET, base(w), path, NULL, 200);
    _cleanup_free_ char *got = names_of(page, NULL);
    assert_string_equal(got, names);
    assert_int_equal(json_is_true(json_object_get(page, "incomplete")), incomplete);
}

static void all_targets_make_one_list(void **state)
{
    struct world *w = *state;
    expect(w, "/v1/objects/b", "abcdefgh", false);
    expect(w, "/v1/objects/b?start_after=d", "efgh", false);
    expect(w, "/v1/objects/b?limit=3", "abc", false);
    _cleanup_json_ json_t *page = test_json(
        &w->client, HTTP_POST, base(w), "/v1/buckets/b",
        "{\"action\": \"listobjects\", \"value\": {\"start_after\": \"b\", \"limit\": 2}}", 200);
    _cleanup_free_ char *names = names_of(page, NULL);
    assert_string_equal(names, "cd");
    test_error(&w->client, HTTP_POST, base(w), "/v1/buckets/b",
               "{\"action\": \"listobjects\", \"value\": {\"max\": 2}}", 400, "invalid_json",
               "max");
}

static void tokens_lead_through_all_pages(void **state)
{
    struct world *w = *state;
    _cleanup_(buf_done)
    struct buf all = BUF_INIT;
    char *token = xstrdup("");
    unsigned pages = 0;
    do {
        _cleanup_free_ char *path = xprintf("/v1/objects/b?limit=2&token=%s", token);
        free(token);
        _cleanup_json_ json_t *page = test_json(&w->client, HTTP_GET, base(w), path, NULL, 200);
        _cleanup_free_ char *names = names_of(page, &token);
        buf_puts(&all, names);
        pages++;
    } while (token[0] != '\0');
    free(token);
    assert_string_equal(buf_str(&all), "abcdefgh");
    assert_int_equal(pages, 4);
}

static void a_target_that_fails_is_told(void **state)
{
    struct world *w = *state;
    fake_target_names(w->targets[1], NULL);
    test_error(&w->client, HTTP_GET, base(w), "/v1/objects/b", NULL, 503, "not_ready", "'t2'");
    expect(w, "/v1/objects/b?partial=true", "acdfg", true);
}

static void a_target_that_is_gone_is_named(void **state)
{
    struct world *w = *state;
    fake_target_free(w->targets[2]);
    test_error(&w->client, HTTP_GET, base(w), "/v1/objects/b", NULL, 503, "node_unreachable",
               "'t3'");
    expect(w, "/v1/objects/b?partial=true", "abdegh", true);
    w->targets[2] = fake_target_new("t3");
}

static void targets_given_up_need_not_be_asked(void **state)
{
    struct world *w = *state;
    /* None of them keeps alive: the map gives up all, at the same time or nearly so. */
    test_until(test_call(&w->client, HTTP_GET, base(w), "/v1/objects/b", NULL, NULL) == 503);
    test_until(({
        _cleanup_json_ json_t *doc =
            test_json(&w->client, HTTP_GET, base(w), "/v1/objects/b?partial=true", NULL, 200);
        json_array_size(json_object_get(doc, "entries")) == 0;
    }));
    expect(w, "/v1/objects/b?partial=true", "", true);
}

static void a_limit_holds_for_lists(void **state)
{
    struct world *w = *state;
    atomic_store(&w->proxy->proxy->lists, 8);
    test_error(&w->client, HTTP_GET, base(w), "/v1/objects/b", NULL, 503, "overloaded", "limit");
    atomic_store(&w->proxy->proxy->lists, 0);
    expect(w, "/v1/objects/b", "abcdefgh", false);
    test_until(atomic_load(&w->proxy->proxy->lists) == 0);
}

int main(void)
{
#define LIST_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        LIST_TEST(all_targets_make_one_list),
        LIST_TEST(tokens_lead_through_all_pages),
        LIST_TEST(a_target_that_fails_is_told),
        LIST_TEST(a_target_that_is_gone_is_named),
        cmocka_unit_test_setup_teardown(targets_given_up_need_not_be_asked, setup_impatient,
                                        teardown),
        LIST_TEST(a_limit_holds_for_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
