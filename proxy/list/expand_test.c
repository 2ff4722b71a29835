/* Pages of a list and of members make one list; nothing is lost or shown twice where it is cut. */
#include "proxy/list/expand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/list/token.h"

/* --- a cluster as it is ----------------------------------------------------------------------- */

struct thing {
    const char *name, *more; /* of an entry */
    const char *members[6];
};

static const struct thing bucket[] = {
    {.name = "a.tar", .members = {"1", "2/3", "dir/", "z", "\xff"}},
    {.name = "a.tar-b"},
    {.name = "b.tar"},
    {.name = "c.zip", .more = ",\"cached\":false", .members = {"unseen"}},
    {.name = "d.TGZ", .members = {"q\"uote"}},
};
enum { THINGS = sizeof bucket / sizeof bucket[0] };

static void put_entries(struct buf *page, const char *after, size_t limit, char **last)
{
    for (size_t i = 0; i < THINGS && limit > 0; i++) {
        if (strcmp(bucket[i].name, after) <= 0)
            continue;
        buf_printf(page, "%s{\"name\":\"%s\",\"size\":9%s}", *last != NULL ? "," : "",
                   bucket[i].name, bucket[i].more != NULL ? bucket[i].more : "");
        free(*last);
        *last = xstrdup(bucket[i].name);
        limit--;
    }
}

/* As the plain list gives it. */
static void feed_page(struct list_expand *e, const struct list_expand_question *q)
{
    struct error err = ERROR_INIT;
    _cleanup_buf_ struct buf texts = BUF_INIT, page = BUF_INIT, token = BUF_INIT;
    _cleanup_free_ char *last = NULL;
    struct list_position at = {.after = "", .from = ""};
    if (q->token != NULL)
        assert_int_equal(list_token_parse(q->token, &texts, &at, &err), 0);
    buf_puts(&page, "{\"entries\":[");
    put_entries(&page, at.after, q->limit, &last);
    if (last != NULL && strcmp(last, bucket[THINGS - 1].name) != 0)
        list_token_put(&token, &(struct list_position){.after = last, .from = ""});
    buf_printf(&page, "],\"prefixes\":[],\"next\":\"%s\",\"incomplete\":false}", buf_str(&token));
    assert_int_equal(list_expand_page(e, page.data, page.len, &err), 0);
}

static const struct thing *find(const char *name)
{
    for (size_t i = 0; i < THINGS; i++) {
        if (strcmp(bucket[i].name, name) == 0)
            return &bucket[i];
    }
    return NULL;
}

static void put_member(struct buf *page, const char *name)
{
    bool is_text = name[0] != '\xff';
    buf_printf(page, is_text ? "{\"name\":\"" : "{\"escaped\":\"%%FF");
    if (is_text)
        buf_put_json_escaped(page, name, strlen(name));
    buf_printf(page, "\",\"type\":\"%s\",\"size\":3,\"modified\":7}",
               name[strlen(name) - 1] == '/' ? "directory" : "file");
}

/* As a target gives them; at most two, so that pages are cut often. */
static void feed_members(struct list_expand *e, const struct list_expand_question *q)
{
    struct error err = ERROR_INIT;
    const struct thing *thing = find(q->archive);
    _cleanup_buf_ struct buf page = BUF_INIT;
    size_t shown = 0, i = 0;
    assert_non_null(thing);
    if (thing->members[0] == NULL) {
        list_expand_no_members(e);
        return;
    }
    buf_puts(&page, "{\"version\":\"1.2.3\",\"members\":[");
    for (; i < 6 && thing->members[i] != NULL && shown < 2 && shown < q->limit; i++) {
        if (strcmp(thing->members[i], q->after) <= 0)
            continue;
        if (shown++ > 0)
            buf_putc(&page, ',');
        put_member(&page, thing->members[i]);
    }
    buf_printf(&page, "],\"truncated\":%s}", i < 6 && thing->members[i] != NULL ? "true" : "false");
    assert_int_equal(list_expand_members(e, page.data, page.len, &err), 0);
}

/* A page, and the token of the next one in *token. */
static json_t *list(char **token, size_t limit)
{
    struct error err = ERROR_INIT;
    struct list_expand_question q;
    enum list_expand_step step;
    _cleanup_(list_expand_freep)
    struct list_expand *e = list_expand_new(*token, limit);
    while ((step = list_expand_next(e, &q)) != EXPAND_DONE) {
        if (step == EXPAND_PAGE)
            feed_page(e, &q);
        else
            feed_members(e, &q);
    }
    _cleanup_buf_ struct buf out = BUF_INIT;
    json_t *page = NULL;
    list_expand_put(e, &out);
    assert_int_equal(json_parse(out.data, out.len, &page, &err), 0);
    free(*token);
    *token = xstrdup(json_string_value(json_object_get(page, "next")));
    return page;
}

static void add_names(json_t *page, struct buf *names)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(page, "entries"), i, entry)
        buf_printf(names, "%s ", json_string_value(json_object_get(entry, "name")));
}

#define ALL "a.tar a.tar/1 a.tar/2/3 a.tar/z a.tar/%FF a.tar-b b.tar c.zip d.TGZ d.TGZ/q\"uote "

static void pages_of_all_sizes_are_one_list(void **state)
{
    (void)state;
    for (size_t limit = 1; limit < 14; limit++) {
        _cleanup_buf_ struct buf names = BUF_INIT;
        char *token = NULL;
        do {
            _cleanup_json_ json_t *page = list(&token, limit);
            assert_true(json_array_size(json_object_get(page, "entries")) <= limit);
            add_names(page, &names);
        } while (token[0] != '\0');
        free(token);
        assert_string_equal(buf_str(&names), ALL);
    }
}

static void a_member_is_told_from_an_object(void **state)
{
    (void)state;
    char *token = NULL;
    _cleanup_json_ json_t *page = list(&token, 100);
    const json_t *entries = json_object_get(page, "entries");
    const json_t *member = json_array_get(entries, 1), *escaped = json_array_get(entries, 4);
    free(token);
    assert_null(json_object_get(json_array_get(entries, 0), "member"));
    assert_true(json_is_true(json_object_get(member, "member")));
    assert_string_equal(json_string_value(json_object_get(member, "version")), "1.2.3");
    assert_int_equal(json_integer_value(json_object_get(member, "size")), 3);
    assert_int_equal(json_integer_value(json_object_get(member, "modified_ms")), 7000);
    assert_null(json_object_get(member, "escaped"));
    assert_true(json_is_true(json_object_get(escaped, "escaped")));
}

/* Common prefixes stand between entries; a page that ends before one does not show it. */
static void prefixes_are_cut_as_entries(void **state)
{
    (void)state;
    static const char page[] =
        "{\"entries\":[{\"name\":\"a.tar\"},{\"name\":\"c\"}],\"prefixes\":[\"b/\",\"d/\"],"
        "\"next\":\"\",\"incomplete\":true}";
    static const struct {
        size_t limit;
        const char *text;
    } rows[] = {
        {1, "{\"entries\":[{\"name\":\"a.tar\"}],\"prefixes\":[],\"next\":\"bWEudGFyAA\""},
        {2, "{\"entries\":[{\"name\":\"a.tar\"}],\"prefixes\":[\"b/\"],\"next\":\"bmIv\""},
        {4, "{\"entries\":[{\"name\":\"a.tar\"},{\"name\":\"c\"}],\"prefixes\":[\"b/\",\"d/\"],"
            "\"next\":\"\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        struct list_expand_question q;
        _cleanup_buf_ struct buf out = BUF_INIT, wanted = BUF_INIT;
        _cleanup_(list_expand_freep)
        struct list_expand *e = list_expand_new(NULL, rows[i].limit);
        assert_int_equal(list_expand_next(e, &q), EXPAND_PAGE);
        assert_int_equal(list_expand_page(e, page, sizeof page - 1, &err), 0);
        while (list_expand_next(e, &q) == EXPAND_MEMBERS)
            list_expand_no_members(e);
        list_expand_put(e, &out);
        buf_printf(&wanted, "%s,\"incomplete\":true}", rows[i].text);
        assert_string_equal(buf_str(&out), buf_str(&wanted));
    }
}

static void what_is_no_page_is_refused(void **state)
{
    (void)state;
    static const char *const pages[] = {
        "", "[]", "{\"entries\":[{}],\"prefixes\":[],\"next\":\"\"}",
        "{\"entries\":[],\"prefixes\":[1],\"next\":\"\"}", "{\"entries\":[],\"prefixes\":[]}"};
    static const char *const members[] = {
        "", "{}", "{\"version\":\"1\",\"members\":[],\"truncated\":true}",
        "{\"version\":\"1\",\"members\":[{\"name\":\"a\"}],\"truncated\":false}",
        "{\"version\":\"1\",\"members\":[{\"type\":\"file\"}],\"truncated\":false}"};
    _cleanup_(list_expand_freep)
    struct list_expand *e = list_expand_new(NULL, 10);
    for (size_t i = 0; i < 5; i++) {
        struct error err = ERROR_INIT;
        assert_true(list_expand_page(e, pages[i], strlen(pages[i]), &err) < 0);
        assert_true(list_expand_members(e, members[i], strlen(members[i]), &err) < 0);
    }
}

static void names_of_archives(void **state)
{
    (void)state;
    static const char *const archives[] = {"a.tar", "a/b.TAR.GZ", "x.tgz", "x.zip", "x.tar.zst"};
    static const char *const others[] = {"tar", ".tar", "a.tar.b", "a.gz", "a.tar/", ""};
    for (size_t i = 0; i < sizeof archives / sizeof archives[0]; i++)
        assert_true(list_expand_is_archive(archives[i]));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(list_expand_is_archive(others[i]));
}

/* One that was cut or made up leads to the plain list, which refuses it. */
static void tokens_that_are_none(void **state)
{
    (void)state;
    static const char *const tokens[] = {"bQ", "bWE", "bWEAYgBj", "bQBh", "!"};
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        struct list_expand_question q;
        _cleanup_(list_expand_freep)
        struct list_expand *e = list_expand_new(tokens[i], 10);
        assert_int_equal(list_expand_next(e, &q), EXPAND_PAGE);
        assert_string_equal(q.token, tokens[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_of_all_sizes_are_one_list),
        cmocka_unit_test(a_member_is_told_from_an_object),
        cmocka_unit_test(prefixes_are_cut_as_entries),
        cmocka_unit_test(what_is_no_page_is_refused),
        cmocka_unit_test(names_of_archives),
        cmocka_unit_test(tokens_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
