/* What the jobs over objects may be asked for. */
#include "xaction/objects_spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/jsonx.h"

static int parse(const char *kind, const char *text, struct objects_spec **out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    *err = ERROR_INIT;
    assert_int_equal(json_parse(text, strlen(text), &doc, err), 0);
    return objects_spec_parse(kind, doc, out, err);
}

static void refuse(const char *kind, const char *text, int code, const char *words)
{
    struct objects_spec *s = NULL;
    struct error err;
    assert_int_equal(parse(kind, text, &s, &err), code);
    assert_int_equal(err.code, code);
    if (strstr(err.message, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, err.message);
    assert_null(s);
}

static struct objects_spec *accept(const char *kind, const char *text)
{
    struct objects_spec *s = NULL;
    struct error err;
    if (parse(kind, text, &s, &err) != 0)
        fail_msg("%s", err.message);
    return s;
}

static void test_the_three_ways(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf buf = BUF_INIT;
    struct objects_spec *s = accept("delete", "{\"list\": [\"a/1\", \"..\"]}");
    assert_int_equal(s->which, OBJECTS_LIST);
    assert_int_equal(objects_spec_count(s), 2);
    assert_string_equal(objects_spec_name(s, 1, &buf), "..");
    objects_spec_free(s);

    s = accept("delete", "{\"template\": \"s-{08..11}.tar\", \"description\": \"old\"}");
    assert_int_equal(s->which, OBJECTS_TEMPLATE);
    assert_int_equal(objects_spec_count(s), 4);
    assert_string_equal(objects_spec_name(s, 2, &buf), "s-10.tar");
    assert_string_equal(s->description, "old");
    assert_null(s->to);
    objects_spec_free(s);

    s = accept("delete", "{\"prefix\": \"\"}");
    assert_int_equal(s->which, OBJECTS_PREFIX);
    assert_string_equal(s->prefix, "");
    objects_spec_free(s);
}

static void test_internal_names(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *value;
        bool skips;
    } rows[] = {
        {"delete", "{\"prefix\": \"\"}", true},
        {"delete", "{\"prefix\": \".dfc\"}", true},
        {"delete", "{\"prefix\": \".dfc-\"}", false},
        {"delete", "{\"prefix\": \"\", \"internal\": true}", false},
        {"copy", "{\"to\": \"b\", \"prefix\": \"\"}", true},
        {"copy", "{\"to\": \"b\"}", false},
        {"prefetch", "{}", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct objects_spec *s = accept(rows[i].kind, rows[i].value);
        if (objects_spec_skips_internal(s) != rows[i].skips)
            fail_msg("row %zu", i);
        objects_spec_free(s);
    }
    refuse("delete", "{\"list\": [\"a\"], \"internal\": true}", E_SPEC, "value.internal");
    refuse("delete", "{\"prefix\": \"\", \"internal\": 1}", E_JSON, "internal");
}

static void test_archive(void **state)
{
    (void)state;
    struct objects_spec *s = accept("archive", "{\"prefix\": \"a/b\", \"archive\": \"x.tar\", "
                                               "\"strip\": \"a/\", \"prepend\": \"c/\"}");
    assert_string_equal(s->archive, "x.tar");
    assert_null(s->format);
    assert_string_equal(s->strip, "a/");
    assert_string_equal(s->prepend, "c/");
    assert_string_equal(objects_spec_to(s, "same"), "same");
    objects_spec_free(s);

    s = accept("archive", "{\"list\": [], \"archive\": \"x\", \"format\": \"zip\", \"to\": \"b\"}");
    assert_string_equal(s->format, "zip");
    assert_string_equal(objects_spec_to(s, "same"), "b");
    objects_spec_free(s);
    s = accept("archive", "{\"template\": \"a{0..9}\", \"archive\": \"x\", \"strip\": \"a\"}");
    objects_spec_free(s);
    s = accept("delete", "{\"list\": []}");
    assert_null(objects_spec_to(s, "same"));
    objects_spec_free(s);
}

static void test_archives_by_a_template(void **state)
{
    (void)state;
    struct objects_spec *s =
        accept("archive", "{\"prefix\": \"\", \"to\": {\"bucket\": \"b\", \"template\": "
                          "\"t/s-{00..99}.tar\"}, \"shard_size\": \"2MiB\", \"names\": \"base\", "
                          "\"order\": \"shuffle\", \"seed\": 9}");
    assert_null(s->archive);
    assert_int_equal(template_count(s->shards), 100);
    assert_int_equal(s->shard_size, 2 << 20);
    assert_true(s->bare_members && s->shuffles && s->seed_given);
    assert_int_equal(s->seed, 9);
    assert_string_equal(objects_spec_to(s, "same"), "b");
    assert_string_equal(objects_spec_begins(s), "t/s-");
    objects_spec_free(s);

    s = accept("archive", "{\"prefix\": \"\", \"to\": {\"template\": \"s-%d.tar\"}, "
                          "\"shard_size\": 1, \"names\": \"full\", \"order\": \"name\"}");
    assert_false(s->bare_members || s->shuffles || s->seed_given);
    assert_string_equal(objects_spec_to(s, "same"), "same");
    objects_spec_free(s);

    s = accept("archive", "{\"prefix\": \"\", \"archive\": \"x.tar\", \"order\": \"shuffle\"}");
    assert_true(s->shuffles && !s->seed_given);
    assert_string_equal(objects_spec_begins(s), "x.tar");
    objects_spec_free(s);
}

static void test_unarchive(void **state)
{
    (void)state;
    struct objects_spec *s = accept("unarchive", "{\"prefix\": \"\"}");
    assert_false(s->bare_members);
    assert_string_equal(s->prepend, "");
    assert_string_equal(objects_spec_to(s, "same"), "same");
    objects_spec_free(s);
    s = accept("unarchive", "{\"list\": [\"a\"], \"names\": \"member\", \"to\": \"b\"}");
    assert_true(s->bare_members);
    assert_string_equal(objects_spec_to(s, "same"), "b");
    objects_spec_free(s);
    refuse("unarchive", "{}", E_SPEC, "one of");
    refuse("unarchive", "{\"prefix\": \"\", \"names\": \"full\"}", E_SPEC, "value.names");
    refuse("unarchive", "{\"prefix\": \"\", \"archive\": \"a\"}", E_JSON, "archive");
}

static void test_promote(void **state)
{
    (void)state;
    struct objects_spec *s = accept("promote", "{\"path\": \"/a/b\"}");
    assert_int_equal(s->which, OBJECTS_NONE);
    assert_string_equal(s->path, "/a/b");
    assert_null(s->node);
    assert_false(s->overwrites || s->moves);
    assert_null(objects_spec_to(s, "same"));
    objects_spec_free(s);
    s = accept("promote",
               "{\"path\": \"/a\", \"node\": \"t1\", \"overwrite\": true, \"move\": true}");
    assert_string_equal(s->node, "t1");
    assert_true(s->overwrites && s->moves);
    objects_spec_free(s);
    static const char *const paths[] = {"", "a", "/", "/a/", "/a//b", "/a/./b", "/a/../b"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"path\": \"%s\"}", paths[i]);
        refuse("promote", text, E_SPEC, "value.path");
    }
    refuse("promote", "{}", E_JSON, "path");
    refuse("promote", "{\"path\": \"/a\", \"prefix\": \"\"}", E_JSON, "prefix");
}

static void test_refused_archives(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {"{\"archive\": \"x\"}", E_SPEC, "one of"},
        {"{\"prefix\": \"\"}", E_JSON, "archive"},
        {"{\"prefix\": \"\", \"archive\": \"\"}", E_NAME, "value.archive"},
        {"{\"prefix\": \"\", \"archive\": \"x\", \"to\": \"-\"}", E_NAME, "value.to"},
        {"{\"prefix\": \"a\", \"archive\": \"x\", \"strip\": \"ab\"}", E_SPEC, "strip"},
        {"{\"template\": \"a{0..9}\", \"archive\": \"x\", \"strip\": \"a0\"}", E_SPEC, "strip"},
        {"{\"list\": [\"ab\", \"b\"], \"archive\": \"x\", \"strip\": \"a\"}", E_SPEC, "'b'"},
        {"{\"list\": [\"a\"], \"archive\": \"x\", \"strip\": \"a\"}", E_SPEC, "strip"},
        {"{\"list\": [\"b\", \"a\", \"b\"], \"archive\": \"x\"}", E_SPEC, "twice"},
        {"{\"list\": [], \"archive\": \"x\", \"rate\": 1}", E_JSON, "rate"},
        {"{\"list\": [], \"archive\": \"x\", \"names\": \"member\"}", E_SPEC, "full or base"},
        {"{\"list\": [], \"archive\": \"x\", \"order\": \"md5\"}", E_SPEC, "name or shuffle"},
        {"{\"list\": [], \"archive\": \"x\", \"seed\": 1}", E_SPEC, "value.seed"},
        {"{\"list\": [], \"archive\": \"x\", \"shard_size\": 1}", E_SPEC, "to.template"},
        {"{\"list\": [], \"to\": {\"template\": \"s-%d.tar\"}}", E_SPEC, "value.shard_size"},
        {"{\"list\": [], \"to\": {}, \"shard_size\": 1}", E_JSON, "value.to.template"},
        {"{\"list\": [], \"to\": {\"template\": \"s.tar\"}, \"shard_size\": 1}", E_SPEC,
         "no range"},
        {"{\"list\": [], \"to\": {\"template\": \"{0..\"}, \"shard_size\": 1}", E_SPEC,
         "value.to.template"},
        {"{\"list\": [], \"to\": {\"template\": \"s-%d\", \"bucket\": \"-\"}, \"shard_size\": 1}",
         E_NAME, "value.to.bucket"},
        {"{\"list\": [], \"archive\": \"x\", \"to\": {\"template\": \"s-%d\"}, \"shard_size\": 1}",
         E_SPEC, "only one of"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuse("archive", rows[i].text, rows[i].code, rows[i].words);
}

static void test_an_empty_list_is_one(void **state)
{
    (void)state;
    struct objects_spec *s = accept("delete", "{\"list\": []}");
    assert_int_equal(s->which, OBJECTS_LIST);
    assert_int_equal(objects_spec_count(s), 0);
    objects_spec_free(s);
}

static void test_copy(void **state)
{
    (void)state;
    struct objects_spec *s = accept("copy", "{\"to\": \"dst\"}");
    assert_int_equal(s->which, OBJECTS_PREFIX);
    assert_string_equal(s->prefix, "");
    assert_string_equal(s->to, "dst");
    assert_string_equal(s->prepend, "");
    objects_spec_free(s);
    s = accept("copy", "{\"to\": \"dst\", \"prefix\": \"a/\", \"prepend\": \"b/\"}");
    assert_string_equal(s->prefix, "a/");
    assert_string_equal(s->prepend, "b/");
    objects_spec_free(s);
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("delete", "{}", E_SPEC, "one of 'list'");
    refuse("delete", "{\"list\": [], \"prefix\": \"a\"}", E_SPEC, "only one of");
    refuse("delete", "{\"list\": \"a\"}", E_JSON, "value.list");
    refuse("delete", "{\"list\": [\"a\", 7]}", E_JSON, "value.list[1]");
    refuse("delete", "{\"list\": [\"\"]}", E_NAME, "value.list[0]");
    refuse("delete", "{\"template\": \"s-{0..\"}", E_SPEC, "value.template");
    refuse("delete", "{\"template\": \"s-00.tar\"}", E_SPEC, "no range");
    refuse("delete", "{\"template\": \"s-%06d\"}", E_SPEC, "no end");
    refuse("delete", "{\"template\": \"s-{0..10000000}\"}", E_SPEC, "10000001 names");
    char text[1200];
    snprintf(text, sizeof text, "{\"template\": \"%01023d{0..9}\"}", 0);
    objects_spec_free(accept("delete", text));
    snprintf(text, sizeof text, "{\"template\": \"%01023d{0..10}\"}", 0); /* 1025 bytes */
    refuse("delete", text, E_NAME, "value.template");
    refuse("delete", "{\"prefix\": \"a\", \"to\": \"b\"}", E_JSON, "to");
    refuse("copy", "{\"prefix\": \"a\"}", E_JSON, "value.to");
    refuse("copy", "{\"to\": \"-no\"}", E_NAME, "value.to");
}

static void test_prefetch_and_evict(void **state)
{
    (void)state;
    struct objects_spec *s = accept("prefetch", "{\"parallel\": 32, \"rate\": \"2MiB\"}");
    assert_int_equal(s->which, OBJECTS_PREFIX);
    assert_string_equal(s->prefix, "");
    assert_int_equal(s->parallel, 32);
    assert_int_equal(s->rate_bytes_s, 2 << 20);
    objects_spec_free(s);
    s = accept("prefetch", "{\"template\": \"s-{0..9}\"}");
    assert_int_equal(s->rate_bytes_s, 0);
    objects_spec_free(s);
    refuse("prefetch", "{\"parallel\": 257}", E_SPEC, "256");
    refuse("prefetch", "{\"to\": \"b\"}", E_JSON, "to");
    s = accept("evict", "{\"list\": [\"a\"]}");
    assert_int_equal(s->which, OBJECTS_LIST);
    objects_spec_free(s);
    refuse("evict", "{}", E_SPEC, "must be given");
    refuse("evict", "{\"prefix\": \"\", \"rate\": 1}", E_JSON, "rate");
}

static void test_plan_round_trip(void **state)
{
    (void)state;
    const struct objects_plan plan = {
        .input_bucket_id = 3, .output_bucket_id = 9, .term = 1ull << 50, .version = 12};
    _cleanup_json_ json_t *doc = objects_plan_json(&plan);
    struct objects_plan got;
    assert_int_equal(objects_plan_parse(doc, &got, NULL), 0);
    assert_int_equal(got.input_bucket_id, 3);
    assert_int_equal(got.output_bucket_id, 9);
    assert_int_equal(got.term, 1ull << 50);
    assert_int_equal(got.version, 12);
    json_object_del(doc, "version");
    struct error err = ERROR_INIT;
    assert_int_equal(objects_plan_parse(doc, &got, &err), E_JSON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_three_ways),
        cmocka_unit_test(test_an_empty_list_is_one),
        cmocka_unit_test(test_internal_names),
        cmocka_unit_test(test_archive),
        cmocka_unit_test(test_archives_by_a_template),
        cmocka_unit_test(test_refused_archives),
        cmocka_unit_test(test_unarchive),
        cmocka_unit_test(test_promote),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_prefetch_and_evict),
        cmocka_unit_test(test_plan_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
