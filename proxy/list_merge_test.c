#include "proxy/list_merge.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "common/arena.h"
#include "common/buf.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/rng.h"
#include "proxy/list_token.h"

/* --- targets as they are ---------------------------------------------------------------------- */

struct object {
    const char *name;
    unsigned version;
};

struct target {
    struct object objects[400];
    size_t count;
    size_t page_max; /* it may give less than was asked for */
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

/* Takes start_after as a name, so that a common prefix it ended with comes again. */
static json_t *target_page(const struct target *t, const char *delimiter, const char *start_after,
                           size_t limit)
{
    json_t *entries = json_array();
    json_t *prefixes = json_array();
    _cleanup_(buf_done)
    struct buf folded = BUF_INIT;
    const char *last = "";
    const char *next = "";
    size_t taken = 0;
    if (limit > t->page_max)
        limit = t->page_max;
    for (size_t i = 0; i < t->count; i++) {
        const struct object *o = &t->objects[i];
        size_t n = json_array_size(prefixes);
        if (strcmp(o->name, start_after) <= 0)
            continue;
        bool fold = folds(o->name, delimiter, &folded);
        if (fold && n > 0 &&
            strcmp(json_string_value(json_array_get(prefixes, n - 1)), folded.data) == 0)
            continue;
        if (taken == limit) {
            next = last;
            break;
        }
        if (fold)
            json_array_append_new(prefixes, json_string(folded.data));
        else
            json_array_append_new(entries, entry_json(o));
        last = o->name;
        taken++;
    }
    return json_pack("{s:o, s:o, s:s}", "entries", entries, "prefixes", prefixes, "next", next);
}

/* --- the whole list, page by page ---------------------------------------------------------------
 */

static json_t *merged_page(const struct target *targets, size_t count, const char *delimiter,
                           const char *start_after, size_t limit, unsigned *asked)
{
    _cleanup_(list_merge_freep)
    struct list_merge *m = list_merge_new(count, start_after, limit);
    while (!list_merge_done(m)) {
        bool progress = false;
        for (size_t i = 0; i < count; i++) {
            const char *after;
            size_t want;
            if (!list_merge_wants(m, i, &after, &want))
                continue;
            progress = true;
            _cleanup_json_ json_t *page = target_page(&targets[i], delimiter, after, want);
            struct error err = ERROR_INIT;
            if (list_merge_feed(m, i, page, &err) != 0)
                fail_msg("%s", err.message);
            ++*asked;
        }
        assert_true(progress);
    }
    return list_merge_page(m);
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
    struct buf after = BUF_INIT;
    buf_puts(&after, start_after);
    for (bool more = true; more;) {
        unsigned asked = 0;
        _cleanup_json_ json_t *page =
            merged_page(targets, count, delimiter, after.data, limit, &asked);
        size_t taken = json_array_size(json_object_get(page, "entries")) +
                       json_array_size(json_object_get(page, "prefixes"));
        const char *token = json_string_value(json_object_get(page, "next"));
        more = token[0] != '\0';
        assert_true(more ? taken == limit : taken <= limit);
        assert_true(json_is_false(json_object_get(page, "incomplete")));
        put_page(page, out);
        buf_clear(&after);
        if (more)
            assert_int_equal(list_token_parse(token, &after, NULL), 0);
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

/* Objects among the targets; some have an older copy elsewhere. */
static void scatter(struct rng *rng, struct arena *a, struct target *targets, size_t count,
                    struct target *all)
{
    *all = (struct target){0};
    for (size_t i = 0; i < count; i++)
        targets[i] = (struct target){.page_max = 2 + rng_below(rng, 100)};
    size_t total = rng_below(rng, 350);
    for (size_t i = 0; i < total; i++) {
        struct object o = {random_name(rng, a), 10 + (unsigned)rng_below(rng, 10)};
        bool known = false;
        for (size_t j = 0; j < all->count; j++)
            known = known || strcmp(all->objects[j].name, o.name) == 0;
        if (known)
            continue;
        all->objects[all->count++] = o;
        size_t owner = rng_below(rng, count);
        targets[owner].objects[targets[owner].count++] = o;
        size_t other = rng_below(rng, count);
        if (other != owner && rng_below(rng, 4) == 0)
            targets[other].objects[targets[other].count++] =
                (struct object){o.name, (unsigned)rng_below(rng, 10)};
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
        t->objects[t->count++] = (struct object){arena_printf(a, "%04u", i), 1};
    }
    unsigned asked = 0;
    _cleanup_json_ json_t *page = merged_page(targets, 4, "", "", 400, &asked);
    assert_int_equal(json_array_size(json_object_get(page, "entries")), 400);
    assert_int_equal(asked, 4);
    arena_free(a);
    free(targets);
}

static void a_lost_target_makes_it_incomplete(void **unused)
{
    (void)unused;
    struct target t = {.objects = {{"a", 1}, {"b", 1}}, .count = 2, .page_max = 10};
    _cleanup_(list_merge_freep)
    struct list_merge *m = list_merge_new(2, "", 10);
    _cleanup_json_ json_t *page = target_page(&t, "", "", 10);
    assert_int_equal(list_merge_feed(m, 0, page, NULL), 0);
    assert_false(list_merge_done(m));
    list_merge_lose(m, 1);
    assert_true(list_merge_done(m));
    _cleanup_json_ json_t *result = list_merge_page(m);
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
        {"{\"next\": \"\", \"entries\": 5}", "'entries'"},
        {"{\"next\": \"\", \"entries\": [{}]}", "lacks"},
        {"{\"next\": \"\", \"entries\": [{\"name\": \"a\"}]}", "lacks"},
        {"{\"next\": \"\", \"entries\": [{\"name\": \"a\", \"version\": \"1.2\"}]}", "lacks"},
        {"{\"next\": \"\", \"entries\": [{\"name\": \"a\", \"version\": \"1.2.3.4\"}]}", "lacks"},
        {"{\"next\": \"\", \"entries\": [{\"name\": \"a\", \"version\": \"1..3\"}]}", "lacks"},
        {"{\"next\": \"\", \"prefixes\": [1]}", "no text"},
        {"{\"next\": \"\", \"entries\": [" ENTRY("b") ", " ENTRY("a") "]}", "'a' is out of order"},
        {"{\"next\": \"\", \"entries\": [" ENTRY("a") ", " ENTRY("a") "]}", "'a' is out of order"},
        {"{\"next\": \"\", \"prefixes\": [\"b/\", \"a/\"]}", "'a/' is out of order"},
        {"{\"next\": \"x\", \"entries\": []}", "does not get on"},
        {"{\"next\": \"x\", \"entries\": [" ENTRY("5") "]}", "does not get on"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_(list_merge_freep)
        struct list_merge *m = list_merge_new(1, "5", 10);
        _cleanup_json_ json_t *page = NULL;
        struct error err = ERROR_INIT;
        assert_int_equal(json_parse(rows[i].page, strlen(rows[i].page), &page, NULL), 0);
        if (list_merge_feed(m, 0, page, &err) != E_CORRUPT ||
            strstr(err.message, rows[i].words) == NULL)
            fail_msg("row %zu: %s '%s'", i, error_name(err.code), err.message);
    }
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
        struct buf name = BUF_INIT;
        list_token_put(&token, names[i]);
        assert_null(strpbrk(token.data, "+/=&?% "));
        assert_int_equal(list_token_parse(token.data, &name, NULL), 0);
        assert_string_equal(name.data, names[i]);
        token.data[token.len - 1] = '!';
        assert_int_equal(list_token_parse(token.data, &name, NULL), E_INVALID);
    }
    /* Nothing, too little, no version byte, spare bits that are not zero, a name that is none. */
    static const char *const bad[] = {"", "b", "bg", "YWJj", "bmF", "bv8", "bgA", "a b"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        _cleanup_(buf_done)
        struct buf name = BUF_INIT;
        assert_int_equal(list_token_parse(bad[i], &name, NULL), E_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_scatter_lists_as_one),
        cmocka_unit_test(a_first_question_is_mostly_enough),
        cmocka_unit_test(a_lost_target_makes_it_incomplete),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(tokens_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
