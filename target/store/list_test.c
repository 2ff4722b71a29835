/* Pages of a list against the same rules applied to a sorted array. */
#include "target/testing/store_fixture.h"

#include "common/rng.h"

static void put_names(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_text(names[i], "x");
}

static bool shows(void *ctx, const char *name)
{
    return strncmp(name, ctx, strlen(ctx)) != 0;
}

/* What begins with it is another target's. */
static const char *not_ours;

/* A page as "a b* c> next": entries, prefixes with a star, what comes next. */
static bool skips_internal;
static char *page_text(const char *prefix, const char *delimiter, const char *after, size_t limit)
{
    struct list_request req = {.bucket_id = BUCKET,
                               .prefix = prefix,
                               .delimiter = delimiter,
                               .start_after = after,
                               .limit = limit,
                               .skips_internal = skips_internal,
                               .shows = not_ours != NULL ? shows : NULL,
                               .ctx = (void *)not_ours};
    struct list_page page;
    struct error err = ERROR_INIT;
    if (list_page(fx.store, &req, &page, &err) != 0)
        fail_msg("%s", err.message);
    struct buf out = BUF_INIT;
    for (size_t e = 0, p = 0; e < page.entry_count || p < page.prefix_count;) {
        bool entry = p == page.prefix_count ||
                     (e < page.entry_count && strcmp(page.entries[e].name, page.prefixes[p]) < 0);
        if (entry)
            buf_printf(&out, "%s ", page.entries[e++].name);
        else
            buf_printf(&out, "%s* ", page.prefixes[p++]);
    }
    if (*page.next != '\0')
        buf_printf(&out, "> %s", page.next);
    list_page_done(&page);
    buf_puts(&out, "");
    return buf_steal(&out);
}

static void assert_page(const char *prefix, const char *delimiter, const char *after, size_t limit,
                        const char *want)
{
    _cleanup_free_ char *got = page_text(prefix, delimiter, after, limit);
    assert_string_equal(got, want);
}

static void test_prefix_delimiter_and_start(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "a/", "a/1", "a/2", "a/b/3", "ab", "b", "b/1", "c"};
    put_names(names, sizeof names / sizeof *names);
    assert_page("", "", "", 100, "a a/ a/1 a/2 a/b/3 ab b b/1 c ");
    assert_page("", "/", "", 100, "a a/* ab b b/* c ");
    assert_page("a/", "/", "", 100, "a/ a/1 a/2 a/b/* ");
    assert_page("a", "", "a/1", 100, "a/2 a/b/3 ab ");
    assert_page("b", "", "a", 100, "b b/1 ");
    assert_page("b", "", "c", 100, "");
    assert_page("x", "/", "", 100, "");
    assert_page("", "/", "a/", 100, "ab b b/* c ");
    assert_page("", "/", "a/1", 100, "ab b b/* c ");
    assert_page("", "", "", 3, "a a/ a/1 > a/1");
    assert_page("", "/", "", 2, "a a/* > a/");
    assert_page("", "/", "a/", 4, "ab b b/* c "); /* exactly full is the last page */
    assert_page("", "/1", "", 100, "a a/ a/1* a/2 a/b/3 ab b b/1* c ");
}

static void test_what_is_not_ours_is_not_listed(void **state)
{
    (void)state;
    static const char *const names[] = {"a/1", "a/2", "b/1", "c", "d"};
    put_names(names, sizeof names / sizeof *names);
    not_ours = "a/";
    assert_page("", "/", "", 100, "b/* c d ");
    assert_page("", "", "", 1, "b/1 > b/1");
    not_ours = "d";
    assert_page("", "", "b/1", 1, "c ");
    assert_page("", "/", "", 100, "a/* b/* c ");
    not_ours = NULL;
    assert_page("", "/", "", 100, "a/* b/* c d ");
}

/* The seek over them costs the same, however many there are. */
static void test_internal_names_are_passed_over_by_one_seek(void **state)
{
    (void)state;
    static const char *const names[] = {"-a", ".", ".dfc", ".dfc-", ".dfc-plog/1", ".dfc.", "a"};
    put_names(names, sizeof names / sizeof *names);
    for (int i = 0; i < 500; i++) {
        char name[32];
        snprintf(name, sizeof name, ".dfc-unique/%03d", i);
        put_text(name, "x");
    }
    skips_internal = true;
    assert_page("", "", "", 100, "-a . .dfc .dfc. a ");
    assert_page("", "", "", 3, "-a . .dfc > .dfc");
    assert_page("", "", ".dfc", 3, ".dfc. a ");
    assert_page("", "", ".dfc-unique/400", 3, ".dfc. a ");
    assert_page(".d", "", "", 3, ".dfc .dfc. ");
    assert_page("", "/", "", 100, "-a . .dfc .dfc. a ");
    assert_page("", "-", "", 100, "-* . .dfc .dfc. a ");
    const struct list_request req = {.bucket_id = BUCKET,
                                     .prefix = "",
                                     .delimiter = "",
                                     .start_after = "",
                                     .limit = 100,
                                     .skips_internal = true};
    struct list_page page;
    assert_int_equal(list_page(fx.store, &req, &page, NULL), 0);
    assert_true(page.visited < 50);
    list_page_done(&page);
    skips_internal = false;
    assert_page("", "/", "", 100, "-a . .dfc .dfc- .dfc-plog/* .dfc-unique/* .dfc. a ");
    assert_page(".dfc-p", "", "", 100, ".dfc-plog/1 ");
}

static void test_what_is_not_there_is_not_listed(void **state)
{
    (void)state;
    static const char *const names[] = {"a/1", "a/2", "b/1", "d"};
    put_names(names, 4);
    assert_int_equal(delete_name("a/1"), 0);
    assert_int_equal(delete_name("a/2"), 0);
    put_text_hidden("c/1", "x", "srt-1");
    assert_page("", "/", "", 100, "b/* d ");
    assert_page("", "", "", 1, "b/1 > b/1");
    assert_page("", "", "b/1", 1, "d ");
    fx.committed_job = "srt-1";
    assert_page("", "/", "", 100, "b/* c/* d ");
}

static void test_other_buckets_are_not_listed(void **state)
{
    (void)state;
    for (uint64_t bucket = BUCKET - 1; bucket <= BUCKET + 1; bucket++) {
        struct object_put_spec spec =
            spec_of(bucket == BUCKET ? "mine" : "other", DURABILITY_ASYNC);
        spec.bucket_id = bucket;
        assert_int_equal(put_bytes(&spec, "x", 1, NULL), 0);
    }
    assert_page("", "", "", 100, "mine ");
}

static void test_entries_carry_the_object(void **state)
{
    (void)state;
    put_text("a", "hello");
    struct list_request req = {
        .bucket_id = BUCKET, .prefix = "", .delimiter = "", .start_after = "", .limit = 10};
    struct list_page page;
    struct object o;
    assert_int_equal(list_page(fx.store, &req, &page, NULL), 0);
    assert_int_equal(object_head(fx.store, BUCKET, "a", &o, NULL), 0);
    const struct index_record *rec = &page.entries[0].record;
    assert_int_equal(rec->size, 5);
    assert_int_equal(rec->modified_ms, o.attr.modified_ms);
    assert_int_equal(version_compare(&rec->version, &o.attr.version), 0);
    assert_true(checksum_equal(&rec->checksum, &o.attr.checksum));
    list_page_done(&page);
}

static void test_an_index_in_the_making_is_no_short_list(void **state)
{
    (void)state;
    put_text("a", "x");
    struct error why = ERROR_INIT, err = ERROR_INIT;
    error_set(&why, E_IO, "a change was missed");
    index_set_stale(fixture_mp(1)->index, &why);
    struct list_request req = {
        .bucket_id = BUCKET, .prefix = "", .delimiter = "", .start_after = "", .limit = 10};
    struct list_page page;
    assert_int_equal(list_page(fx.store, &req, &page, &err), E_IO);
}

/* --- random names, every page compared with the plain rules ----------------------------------- */

enum { NAMES = 400 };

static int text_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *random_name(struct rng *r)
{
    static const char letters[] = "ab/.\xc3";
    size_t len = 1 + rng_below(r, rng_below(r, 10) == 0 ? ATTR_NAME_MAX : 6);
    char *name = xmalloc(len + 1);
    for (size_t i = 0; i < len; i++)
        name[i] = letters[rng_below(r, len > 6 ? 2 : sizeof letters - 1)];
    name[len] = '\0';
    return name;
}

/* The rules of list.h, one name after the other. */
static char *page_by_the_rules(char *const *names, const char *prefix, const char *delimiter,
                               const char *after, size_t limit)
{
    struct buf out = BUF_INIT;
    _cleanup_free_ char *last = xstrdup("");
    size_t count = 0;
    for (size_t i = 0; i < NAMES; i++) {
        if (names[i] == NULL || strncmp(names[i], prefix, strlen(prefix)) != 0 ||
            strcmp(names[i], after) <= 0)
            continue;
        const char *at = *delimiter ? strstr(names[i] + strlen(prefix), delimiter) : NULL;
        _cleanup_free_ char *shown =
            at != NULL ? xstrndup(names[i], (size_t)(at - names[i]) + strlen(delimiter))
                       : xstrdup(names[i]);
        if (at != NULL && (strcmp(shown, last) == 0 || strcmp(shown, after) <= 0))
            continue;
        if (count == limit) {
            buf_printf(&out, "> %s", last);
            return buf_steal(&out);
        }
        buf_printf(&out, at != NULL ? "%s* " : "%s ", shown);
        count++;
        free(last);
        last = steal(shown);
    }
    buf_puts(&out, "");
    return buf_steal(&out);
}

static void test_random_pages_follow_the_rules(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, 11);
    char *names[NAMES];
    for (size_t i = 0; i < NAMES; i++)
        names[i] = random_name(&r);
    qsort(names, NAMES, sizeof *names, text_compare);
    for (size_t i = 0; i < NAMES; i++) {
        put_text(names[i], "x");
        if (i > 0 && names[i - 1] != NULL && strcmp(names[i], names[i - 1]) == 0) {
            free(names[i - 1]);
            names[i - 1] = NULL;
        }
    }
    static const char *const delimiters[] = {"", "/", "a", "b/", "\xc3"};
    for (unsigned i = 0; i < 2000; i++) {
        _cleanup_free_ char *prefix = random_name(&r), *after = random_name(&r);
        prefix[rng_below(&r, 3) % (strlen(prefix) + 1)] = '\0';
        if (rng_below(&r, 3) == 0)
            after[0] = '\0';
        const char *delimiter = delimiters[rng_below(&r, 5)];
        size_t limit = 1 + rng_below(&r, 30);
        _cleanup_free_ char *got = page_text(prefix, delimiter, after, limit);
        _cleanup_free_ char *want = page_by_the_rules(names, prefix, delimiter, after, limit);
        if (strcmp(got, want) != 0)
            fail_msg("prefix '%s' delimiter '%s' after '%s' limit %zu:\n%s\n%s", prefix, delimiter,
                     after, limit, got, want);
    }
    for (size_t i = 0; i < NAMES; i++)
        free(names[i]);
}

/* --- bounded work ----------------------------------------------------------------------------- */

/* Names straight into the indexes: `hidden` ones are tombstones. */
static void index_names(const char *format, unsigned count, bool hidden)
{
    enum { AT_ONCE = 500 };
    struct index_item items[2][AT_ONCE];
    struct arena *arena = arena_new(64 * 1024);
    size_t n[2] = {0};
    for (unsigned i = 0; i <= count; i++) {
        for (unsigned k = 0; k < 2; k++) {
            if (n[k] < AT_ONCE && i < count)
                continue;
            assert_int_equal(index_fill(fixture_mp(k)->index, items[k], n[k], NULL), 0);
            n[k] = 0;
        }
        if (i == count)
            break;
        char name[64];
        snprintf(name, sizeof name, "%s%07u", format, i);
        items[i % 2][n[i % 2]++] =
            (struct index_item){.bucket_id = BUCKET,
                                .name = arena_strdup(arena, name),
                                .record = {.version = {1, 1, 1}, .tombstone = hidden}};
    }
    arena_free(arena);
}

static struct list_page get_page(const char *prefix, const char *delimiter, const char *after,
                                 const char *from, size_t limit)
{
    struct list_page page;
    const struct list_request req = {.bucket_id = BUCKET,
                                     .prefix = prefix,
                                     .delimiter = delimiter,
                                     .start_after = after,
                                     .from = from,
                                     .limit = limit};
    assert_int_equal(list_page(fx.store, &req, &page, NULL), 0);
    return page;
}

static void test_pages_end_where_many_names_are_hidden(void **state)
{
    enum { HIDDEN = 2 * LIST_PASSED_MAX + 100 };
    (void)state;
    index_names("a/", HIDDEN, true);
    index_names("a/z", 1, false);
    index_names("b", 1, false);
    for (unsigned delimited = 0; delimited < 2; delimited++) {
        char after[100] = "", from[100] = "";
        _cleanup_buf_ struct buf shown = BUF_INIT;
        unsigned pages = 0;
        for (bool more = true; more; pages++) {
            struct list_page page = get_page("", delimited ? "/" : "", after, from, 10);
            assert_true(page.visited <= LIST_PASSED_MAX + 100);
            for (size_t i = 0; i < page.prefix_count; i++)
                buf_puts(&shown, page.prefixes[i]);
            for (size_t i = 0; i < page.entry_count; i++)
                buf_puts(&shown, page.entries[i].name);
            more = *page.next != '\0' || *page.from != '\0';
            snprintf(after, sizeof after, "%s", page.next);
            snprintf(from, sizeof from, "%s", page.from);
            list_page_done(&page);
        }
        assert_int_equal(pages, 3);
        assert_string_equal(buf_str(&shown), delimited ? "a/b0000000" : "a/z0000000b0000000");
    }
}

static void test_prefix_delimiter_and_start_are_seeks(void **state)
{
    enum { MANY = 20000, FEW = 50 };
    (void)state;
    index_names("a/", MANY, false);
    index_names("b/", MANY, false);
    index_names("c/", MANY, false);
    static const struct {
        const char *prefix, *delimiter, *after, *from;
    } rows[] = {
        {"b/001", "", "", NULL},       {"", "/", "", NULL},         {"", "/", "a/", NULL},
        {"", "/", "a/0010000", NULL},  {"", "", "b/0019990", NULL}, {"", "", "", "b/0019990"},
        {"c/", "", "c/0019999", NULL}, {"c/x", "", "", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct list_page page =
            get_page(rows[i].prefix, rows[i].delimiter, rows[i].after, rows[i].from, 10);
        if (page.visited > FEW)
            fail_msg("row %zu: %llu entries were visited", i, (unsigned long long)page.visited);
        list_page_done(&page);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_prefix_delimiter_and_start),
        store_test(test_internal_names_are_passed_over_by_one_seek),
        store_test(test_what_is_not_there_is_not_listed),
        store_test(test_what_is_not_ours_is_not_listed),
        store_test(test_other_buckets_are_not_listed),
        store_test(test_entries_carry_the_object),
        store_test(test_an_index_in_the_making_is_no_short_list),
        store_test(test_random_pages_follow_the_rules),
        store_test(test_pages_end_where_many_names_are_hidden),
        store_test(test_prefix_delimiter_and_start_are_seeks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
