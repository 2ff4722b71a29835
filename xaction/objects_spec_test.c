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
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_prefetch_and_evict),
        cmocka_unit_test(test_plan_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
