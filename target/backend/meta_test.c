/* User metadata: what a backend is sent, what is refused, and what comes back. */
#include "target/backend/meta.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <cmocka.h>

#include "target/backend/aws_keys.h"

#define SIXTY "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define S3 "s3://b?auth=none"
#define PAIRS(text) (text), sizeof(text) - 1

static void what_is_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *backend, *pairs;
        size_t len;
        int code;
    } rows[] = {
        {S3, PAIRS("a\0b\0"), 0},
        {S3, PAIRS("a\0b c d~\0c-d.e-f\0!\0"), 0},
        {S3, PAIRS("a\0\0"), E_INVALID},
        {S3, PAIRS("a\0b  c\0"), E_INVALID},
        {S3, PAIRS("a\0b\tc\0"), E_INVALID},
        {S3, PAIRS("a\0 b\0"), E_INVALID},
        {S3, PAIRS("a\0b \0"), E_INVALID},
        {S3, PAIRS("a\0\xc3\xa4\0"), E_INVALID},
        {S3, PAIRS("a\0b\x7f\0"), E_INVALID},
        {S3, PAIRS("a b\0c\0"), E_INVALID},
        {S3, PAIRS("a_b\0c\0"), E_INVALID},
        {S3, PAIRS("\xc3\xa4\0c\0"), E_INVALID},
        {S3, PAIRS("a\0b\0c\0d\0a\0e\0"), E_INVALID},
        {S3, PAIRS("backend-etag\0b\0"), E_INVALID},
        {S3, PAIRS("backend-encoding\0gzip\0"), 0},
        {S3, PAIRS("backend-encoding\0\0"), E_INVALID},
        {S3, PAIRS("backend-encoding\0" SIXTY "xyz\0"), 0},
        {S3, PAIRS("backend-encoding\0" SIXTY "wxyz\0"), E_INVALID},
        {S3, PAIRS("entity-md5\0x\0entity-sum\0CRC32\0"), 0},
        {S3, PAIRS("entity-cache-control\0no-cache\0"), 0},
        {S3, PAIRS("entity-tags\0a=1&b=x%20y\0"), 0},
        {S3, PAIRS("dfc-tags\0a=1\0"), E_INVALID},
        {S3, PAIRS("entity-parts\0002x5,1x1\0"), 0},
        {S3, PAIRS("dfc-parts\0001x5\0"), E_INVALID},
        {"gs://b?auth=none", PAIRS("entity-cache-control\0no-cache\0"), E_UNSUPPORTED},
        {S3, PAIRS("backend-mine\0b\0source\0x\0"), 0},
        {"gs://b?auth=none", PAIRS("a\0b\0"), 0},
        {"http://h/", PAIRS("a\0b\0"), E_UNSUPPORTED},
        {"http://h/", "", 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        if (backend_meta_check(rows[i].backend, rows[i].pairs, rows[i].len, &err) != rows[i].code)
            fail_msg("row %zu: %s", i, err.message);
    }
}

static void how_long_it_may_be(void **unused)
{
    (void)unused;
    char pairs[BACKEND_META_MAX + 1];
    struct error err = ERROR_INIT;
    memset(pairs, 'x', sizeof pairs);
    pairs[1] = pairs[BACKEND_META_MAX - 1] = '\0';
    assert_int_equal(backend_meta_check(S3, pairs, BACKEND_META_MAX, &err), 0);
    pairs[BACKEND_META_MAX - 1] = 'x';
    pairs[BACKEND_META_MAX] = '\0';
    assert_int_equal(backend_meta_check(S3, pairs, BACKEND_META_MAX + 1, &err), E_INVALID);
    assert_non_null(strstr(err.message, "1536"));
}

/* --- requests --------------------------------------------------------------------------------- */

static size_t count_lines(const struct backend_request *r, const char *text)
{
    size_t n = 0;
    for (size_t i = 0; r->headers[i] != NULL; i++)
        n += strstr(r->headers[i], text) != NULL;
    return n;
}

static void what_is_sent(void **unused)
{
    (void)unused;
    static const char pairs[] =
        "zz\0last\0backend-etag\0\"x\"\0backend-encoding\0gzip\0a-b\0first one\0"
        "entity-expires\0soon\0entity-sum\0CRC32\0entity-tags\0a=1\0"
        "entity-parts\0002x5\0";
    const struct backend_write write = {
        .meta = pairs, .meta_len = sizeof pairs - 1, .part = 1, .upload_id = "u"};
    static const struct {
        enum backend_verb verb;
        bool has;
    } rows[] = {{BACKEND_PUT, true}, {BACKEND_PARTS_BEGIN, true}, {BACKEND_PART, false}};
    static const struct aws_keys keys = {.access = "AKID", .secret = "secret", .token = "token"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_arena_ struct arena *a = arena_new(256);
        struct backend_spec spec;
        struct backend_request r;
        const struct backend_ask ask = {
            .verb = rows[i].verb, .name = "n", .write = &write, .keys = &keys};
        assert_int_equal(backend_parse("s3://b", a, &spec, NULL), 0);
        assert_int_equal(backend_s3.request(&spec, &ask, a, &r, NULL), 0);
        assert_int_equal(count_lines(&r, "x-amz-meta-a-b: first one"), rows[i].has);
        assert_int_equal(count_lines(&r, "x-amz-meta-zz: last"), rows[i].has);
        assert_int_equal(count_lines(&r, "x-amz-meta-dfc-tags: a=1"), rows[i].has);
        assert_int_equal(count_lines(&r, "x-amz-meta-dfc-parts: 2x5"), rows[i].has);
        assert_int_equal(count_lines(&r, "x-amz-date;x-amz-meta-a-b;x-amz-meta-dfc-parts;"
                                         "x-amz-meta-dfc-tags;x-amz-meta-zz;x-amz-security-"),
                         rows[i].has);
        assert_int_equal(count_lines(&r, "content-encoding: gzip"), rows[i].has);
        assert_int_equal(count_lines(&r, "Expires: soon"), rows[i].has);
        assert_int_equal(count_lines(&r, "backend-"), 0);
        assert_int_equal(count_lines(&r, "entity-"), 0);
    }
}

/* --- heads ------------------------------------------------------------------------------------ */

struct fake_head {
    struct http_head head;
    const char *const *pairs; /* name, value, …, NULL */
};

static void fake_each(const struct http_head *head,
                      void (*fn)(void *ctx, const char *name, const char *value), void *ctx)
{
    const struct fake_head *f = (const struct fake_head *)head;
    for (size_t i = 0; f->pairs[i] != NULL; i += 2)
        fn(ctx, f->pairs[i], f->pairs[i + 1]);
}

static void read_pairs(const struct backend_ops *ops, const char *const *pairs,
                       struct backend_facts *out)
{
    const struct fake_head f = {.head = {.status = 200, .each_header = fake_each}, .pairs = pairs};
    *out = (struct backend_facts){.status = 200};
    backend_meta_read(ops, &f.head, out);
}

static void what_comes_back(void **unused)
{
    (void)unused;
    struct backend_facts f;
    read_pairs(&backend_s3,
               (const char *const[]){"ETag", "x", "X-Amz-Meta-Colour", "Blue", "x-amz-meta-", "no",
                                     "x-amz-meta-backend-etag", "theirs", "x-amz-meta-b", "",
                                     "x-amz-meta-entity-expires", "no", "Expires", "Soon", NULL},
               &f);
    static const char want[] = "colour\0Blue\0b\0\0entity-expires\0Soon";
    assert_false(f.meta_lost);
    assert_int_equal(f.meta_len, sizeof want);
    assert_memory_equal(f.meta, want, sizeof want);
    read_pairs(&backend_dfc, (const char *const[]){"Dfc-Meta-A", "b", "x-amz-meta-c", "d", NULL},
               &f);
    assert_int_equal(f.meta_len, 4);
    assert_memory_equal(f.meta, "a\0b", 4);
    read_pairs(&backend_http, (const char *const[]){"x-amz-meta-c", "d", NULL}, &f);
    assert_int_equal(f.meta_len, 0);
}

/* Pairs of the target's own that a backend kept. */
static void own_pairs_that_come_back(void **unused)
{
    (void)unused;
    static const char tags[] = "entity-tags\0a=1", parts[] = "entity-parts\0002x5";
    static const struct {
        const struct backend_ops *ops;
        const char *header, *value;
        const char *want; /* NULL: it is not taken */
        size_t want_len;
    } rows[] = {
        {&backend_s3, "X-Amz-Meta-Dfc-Tags", "a=1", tags, sizeof tags},
        {&backend_s3, "x-amz-meta-dfc-tags", "a=1&a=2", NULL, 0},
        {&backend_s3, "x-amz-meta-entity-tags", "a=1", NULL, 0},
        {&backend_gcs, "x-goog-meta-dfc-tags", "a=1", tags, sizeof tags},
        {&backend_dfc, "Dfc-Tags", "a=1", tags, sizeof tags},
        {&backend_s3, "X-Amz-Meta-Dfc-Parts", "2x5", parts, sizeof parts},
        {&backend_s3, "x-amz-meta-dfc-parts", "5", NULL, 0},
        {&backend_s3, "x-amz-meta-entity-parts", "2x5", NULL, 0},
        {&backend_dfc, "Dfc-Parts", "2x5", parts, sizeof parts},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct backend_facts f;
        read_pairs(rows[i].ops, (const char *const[]){rows[i].header, rows[i].value, NULL}, &f);
        assert_int_equal(f.meta_len, rows[i].want_len);
        if (rows[i].want != NULL)
            assert_memory_equal(f.meta, rows[i].want, rows[i].want_len);
    }
}

static void more_than_there_is_room_for(void **unused)
{
    (void)unused;
    static char large[BACKEND_META_MAX];
    struct backend_facts f;
    memset(large, 'x', sizeof large - 3);
    const char *const fits[] = {"x-amz-meta-a", large, NULL};
    read_pairs(&backend_s3, fits, &f);
    assert_false(f.meta_lost);
    assert_int_equal(f.meta_len, BACKEND_META_MAX);
    const char *const more[] = {
        "x-amz-meta-b", "c", "x-amz-meta-a", large, "x-amz-meta-d", "e", NULL};
    read_pairs(&backend_s3, more, &f);
    assert_true(f.meta_lost);
    assert_int_equal(f.meta_len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(how_long_it_may_be),
        cmocka_unit_test(what_is_sent),
        cmocka_unit_test(what_comes_back),
        cmocka_unit_test(own_pairs_that_come_back),
        cmocka_unit_test(more_than_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
