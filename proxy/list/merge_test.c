#include "proxy/list/merge.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "common/arena.h"
#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/rng.h"
#include "proxy/list/token.h"

/* --- targets as they are ---------------------------------------------------------------------- */

struct object {
    const char *name;
    unsigned version;
    bool hidden; /* passed, not shown */
};

struct target {
    struct object objects[400];
    size_t count;
    size_t page_max;   /* it may give less than was asked for, */
    size_t passed_max; /* and pass no more than this */
};

static int compare_objects(const void *a, const void *b)
{
    return strcmp(((const struct object *)a)->name, ((const struct object *)b)->name);
}

static bool folds(const char *name, const char *delimiter, struct buf *prefix)
{
    const char *at = delimiter[0] != '\0' ? strstr(name, delimiter) : NULL;
    buf_clear(prefix);
    if (at != NULL)
        buf_append(prefix, name, (size_t)(at - name) + strlen(delimiter));
    return at != NULL;
}

static json_t *entry_json(const struct object *o)
{
    char version[32];
    snprintf(version, sizeof version, "1.%u.0", o->version);
    return json_pack("{s:s, s:s}", "name", o->name, "version", version);
}

/* What a target's page is (target/store/list.h). */
static char *target_page(const struct target *t, const char *delimiter,
                         const struct list_position *position, size_t limit)
{
    json_t *entries = json_array();
    json_t *prefixes = json_array();
    _cleanup_(buf_done)
    struct buf folded = BUF_INIT;
    _cleanup_(buf_done)
    struct buf last = BUF_INIT;
    const char *from = "";
    bool more = false;
    size_t taken = 0, passed = 0;
    buf_puts(&last, position->after);
    if (limit > t->page_max)
        limit = t->page_max;
    for (size_t i = 0; i < t->count && !more; i++) {
        const struct object *o = &t->objects[i];
        bool fold = folds(o->name, delimiter, &folded);
        const char *shown = fold ? folded.data : o->name;
        if (strcmp(o->name, position->from) <= 0 || strcmp(shown, last.data) <= 0)
            continue;
        if (o->hidden) {
            more = ++passed == t->passed_max;
            from = more ? o->name : "";
            continue;
        }
        more = taken == limit;
        if (more)
            continue;
        json_array_append_new(fold ? prefixes : entries, fold ? json_string(shown) : entry_json(o));
        buf_clear(&last);
        buf_puts(&last, shown);
        taken++;
    }
    _cleanup_json_ json_t *page = json_pack("{s:o, s:o, s:s, s:s}", "entries", entries, "prefixes",
                                            prefixes, "next", more ? last.data : "", "from", from);
    return json_text(page);
}

static int feed_text(struct list_merge *m, size_t i, const char *text, struct error *err)
{
    return list_merge_feed(m, i, xstrdup(text), strlen(text), err);
}

static json_t *page_json(struct list_merge *m)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    json_t *page = NULL;
    struct error err = ERROR_INIT;
    list_merge_page(m, &text);
    if (json_parse(text.data, text.len, &page, &err) != 0)
        fail_msg("%s: %s", err.message, text.data);
    return page;
}

static const struct list_position beginning = {.after = "", .from = ""};

static unsigned short_pages;

/* --- the whole list, page by page ------------------------------------------------------------- */

static json_t *merged_page(const struct target *targets, size_t count, const char *delimiter,
                           const struct list_position *position, size_t limit, unsigned *asked)
{
    _cleanup_(list_merge_freep)
    struct list_merge *m = list_merge_new(count, position, limit);
    while (!list_merge_done(m)) {
        bool progress = false;
        for (size_t i = 0; i < count; i++) {
            struct list_question q;
            if (!list_merge_wants(m, i, &q))
                continue;
            progress = true;
            _cleanup_free_ char *page = target_page(&targets[i], delimiter, &q.position, q.limit);
            struct error err = ERROR_INIT;
            if (feed_text(m, i, page, &err) != 0)
                fail_msg("%s", err.message);
            ++*asked;
        }
        assert_true(progress);
    }
    return page_json(m);
}

/* "name@version" and "prefix/" in order, one a line. */
static void put_page(json_t *page, struct buf *out)
{
    json_t *entries = json_object_get(page, "entries");
    json_t *prefixes = json_object_get(page, "prefixes");
    size_t e = 0;
    size_t p = 0;
    while (e < json_array_size(entries) || p < json_array_size(prefixes)) {
        json_t *entry = json_array_get(entries, e);
        const char *name = json_string_value(json_object_get(entry, "name"));
        const char *prefix = json_string_value(json_array_get(prefixes, p));
        if (prefix == NULL || (name != NULL && strcmp(name, prefix) < 0)) {
            buf_printf(out, "%s@%s\n", name, json_string_value(json_object_get(entry, "version")));
            e++;
        } else {
            buf_printf(out, "%s\n", prefix);
            p++;
        }
    }
}

static void put_merged(const struct target *targets, size_t count, const char *delimiter,
                       const char *start_after, size_t limit, struct buf *out)
{
    _cleanup_(buf_done)
    struct buf texts = BUF_INIT;
    struct list_position position = {.after = start_after, .from = ""};
    for (bool more = true; more;) {
        unsigned asked = 0;
        _cleanup_json_ json_t *page =
            merged_page(targets, count, delimiter, &position, limit, &asked);
        size_t taken = json_array_size(json_object_get(page, "entries")) +
                       json_array_size(json_object_get(page, "prefixes"));
        const char *token = json_string_value(json_object_get(page, "next"));
        more = token[0] != '\0';
        short_pages += more && taken < limit;
        /* Short only where many are passed. */
        assert_true(taken <= limit && (!more || taken == limit || asked >= LIST_ROUNDS_MAX));
        assert_true(json_is_false(json_object_get(page, "incomplete")));
        put_page(page, out);
        if (more)
            assert_int_equal(list_token_parse(token, &texts, &position, NULL), 0);
    }
}

/* What it must be: all objects in one list. */
static void put_expected(const struct target *all, const char *delimiter, const char *start_after,
                         struct buf *out)
{
    _cleanup_(buf_done)
    struct buf folded = BUF_INIT;
    _cleanup_(buf_done)
    struct buf last = BUF_INIT;
    buf_puts(&last, start_after);
    for (size_t i = 0; i < all->count; i++) {
        const struct object *o = &all->objects[i];
        bool fold = folds(o->name, delimiter, &folded);
        const char *name = fold ? folded.data : o->name;
        if (strcmp(name, last.data) <= 0)
            continue;
        if (fold)
            buf_printf(out, "%s\n", name);
        else
            buf_printf(out, "%s@1.%u.0\n", name, o->version);
        buf_clear(&last);
        buf_puts(&last, name);
    }
}

static const char *random_name(struct rng *rng, struct arena *a)
{
    static const char *const dirs[] = {"", "a/", "a/b/", "b/", "c", "\xc3\xa9/"};
    return arena_printf(a, "%s%c%llu", dirs[rng_below(rng, 6)], "/xy-"[rng_below(rng, 4)],
                        (unsigned long long)rng_below(rng, 60));
}

static bool is_known(const struct target *targets, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < targets[i].count; j++) {
            if (strcmp(targets[i].objects[j].name, name) == 0)
                return true;
        }
    }
    return false;
}

/* Objects among the targets; some have an older copy elsewhere, some are not shown. */
static void scatter(struct rng *rng, struct arena *a, struct target *targets, size_t count,
                    struct target *all)
{
    *all = (struct target){0};
    for (size_t i = 0; i < count; i++)
        targets[i] = (struct target){.page_max = 1 + rng_below(rng, 100),
                                     .passed_max = 1 + rng_below(rng, 3)};
    size_t total = rng_below(rng, 350), hidden = rng_below(rng, 11); /* of ten */
    for (size_t i = 0; i < total; i++) {
        struct object o = {random_name(rng, a), 10 + (unsigned)rng_below(rng, 10), false};
        if (is_known(targets, count, o.name))
            continue;
        o.hidden = rng_below(rng, 10) < hidden;
        if (!o.hidden)
            all->objects[all->count++] = o;
        size_t owner = rng_below(rng, count);
        targets[owner].objects[targets[owner].count++] = o;
        size_t other = rng_below(rng, count);
        if (!o.hidden && other != owner && rng_below(rng, 4) == 0)
            targets[other].objects[targets[other].count++] =
                (struct object){o.name, (unsigned)rng_below(rng, 10), false};
    }
    for (size_t i = 0; i < count; i++)
        qsort(targets[i].objects, targets[i].count, sizeof(struct object), compare_objects);
    qsort(all->objects, all->count, sizeof(struct object), compare_objects);
}

static void any_scatter_lists_as_one(void **unused)
{
    (void)unused;
    struct target *targets = xcalloc(9, sizeof *targets);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        struct arena *a = arena_new(1024);
        size_t count = 1 + rng_below(&rng, 8);
        struct target *all = &targets[8];
        scatter(&rng, a, targets, count, all);
        const char *delimiter = rng_below(&rng, 2) ? "/" : "";
        const char *start = rng_below(&rng, 2) ? random_name(&rng, a) : "";
        size_t limit = 1 + rng_below(&rng, 50);
        _cleanup_(buf_done)
        struct buf got = BUF_INIT;
        _cleanup_(buf_done)
        struct buf want = BUF_INIT;
        put_merged(targets, count, delimiter, start, limit, &got);
        put_expected(all, delimiter, start, &want);
        if (strcmp(buf_str(&got), buf_str(&want)) != 0)
            fail_msg("seed %" PRIu64 ":\n%s\ninstead of\n%s", seed, buf_str(&got), buf_str(&want));
        arena_free(a);
    }
    free(targets);
    assert_true(short_pages > 20); /* there are enough of them */
}

static void a_first_question_is_mostly_enough(void **unused)
{
    (void)unused;
    struct target *targets = xcalloc(4, sizeof *targets);
    struct arena *a = arena_new(1024);
    struct rng rng;
    rng_seed(&rng, 5);
    for (unsigned i = 0; i < 1000; i++) {
        struct target *t = &targets[rng_below(&rng, 4)];
        t->page_max = 10000;
        t->objects[t->count++] = (struct object){arena_printf(a, "%04u", i), 1, false};
    }
    unsigned asked = 0;
    _cleanup_json_ json_t *page = merged_page(targets, 4, "", &beginning, 400, &asked);
    assert_int_equal(json_array_size(json_object_get(page, "entries")), 400);
    assert_int_equal(asked, 4);
    arena_free(a);
    free(targets);
}

/* Each target has something in every directory: its share of the page is the whole page. */
static void directories_take_few_questions(void **unused)
{
    (void)unused;
    enum { TARGETS = 40, DIRECTORIES = 400 };
    struct target *targets = xcalloc(TARGETS, sizeof *targets);
    struct arena *a = arena_new(1024);
    for (size_t t = 0; t < TARGETS; t++) {
        targets[t].page_max = 10000;
        for (unsigned i = 0; i < DIRECTORIES; i++)
            targets[t].objects[targets[t].count++] =
                (struct object){arena_printf(a, "%03u/%zu", i, t), 1, false};
    }
    unsigned asked = 0;
    _cleanup_json_ json_t *page =
        merged_page(targets, TARGETS, "/", &beginning, DIRECTORIES, &asked);
    assert_int_equal(json_array_size(json_object_get(page, "prefixes")), DIRECTORIES);
    assert_true(asked <= 5 * TARGETS); /* for 28, 54, 100, 176 and the rest */
    arena_free(a);
    free(targets);
}

static void a_lost_target_makes_it_incomplete(void **unused)
{
    (void)unused;
    struct target t = {.objects = {{"a", 1, false}, {"b", 1, false}}, .count = 2, .page_max = 10};
    _cleanup_(list_merge_freep)
    struct list_merge *m = list_merge_new(2, &beginning, 10);
    _cleanup_free_ char *page = target_page(&t, "", &beginning, 10);
    assert_int_equal(feed_text(m, 0, page, NULL), 0);
    assert_false(list_merge_done(m));
    list_merge_lose(m, 1);
    assert_true(list_merge_done(m));
    _cleanup_json_ json_t *result = page_json(m);
    assert_true(json_is_true(json_object_get(result, "incomplete")));
    assert_int_equal(json_array_size(json_object_get(result, "entries")), 2);
}

static void what_is_no_list_is_refused(void **unused)
{
    (void)unused;
#define ENTRY(name) "{\"name\": \"" name "\", \"version\": \"1.2.3\"}"
    static const struct {
        const char *page;
        const char *words;
    } rows[] = {
        {"{}", "'next'"},
        {"", "no JSON"},
        {"[]", "no JSON"},
        {"{\"next\": \"\"", "no JSON"},
        {"{\"next\": \"\"} x", "follows"},
        {"{\"next\": \"\", \"x\": 01}", "no JSON"},
        {"{\"next\": \"\", \"x\": [[[[[[[[[[1]]]]]]]]]]}", "deeply"},
        {"{\"next\": \"\", \"x\": \"\xff\"}", "no UTF-8"},
        {"{\"next\": \"\", \"prefixes\": [\"a\\u0000b\"]}", "none"},
        {"{\"next\": \"\", \"prefixes\": [\"\\ud800x\"]}", "none"},
        {"{\"next\": \"\", \"entries\": 5}", "no JSON"},
        {"{\"next\": \"\", \"entries\": [{}]}", "lacks"},
        {"{\"next\": \"\", \"entries\": [{\"name\": \"a\"}]}", "lacks"},
        {"{\"next\": \"\", \"entries\": [{\"name\": \"a\", \"version\": \"1.2\"}]}", "lacks"},
        {"{\"next\": \"\", \"entries\": [{\"name\": \"a\", \"version\": \"1.2.3.4\"}]}", "lacks"},
        {"{\"next\": \"\", \"entries\": [{\"name\": \"a\", \"version\": \"1..3\"}]}", "lacks"},
        {"{\"next\": \"\", \"prefixes\": [1]}", "no text"},
        {"{\"next\": \"\", \"entries\": [" ENTRY("b") ", " ENTRY("a") "]}", "'a' is out of order"},
        {"{\"next\": \"\", \"entries\": [" ENTRY("a") ", " ENTRY("a") "]}", "'a' is out of order"},
        {"{\"next\": \"\", \"prefixes\": [\"b/\", \"a/\"]}", "'a/' is out of order"},
        {"{\"next\": \"5\", \"entries\": []}", "does not get on"},
        {"{\"next\": \"\", \"from\": \"4\"}", "does not get on"},
        {"{\"next\": \"4\", \"entries\": [" ENTRY("5") "]}", "does not get on"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_(list_merge_freep)
        struct list_merge *m =
            list_merge_new(1, &(struct list_position){.after = "5", .from = ""}, 10);
        struct error err = ERROR_INIT;
        if (feed_text(m, 0, rows[i].page, &err) != E_CORRUPT ||
            strstr(err.message, rows[i].words) == NULL)
            fail_msg("row %zu: %s '%s'", i, error_name(err.code), err.message);
    }
}

/* What is passed on is what came, whatever it is made of. */
static void entries_come_through_as_they_are(void **unused)
{
    (void)unused;
    static const char page[] =
        " {\"entries\" : [ {\"name\":\"\\u00e9\\ud83d\\udc27\\n\\\"\\/\", \"version\": \"1.2.3\","
        " \"more\": [1, -2.5e+3, {\"a\": null, \"b\": [true, false, \"\"]}]} ], \"next\": \"\" } ";
    _cleanup_(list_merge_freep)
    struct list_merge *m = list_merge_new(1, &beginning, 10);
    struct error err = ERROR_INIT;
    if (feed_text(m, 0, page, &err) != 0)
        fail_msg("%s", err.message);
    _cleanup_json_ json_t *before = NULL;
    assert_int_equal(json_parse(page, strlen(page), &before, NULL), 0);
    _cleanup_json_ json_t *after = page_json(m);
    assert_true(json_equal(json_object_get(before, "entries"), json_object_get(after, "entries")));
}

static void tokens_come_back(void **unused)
{
    (void)unused;
    static const char *const names[] = {"a",  "ab", "abc", "abcd", "a/", "\xf0\x9f\x90\xa7",
                                        "..", " "};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        _cleanup_(buf_done)
        struct buf token = BUF_INIT;
        _cleanup_(buf_done)
        struct buf texts = BUF_INIT;
        struct list_position p = {.after = i % 3 == 2 ? "" : names[i],
                                  .from = i % 3 == 0 ? "" : names[i]},
                             got;
        list_token_put(&token, &p);
        assert_null(strpbrk(token.data, "+/=&?% "));
        assert_int_equal(list_token_parse(token.data, &texts, &got, NULL), 0);
        assert_string_equal(got.after, p.after);
        assert_string_equal(got.from, p.from);
        token.data[token.len - 1] = '!';
        assert_int_equal(list_token_parse(token.data, &texts, &got, NULL), E_INVALID);
    }
    /* Nothing, too little, no version byte, spare bits that are not zero, a name that is none. */
    static const char *const bad[] = {"",    "b",   "bg",  "YWJj", "bmF",   "bv8",
                                      "bgA", "a b", "cGE", "cGEA", "bmEAYg"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        _cleanup_(buf_done)
        struct buf texts = BUF_INIT;
        struct list_position got;
        assert_int_equal(list_token_parse(bad[i], &texts, &got, NULL), E_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_scatter_lists_as_one),
        cmocka_unit_test(a_first_question_is_mostly_enough),
        cmocka_unit_test(directories_take_few_questions),
        cmocka_unit_test(a_lost_target_makes_it_incomplete),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(entries_come_through_as_they_are),
        cmocka_unit_test(tokens_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
