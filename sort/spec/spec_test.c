#include "sort/spec/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/jsonx.h"
#include "common/mem.h"
#include "sort/shard/format.h"

static int parse(const char *text, struct sort_spec **out, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    int rc = json_parse(text, strlen(text), &doc, err);
    assert_int_equal(rc, 0);
    return sort_spec_parse(doc, out, err);
}

static struct sort_spec *parsed(const char *text)
{
    struct sort_spec *s = NULL;
    struct error err = ERROR_INIT;
    if (parse(text, &s, &err) != 0)
        fail_msg("%s: %s", text, err.message);
    return s;
}

/* What a request needs, and more fields. */
#define BASE(more)                                                                        \
    "{\"input_bck\": {\"name\": \"b\"}, \"input_format\": {\"template\": \"s-{0..9}\"}, " \
    "\"output_format\": \"o-%06d\", \"output_shard_size\": \"10MB\"" more "}"

static void test_orders(void **state)
{
    (void)state;
    struct sort_spec *s = parsed(BASE(", \"algorithm\": {\"kind\": \"content\", \"extension\":"
                                      " \".cls\", \"content_key_type\": \"float\"},"
                                      " \"missing_keys\": \"warn\""));
    assert_int_equal(s->algorithm, SORT_CONTENT);
    assert_string_equal(s->content_extension, ".cls");
    assert_int_equal(s->content_type, SORT_CONTENT_FLOAT);
    assert_int_equal(s->missing_keys, SORT_WARN);
    _cleanup_json_ json_t *again = sort_spec_json(s);
    struct sort_spec *t = NULL;
    assert_int_equal(sort_spec_parse(again, &t, NULL), 0);
    assert_string_equal(t->content_extension, ".cls");
    assert_int_equal(t->content_type, SORT_CONTENT_FLOAT);
    assert_int_equal(t->missing_keys, SORT_WARN);
    sort_spec_free(s);
    sort_spec_free(t);
}

static void test_formats(void **state)
{
    (void)state;
    struct sort_spec *s = parsed("{\"input_bck\": \"b\", \"input_format\": \"s-{0..9}.tgz\","
                                 " \"output_format\": \"o-%d.zip\", \"output_shard_size\": 1,"
                                 " \"unreadable_shards\": \"warn\"}");
    assert_string_equal(s->input_extension, ".tgz");
    assert_ptr_equal(s->input_shards, format_of_extension(".tar.gz"));
    assert_ptr_equal(s->output_shards, format_of_extension(".zip"));
    assert_int_equal(s->unreadable_shards, SORT_WARN);
    sort_spec_free(s);
    s = parsed("{\"input_bck\": \"b\", \"input_format\": {\"prefix\": \"\"},"
               " \"input_extension\": \".msgpack\", \"output_format\": \"o-{0..9}\"}");
    assert_string_equal(s->output_extension, ".msgpack");
    assert_string_equal(template_text(s->output_template), "o-{0..9}.msgpack");
    sort_spec_free(s);
}

static void test_defaults(void **state)
{
    (void)state;
    struct sort_spec *s = parsed(BASE(""));
    assert_string_equal(s->input_bucket, "b");
    assert_string_equal(s->output_bucket, "b");
    assert_int_equal(s->input_kind, SORT_INPUT_TEMPLATE);
    assert_int_equal(template_count(s->input_template), 10);
    assert_string_equal(template_text(s->input_template), "s-{0..9}.tar");
    assert_string_equal(template_text(s->output_template), "o-%06d.tar");
    assert_string_equal(s->input_extension, ".tar");
    assert_string_equal(s->output_extension, ".tar");
    assert_int_equal(s->output_shard_size, 10 * 1024 * 1024);
    assert_int_equal(s->algorithm, SORT_ALPHANUMERIC);
    assert_false(s->decreasing || s->seed_given || s->dry_run);
    assert_int_equal(s->key_rule, SORT_KEY_FIRST_DOT);
    assert_int_equal(s->missing_shards, SORT_ABORT);
    assert_int_equal(s->duplicated_records, SORT_ABORT);
    assert_int_equal(s->duplicated_output_records, SORT_WARN);
    assert_string_equal(s->description, "");
    sort_spec_free(s);
}

/* As AIStore's clients send it, empty fields and all. */
static void test_an_aistore_request(void **state)
{
    (void)state;
    struct sort_spec *s =
        parsed("{\"input_bck\": {\"name\": \"src\", \"provider\": \"ais\", \"namespace\": {}},"
               " \"output_bck\": {\"name\": \"dst\", \"provider\": \"ais\"},"
               " \"input_format\": {\"template\": \"shard-{0000..0099}\", \"objnames\": null},"
               " \"input_extension\": \".tar\", \"output_extension\": \"\", \"description\": \"x\","
               " \"output_format\": \"out-@100\", \"output_shard_size\": \"\","
               " \"algorithm\": {\"kind\": \"shuffle\", \"decreasing\": false, \"seed\": \"1234\","
               " \"extension\": \"\", \"content_key_type\": \"\"}, \"ekm_file\": \"\","
               " \"ekm_file_sep\": \"\", \"max_mem_usage\": \"60%\", \"dsorter_type\": \"\","
               " \"extract_concurrency_max_limit\": 4, \"create_concurrency_max_limit\": 5,"
               " \"dry_run\": true, \"config\": {\"missing_shards\": \"ignore\","
               " \"duplicated_records\": \"warn\", \"compression\": \"\", \"call_timeout\": 0}}");
    assert_string_equal(s->output_bucket, "dst");
    assert_int_equal(s->algorithm, SORT_SHUFFLE);
    assert_int_equal(s->seed, 1234);
    assert_true(s->seed_given && s->dry_run);
    assert_int_equal(s->max_mem_percent, 60);
    assert_int_equal(s->extract_concurrency, 4);
    assert_int_equal(s->create_concurrency, 5);
    assert_int_equal(s->missing_shards, SORT_IGNORE);
    assert_int_equal(s->duplicated_records, SORT_WARN);
    assert_int_equal(s->output_shard_size, 0);
    sort_spec_free(s);
}

/* AIStore's example of records that are packed by category; the form of 2020 in its last fields. */
static void test_an_external_key_map(void **state)
{
    (void)state;
    struct sort_spec *s =
        parsed("{\"input_extension\": \".tar\", \"input_bck\": {\"name\": \"dsort-testing\"},"
               " \"input_format\": {\"template\": \"shard-{0..9}\"},"
               " \"output_shard_size\": \"200KB\", \"description\": \"pack by category\","
               " \"order_file\": \"http://website.web/static/order_file.txt\","
               " \"order_file_sep\": \" \"}");
    assert_string_equal(s->ekm_file, "http://website.web/static/order_file.txt");
    assert_string_equal(s->ekm_separator, " ");
    assert_null(s->ekm_bucket);
    assert_null(s->output_template);
    assert_int_equal(s->ekm_missing_key, SORT_ABORT);
    assert_string_equal(s->output_extension, ".tar");
    sort_spec_free(s);
    s = parsed(
        "{\"input_bck\": \"b\", \"input_format\": \"s-{0..9}.tgz\", \"output_format\": \"?\","
        " \"output_shard_size\": 1000, \"ekm_file\": \"ais://maps/a/b.json\","
        " \"ekm_keys\": \"exact\", \"config\": {\"ekm_missing_key\": \"warn\"},"
        " \"ekm_malformed_line\": \"ignore\"}");
    assert_string_equal(s->ekm_bucket, "maps");
    assert_string_equal(s->ekm_object, "a/b.json");
    assert_string_equal(s->ekm_separator, "\t");
    assert_string_equal(s->output_extension, ".tgz");
    assert_int_equal(s->ekm_keys, SORT_EKM_EXACT);
    assert_int_equal(s->ekm_missing_key, SORT_WARN);
    assert_int_equal(s->ekm_malformed_line, SORT_IGNORE);
    _cleanup_json_ json_t *doc = sort_spec_json(s);
    struct sort_spec *again = NULL;
    assert_int_equal(sort_spec_parse(doc, &again, NULL), 0);
    _cleanup_json_ json_t *same = sort_spec_json(again);
    assert_true(json_equal(doc, same));
    sort_spec_free(again);
    sort_spec_free(s);
}

/* The form of 2020. */
static void test_old_names(void **state)
{
    (void)state;
    struct sort_spec *s = parsed(
        "{\"bck\": {\"name\": \"b\"}, \"extension\": \".tar\", \"input_format\": \"s-{0..9}\","
        " \"output_format\": \"o-{0..9}\"}");
    assert_string_equal(s->input_bucket, "b");
    assert_int_equal(s->input_kind, SORT_INPUT_TEMPLATE);
    sort_spec_free(s);
}

static void test_inputs(void **state)
{
    (void)state;
    struct sort_spec *s =
        parsed("{\"input_bck\": \"b\", \"input_format\": {\"objnames\": [\"z.tar\", \"a\"]},"
               " \"output_format\": \"o-%d\", \"output_shard_size\": 1}");
    assert_int_equal(s->input_kind, SORT_INPUT_LIST);
    assert_int_equal(s->input_name_count, 2);
    assert_string_equal(s->input_names[0], "z.tar");
    assert_string_equal(s->input_names[1], "a.tar");
    sort_spec_free(s);

    s = parsed("{\"input_bck\": \"b\", \"input_format\": {\"prefix\": \"\"},"
               " \"output_format\": \"o-%d\", \"output_shard_size\": 1}");
    assert_int_equal(s->input_kind, SORT_INPUT_PREFIX);
    assert_string_equal(s->input_prefix, "");
    sort_spec_free(s);

    s = parsed("{\"input_bck\": \"b\", \"input_format\": {\"template\": \"train/\"},"
               " \"output_format\": \"o-%d\", \"output_shard_size\": 1}");
    assert_int_equal(s->input_kind, SORT_INPUT_PREFIX);
    assert_string_equal(s->input_prefix, "train/");
    sort_spec_free(s);

    s = parsed("{\"input_bck\": \"b\", \"input_format\": \"train/s*\","
               " \"output_format\": \"o-%d\", \"output_shard_size\": 1}");
    assert_int_equal(s->input_kind, SORT_INPUT_PREFIX);
    assert_string_equal(s->input_prefix, "train/s");
    sort_spec_free(s);
}

static void test_every_form_comes_back(void **state)
{
    (void)state;
    static const char *const texts[] = {
        BASE(""),
        BASE(", \"algorithm\": {\"kind\": \"shuffle\", \"seed\": \"18446744073709551615\"}"),
        BASE(", \"algorithm\": {\"kind\": \"shuffle\", \"seed\": 0, \"decreasing\": true}"),
        BASE(", \"algorithm\": {\"kind\": \"none\"}, \"key_rule\": \"last_dot\""),
        BASE(", \"max_mem_usage\": \"7%\", \"dry_run\": true, \"description\": \"d\\\"q\""),
        BASE(", \"max_mem_usage\": \"1GB\", \"missing_shards\": \"warn\","
             " \"duplicated_records\": \"ignore\", \"duplicated_output_records\": \"abort\""),
        BASE(", \"wids_index\": \"a/o.json\", \"dali_indexes\": true"),
        "{\"input_bck\": \"b\", \"output_bck\": \"c\", \"input_format\": {\"prefix\": \"p/\"},"
        " \"output_format\": \"o-{00..10..2}.tar\"}",
        "{\"input_bck\": \"b\", \"input_format\": {\"objnames\": [\"x.tar\", \"a/b.tar\"]},"
        " \"output_format\": \"o-@9\", \"extract_concurrency_max_limit\": 3}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct sort_spec *first = parsed(texts[i]);
        json_t *doc = sort_spec_json(first);
        assert_non_null(doc);
        struct sort_spec *second = NULL;
        struct error err = ERROR_INIT;
        if (sort_spec_parse(doc, &second, &err) != 0)
            fail_msg("%s: %s", texts[i], err.message);
        json_t *again = sort_spec_json(second);
        assert_true(json_equal(doc, again));
        assert_true(first->seed == second->seed && first->seed_given == second->seed_given);
        assert_true(first->max_mem_percent == second->max_mem_percent);
        json_decref(doc);
        json_decref(again);
        sort_spec_free(first);
        sort_spec_free(second);
    }
}

#define WITHOUT(fields) "{\"input_bck\": \"b\", " fields "}"
#define OUT "\"output_format\": \"o-%d\", \"output_shard_size\": 1"
#define IN "\"input_format\": \"s-{0..9}\""

static const struct {
    const char *text;
    int code;
    const char *words;
} bad[] = {
    {"[]", E_SPEC, "must be a JSON object"},
    {"{}", E_SPEC, "field 'input_bck' is missing"},
    {"{\"input_bck\": 7}", E_SPEC, "field 'input_bck'"},
    {"{\"input_bck\": {\"name\": \"\"}}", E_SPEC, "field 'input_bck' names no bucket"},
    {"{\"input_bck\": {\"provider\": \"ais\"}}", E_SPEC, "input_bck.name"},
    {"{\"input_bck\": {\"name\": \"b\", \"provider\": \"aws\"}}", E_UNSUPPORTED,
     "field 'input_bck.provider': 'aws'"},
    {"{\"input_bck\": {\"name\": \"b\", \"namespace\": {\"name\": \"x\"}}}", E_UNSUPPORTED,
     "field 'input_bck.namespace'"},
    {"{\"input_bck\": {\"name\": \"b\", \"nmae\": \"x\"}}", E_SPEC, "nmae"},
    {BASE(", \"output_bck\": {\"name\": \"c\", \"provider\": \"gcp\"}"), E_UNSUPPORTED,
     "output_bck.provider"},
    {BASE(", \"outptu_format\": \"x\""), E_SPEC, "outptu_format"},
    {WITHOUT(OUT), E_SPEC, "field 'input_format' is missing"},
    {WITHOUT(OUT ", \"input_format\": {}"), E_SPEC, "one of 'template', 'objnames', 'prefix'"},
    {WITHOUT(OUT ", \"input_format\": \"\""), E_SPEC, "input_format"},
    {WITHOUT(OUT ", \"input_format\": 3"), E_SPEC, "input_format"},
    {WITHOUT(OUT ", \"input_format\": {\"prefix\": \"a\", \"template\": \"b-{0..1}\"}"), E_SPEC,
     "one of"},
    {WITHOUT(OUT ", \"input_format\": {\"objnames\": [1]}"), E_SPEC, "must hold strings"},
    {WITHOUT(OUT ", \"input_format\": {\"objnames\": [\"\"]}"), E_SPEC, "1 to 1024 bytes"},
    {WITHOUT(OUT ", \"input_format\": {\"objnames\": [\"a\", \"b\", \"a.tar\"]}"), E_SPEC,
     "names 'a.tar' twice"},
    {WITHOUT(OUT ", \"input_format\": {\"objnames\": [\"a.zip\"]}"), E_SPEC,
     "'a.zip' does not end with '.tar'"},
    {WITHOUT(OUT ", \"input_format\": {\"extra\": 1}"), E_SPEC, "extra"},
    {WITHOUT(OUT ", \"input_format\": \"s-%d\""), E_SPEC, "has no end"},
    {WITHOUT(OUT ", \"input_format\": \"s-{5..1}\""), E_SPEC, "input_format"},
    {WITHOUT(OUT ", \"input_format\": \"s-{0..1\""), E_SPEC, "input_format"},
    {WITHOUT(OUT ", \"input_format\": \"s-{0..99999999}\""), E_SPEC, "the limit is"},
    {WITHOUT(OUT ", \"input_format\": \"s-{0..9}.zip\", \"input_extension\": \".tar\""), E_SPEC,
     "does not end with '.tar'"},
    {WITHOUT(IN ", " OUT ", \"input_extension\": \".gz\""), E_SPEC,
     "field 'input_extension': '.gz' is not an archive's extension (.tar, .tar.gz, .tgz, .zip"},
    {WITHOUT(IN ", " OUT ", \"input_extension\": \".rar\""), E_SPEC, "'.rar' is not an archive"},
    {WITHOUT(IN ", " OUT ", \"output_extension\": \"tar\""), E_SPEC, "field 'output_extension'"},
    {WITHOUT(IN), E_SPEC, "output_format"},
    {WITHOUT(IN ", \"output_format\": \"out\", \"output_shard_size\": 1"), E_SPEC, "has no range"},
    {WITHOUT(IN ", \"output_format\": \"o-%d.tgz\", \"output_extension\": \".zip\","
                " \"output_shard_size\": 1"),
     E_SPEC, "'o-%d.tgz' does not end with '.zip'"},
    {WITHOUT(IN ", \"output_format\": \"x-%04d.rar\", \"output_shard_size\": 1"), E_SPEC,
     "field 'output_format': '.rar' is not an archive's extension (.tar"},
    {WITHOUT(OUT ", \"input_format\": \"s-{0..9}.tar.Z\""), E_SPEC,
     "field 'input_format': '.tar.Z' is not an archive's extension"},
    {WITHOUT(OUT ", \"input_format\": \"s-{0..9}.tar.xz\""), E_SPEC,
     "field 'output_extension': '.tar.xz' is an input's alone"},
    {WITHOUT(IN ", \"output_format\": \"o-%d.cpio\", \"output_shard_size\": 1"), E_SPEC,
     "field 'output_extension': '.cpio' is an input's alone: set it to one of .tar, .tar.gz"},
    {BASE(", \"unreadable_shards\": \"skip\""), E_SPEC, "unreadable_shards"},
    {WITHOUT(IN ", \"output_format\": \"o-{9..1}\""), E_SPEC, "output_format"},
    {WITHOUT(IN ", \"output_format\": \"o-%d\""), E_SPEC, "field 'output_shard_size' is needed"},
    {WITHOUT(IN ", \"output_format\": \"o-%d\", \"output_shard_size\": \"0\""), E_SPEC,
     "is needed"},
    {WITHOUT(IN ", \"output_format\": \"o-%d\", \"output_shard_size\": -1"), E_SPEC,
     "output_shard_size"},
    {WITHOUT(IN ", \"output_format\": \"o-%d\", \"output_shard_size\": \"10 apples\""), E_SPEC,
     "output_shard_size"},
    {WITHOUT(IN ", \"output_format\": \"o-%d\", \"output_shard_size\": true"), E_SPEC,
     "output_shard_size"},
    {BASE(", \"algorithm\": \"shuffle\""), E_SPEC, "algorithm"},
    {BASE(", \"algorithm\": {\"kind\": \"content\", \"extension\": \".cls\"}"), E_SPEC,
     "field 'algorithm.content_key_type': ''"},
    {BASE(", \"algorithm\": {\"kind\": \"content\", \"content_key_type\": \"int\"}"), E_SPEC,
     "field 'algorithm.extension'"},
    {BASE(", \"algorithm\": {\"kind\": \"content\", \"extension\": \"cls\","
          " \"content_key_type\": \"int\"}"),
     E_SPEC, "'cls' is not an extension"},
    {BASE(", \"missing_keys\": \"no\""), E_SPEC, "missing_keys"},
    {BASE(", \"algorithm\": {\"kind\": \"bogo\"}"), E_SPEC, "'bogo' is no algorithm"},
    {BASE(", \"algorithm\": {\"extension\": \".cls\"}"), E_SPEC, "go with 'content' alone"},
    {BASE(", \"algorithm\": {\"order\": 1}"), E_SPEC, "order"},
    {BASE(", \"algorithm\": {\"kind\": \"shuffle\", \"seed\": -1}"), E_SPEC, "algorithm.seed"},
    {BASE(", \"algorithm\": {\"kind\": \"shuffle\", \"seed\": \"x\"}"), E_SPEC, "algorithm.seed"},
    {BASE(", \"algorithm\": {\"seed\": 1}"), E_SPEC, "goes with 'shuffle' alone"},
    {BASE(", \"algorithm\": {\"decreasing\": \"yes\"}"), E_SPEC, "algorithm.decreasing"},
    {BASE(", \"algorithm\": {\"kind\": \"none\", \"decreasing\": true}"), E_SPEC,
     "'none' has none"},
    {BASE(", \"key_rule\": \"all_dots\""), E_SPEC, "key_rule"},
    {BASE(", \"ekm_file\": \"x\""), E_SPEC, "neither http://"},
    {BASE(", \"ekm_file\": \"dfc://b\""), E_SPEC, "does not name an object"},
    {BASE(", \"ekm_file\": \"dfc:///o\""), E_SPEC, "does not name an object"},
    {BASE(", \"ekm_file\": \"http://x\", \"order_file\": \"http://y\""), E_SPEC, "given twice"},
    {BASE(", \"ekm_file\": \"http://x\", \"ekm_file_sep\": \"\\n\""), E_SPEC, "line feed"},
    {BASE(", \"ekm_keys\": \"all\""), E_SPEC, "not one of auto, exact, regex"},
    {BASE(", \"ekm_missing_key\": \"skip\""), E_SPEC, "field 'ekm_missing_key'"},
    {BASE(", \"config\": {\"ekm_malformed_line\": 1}"), E_SPEC, "ekm_malformed_line"},
    {"{\"input_bck\": \"b\", \"input_format\": \"s-{0..9}\", \"ekm_file\": \"http://x\"}", E_SPEC,
     "field 'output_shard_size' is needed"},
    {BASE(", \"config\": {\"compression\": \"always\"}"), E_UNSUPPORTED, "config.compression"},
    {BASE(", \"config\": {\"colour\": 1}"), E_SPEC, "colour"},
    {BASE(", \"config\": 1"), E_SPEC, "config"},
    {BASE(", \"order_file\": \"x\""), E_SPEC, "neither http://"},
    {BASE(", \"dsorter_type\": \"dsort_mem\""), E_UNSUPPORTED, "dsorter_type"},
    {BASE(", \"max_mem_usage\": \"0%\""), E_SPEC, "max_mem_usage"},
    {BASE(", \"max_mem_usage\": \"101%\""), E_SPEC, "max_mem_usage"},
    {BASE(", \"max_mem_usage\": \"%\""), E_SPEC, "max_mem_usage"},
    {BASE(", \"max_mem_usage\": \"lots\""), E_SPEC, "max_mem_usage"},
    {BASE(", \"extract_concurrency_max_limit\": -1"), E_SPEC, "extract_concurrency_max_limit"},
    {BASE(", \"create_concurrency_max_limit\": 100000"), E_SPEC, "exceeds 1024"},
    {BASE(", \"missing_shards\": \"maybe\""), E_SPEC, "not one of abort, warn, ignore"},
    {BASE(", \"missing_shards\": \"warn\", \"config\": {\"missing_shards\": \"abort\"}"), E_SPEC,
     "given twice"},
    {BASE(", \"dry_run\": 1"), E_SPEC, "dry_run"},
    {BASE(", \"wids_index\": 1"), E_SPEC, "wids_index"},
    {BASE(", \"wids_index\": \"o-1.tar\""), E_SPEC, "ends with '.json'"},
    {BASE(", \"wids_index\": \".json\""), E_SPEC, "ends with '.json'"},
    {BASE(", \"dali_indexes\": \"yes\""), E_SPEC, "dali_indexes"},
    {BASE(", \"dali_indexes\": true, \"output_extension\": \".tar.gz\""), E_SPEC,
     "DALI reads plain tars (.tar), not '.tar.gz'"},
    {BASE(", \"description\": 1"), E_SPEC, "description"},
};

/* What counts is the name that is looked for: with its extension. */
static void test_longest_names(void **state)
{
    (void)state;
    for (size_t len = 1020; len <= 1021; len++) {
        char text[2048];
        snprintf(text, sizeof text,
                 "{\"input_bck\": \"b\", \"input_format\": {\"objnames\": [\"%0*d\"]},"
                 " \"output_format\": \"o-%%d\", \"output_shard_size\": 1024}",
                 (int)len, 0);
        _cleanup_json_ json_t *doc = json_loads(text, 0, NULL);
        struct sort_spec *s = NULL;
        struct error err = ERROR_INIT;
        assert_int_equal(sort_spec_parse(doc, &s, &err), len == 1020 ? 0 : E_SPEC);
        sort_spec_free(s);
    }
}

static void test_bad_requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sort_spec *s = NULL;
        struct error err = ERROR_INIT;
        int rc = parse(bad[i].text, &s, &err);
        if (rc != bad[i].code || strstr(err.message, bad[i].words) == NULL || err.code != rc)
            fail_msg("%s: %s: '%s', not '%s'", bad[i].text, error_name(rc), err.message,
                     bad[i].words);
        assert_null(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_an_aistore_request),
        cmocka_unit_test(test_an_external_key_map),
        cmocka_unit_test(test_old_names),
        cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_every_form_comes_back),
        cmocka_unit_test(test_longest_names),
        cmocka_unit_test(test_bad_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
