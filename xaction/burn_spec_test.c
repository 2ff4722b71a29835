/* What the job `burn` takes, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "xaction/burn_spec.h"

static int parse(const char *text, struct burn_spec **out, struct error *err)
{
    _cleanup_json_ json_t *value = json_loads(text, 0, NULL);
    assert_non_null(value);
    return burn_spec_parse(value, out, err);
}

static void test_a_prefix(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct burn_spec *s = NULL;
    assert_int_equal(parse("{\"prefix\": \"\", \"image\": \"a.vdsc\"}", &s, &err), 0);
    assert_string_equal(s->prefix, "");
    assert_null(s->csv);
    assert_null(s->to);
    assert_string_equal(s->names, "any");
    assert_false(s->digest || s->unchecked || s->joliet || s->dated || s->allow_empty);
    burn_spec_free(s);
}

static void test_a_list_with_everything(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct burn_spec *s = NULL;
    assert_int_equal(parse("{\"csv\": \"l.csv\", \"image\": \"i/a.vdsc\", \"to\": \"other\", "
                           "\"digest\": true, \"check\": false, \"joliet\": true, \"date\": -5, "
                           "\"names\": \"portable\", \"identifiers\": {\"volume\": \"SET\"}, "
                           "\"allow_empty\": true, \"description\": \"d\"}",
                           &s, &err),
                     0);
    assert_string_equal(s->csv, "l.csv");
    assert_string_equal(s->to, "other");
    assert_true(s->digest && s->unchecked && s->joliet && s->dated && s->allow_empty);
    assert_int_equal(s->date_s, -5);
    assert_string_equal(s->names, "portable");
    assert_string_equal(json_string_value(json_object_get(s->identifiers, "volume")), "SET");
    assert_string_equal(s->description, "d");
    burn_spec_free(s);
}

static void test_older_images(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct burn_spec *s = NULL;
    assert_int_equal(
        parse("{\"image\": \"a.vdsc\", \"from\": \"o.vdsc\", \"remove\": [\"/x\"]}", &s, &err), 0);
    assert_null(s->prefix);
    assert_string_equal(s->from, "o.vdsc");
    assert_string_equal(json_string_value(json_array_get(s->remove, 0)), "/x");
    assert_false(s->stores || s->packs);
    burn_spec_free(s);
    assert_int_equal(parse("{\"image\": \"a.vdsc\", \"prefix\": \"\", \"base\": \"o.vdsc\", "
                           "\"store\": \"pack\"}",
                           &s, &err),
                     0);
    assert_string_equal(s->base, "o.vdsc");
    assert_true(s->stores && s->packs);
    burn_spec_free(s);
    assert_int_equal(
        parse("{\"image\": \"a.vdsc\", \"csv\": \"l\", \"store\": \"unique\"}", &s, &err), 0);
    assert_true(s->stores && !s->packs);
    burn_spec_free(s);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        const char *says;
    } rows[] = {
        {"{}", E_SPEC, "one of 'prefix' and 'csv'"},
        {"{\"prefix\": \"a\", \"csv\": \"b\", \"image\": \"c\"}", E_SPEC, "one of"},
        {"{\"prefix\": \"a\", \"image\": \"c\", \"remove\": [\"/x\"]}", E_SPEC, "'from'"},
        {"{\"from\": \"a\", \"image\": \"c\", \"remove\": [1]}", E_JSON, "remove[0]"},
        {"{\"prefix\": \"a\", \"image\": \"c\", \"store\": \"zip\"}", E_SPEC, "value.store"},
        {"{\"prefix\": \"a\", \"image\": \"c\", \"base\": \"b\"}", E_SPEC, "'store'"},
        {"{\"prefix\": \"a\", \"image\": \"c\", \"store\": \"pack\", \"check\": false}", E_SPEC,
         "'check'"},
        {"{\"prefix\": \"a\"}", E_SPEC, "value.image"},
        {"{\"prefix\": \"a\", \"image\": \"\"}", E_NAME, "value.image"},
        {"{\"prefix\": \"a\", \"image\": \"c/\"}", E_NAME, "value.image"},
        {"{\"csv\": \"\", \"image\": \"c\"}", E_NAME, "value.csv"},
        {"{\"prefix\": \"a\", \"image\": \"c\", \"to\": \"-\"}", E_NAME, "value.to"},
        {"{\"prefix\": \"a\", \"image\": \"c\", \"names\": \"all\"}", E_SPEC, "value.names"},
        {"{\"prefix\": \"a\", \"image\": \"c\", \"identifiers\": {\"volume\": 1}}", E_JSON,
         "identifiers.volume"},
        {"{\"prefix\": \"a\", \"image\": \"c\", \"tree\": \"/\"}", E_JSON, "tree"},
        {"{\"prefix\": \"a\", \"image\": \"c\", \"date\": \"now\"}", E_JSON, "date"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = ERROR_INIT;
        struct burn_spec *s = NULL;
        if (parse(rows[i].text, &s, &err) != rows[i].code ||
            strstr(err.message, rows[i].says) == NULL)
            fail_msg("row %zu: %s", i, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_prefix),
        cmocka_unit_test(test_a_list_with_everything),
        cmocka_unit_test(test_older_images),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
