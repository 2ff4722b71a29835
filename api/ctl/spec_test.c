#include "api/ctl/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/jsonx.h"

static void both_notations(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"a: 1", "{\"a\":1}"},
        {"a: '1'", "{\"a\":\"1\"}"},
        {"a: 007", "{\"a\":\"007\"}"},
        {"a: 0", "{\"a\":0}"},
        {"a: -5\nb: +5", "{\"a\":-5,\"b\":5}"},
        {"a: 1.5", "{\"a\":1.5}"},
        {"a: 1e3", "{\"a\":1000.0}"},
        {"a: 9223372036854775808", "{\"a\":\"9223372036854775808\"}"},
        {"a: true\nb: False\nc: yes\nd: ~\ne:\nf: null",
         "{\"a\":true,\"b\":false,\"c\":\"yes\",\"d\":null,\"e\":null,\"f\":null}"},
        {"a: 10KB\nb: 60%\nc: 1.2.3\nd: '-'\ne: e", "{\"a\":\"10KB\",\"b\":\"60%\","
                                                    "\"c\":\"1.2.3\",\"d\":\"-\",\"e\":\"e\"}"},
        {"a: [1, two, {three: 3}]", "{\"a\":[1,\"two\",{\"three\":3}]}"},
        {"a:\n  - x\n  - y\nb: {}\nc: []", "{\"a\":[\"x\",\"y\"],\"b\":{},\"c\":[]}"},
        {"a: shard-{000..999}.tar", "{\"a\":\"shard-{000..999}.tar\"}"},
        {"a: \"out-%06d.tar\" # comment", "{\"a\":\"out-%06d.tar\"}"},
        {"---\na: |\n  text\n...\n", "{\"a\":\"text\\n\"}"},
        {" {\"a\": [true, null, \"x\"]}", "{\"a\":[true,null,\"x\"]}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *doc;
        struct error err = ERROR_INIT;
        assert_int_equal(spec_parse(rows[i][0], strlen(rows[i][0]), "spec", &doc, &err), 0);
        char *text = json_text(doc);
        assert_string_equal(text, rows[i][1]);
        free(text);
        json_decref(doc);
    }
}

static void refusals_say_where(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"a: 1\nb: 2\na: 3\n", "spec: line 3, column 1: the key occurs here for the second time"},
        {"a: &x 1\n", "spec: line 1, column 4: anchors and tags are not understood"},
        {"a: !!str 1\n", "spec: line 1, column 4: anchors and tags are not understood"},
        {"a: *x\n", "spec: line 1, column 4: aliases are not understood"},
        {"[a]: 1\n", "spec: line 1, column 1: a key must be a text"},
        {"a: 1\n---\nb: 2\n", "spec: line 2, column 1: a second document begins"},
        {"", "spec: line 1, column 1: the document is empty"},
        {"- a\n", "spec: expected fields with values"},
        {"just text", "spec: expected fields with values"},
        {"a: \"x\\0y\"", "spec: line 1, column 4: the text is not UTF-8, or has a NUL"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *doc;
        struct error err = ERROR_INIT;
        assert_int_equal(spec_parse(rows[i][0], strlen(rows[i][0]), "spec", &doc, &err), E_SPEC);
        assert_string_equal(err.message, rows[i][1]);
    }
    static const char *const broken[] = {"{",      "{\"a\":1,\"a\":2}", "a: [1",      "a: 'x",
                                         "\ta: 1", "a: b: c",           "{\"a\":1} x"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        json_t *doc;
        assert_int_equal(spec_parse(broken[i], strlen(broken[i]), "spec", &doc, NULL), E_SPEC);
    }
}

static void depth_is_bounded(void **state)
{
    (void)state;
    char text[3000] = "a: ";
    json_t *doc;
    struct error err;
    memset(text + 3, '[', 1000);
    memset(text + 1003, ']', 1000);
    assert_int_equal(spec_parse(text, 2003, "spec", &doc, &err), E_SPEC);
    assert_non_null(strstr(err.message, "nested too deeply"));
}

static json_t *with_flags(const char *spec, const char *const *words, int expected)
{
    struct args a;
    struct error err;
    json_t *doc;
    int argc = 0;
    while (words[argc] != NULL)
        argc++;
    assert_int_equal(args_parse(&a, argc, (char *const *)words, &err), 0);
    assert_int_equal(spec_parse(spec, strlen(spec), "spec", &doc, &err), 0);
    assert_int_equal(spec_apply_flags(doc, &a, &err), expected);
    args_done(&a);
    return doc;
}

#define WORDS(...) ((const char *const[]){"dfcctl", "sort", "start", __VA_ARGS__, NULL})

static void flags_set_and_replace(void **state)
{
    (void)state;
    json_t *doc = with_flags("{\"input_format\": {\"prefix\": \"x\"}, \"algorithm\": null, "
                             "\"dry_run\": false}",
                             WORDS("--template", "s-{0..9}.tar", "--decreasing", "--dry-run",
                                   "--shard-size=1MiB", "--input-bucket=in"),
                             0);
    char *text = json_text(doc);
    assert_string_equal(text, "{\"input_format\":{\"template\":\"s-{0..9}.tar\"},"
                              "\"algorithm\":{\"decreasing\":true},\"dry_run\":true,"
                              "\"input_bck\":{\"name\":\"in\"},\"output_shard_size\":1048576}");
    free(text);
    json_decref(doc);
    json_decref(with_flags("{\"algorithm\": \"none\"}", WORDS("--seed", "3"), E_SPEC));
    json_decref(with_flags("{}", WORDS("--prefix", "a", "--template", "b"), E_INVALID));
    json_decref(with_flags("{}", WORDS("--prefix", "\xff"), E_SPEC));
    json_decref(with_flags("{}", WORDS("--input-bucket", "\xff"), E_SPEC));
}

static void flags_of_a_field(void **state)
{
    (void)state;
    static const struct {
        const char *verb, *said, *wanted;
    } rows[] = {
        {"start", "field 'input_format' is missing",
         "field 'input_format' is missing (flag: --template or --prefix)"},
        {"start", "x: field 'input_format.template': no",
         "x: field 'input_format.template': no (flag: --template or --prefix)"},
        {"start", "field 'input_bck' is missing",
         "field 'input_bck' is missing (flag: --input-bucket)"},
        {"plan", "field 'algorithm.seed' goes", "field 'algorithm.seed' goes (flag: --seed)"},
        {"local", "field 'input_bck' is missing", "field 'input_bck' is missing"},
        {"start", "field 'algorithm' is", "field 'algorithm' is"},
        {"start", "field 'input_forma' is", "field 'input_forma' is"},
        {"start", "field 'input_formats' is", "field 'input_formats' is"},
        {"start", "field '", "field '"},
        {"start", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct args a;
        struct error err;
        const char *const words[] = {"dfcctl", "sort", rows[i].verb};
        char message[200], narrow[40];
        assert_int_equal(args_parse(&a, 3, (char *const *)words, &err), 0);
        snprintf(message, sizeof message, "%s", rows[i].said);
        spec_name_flags(&a, message, sizeof message);
        assert_string_equal(message, rows[i].wanted);
        snprintf(narrow, sizeof narrow, "%s", rows[i].said);
        spec_name_flags(&a, narrow, strlen(narrow) + 1); /* no room */
        assert_string_equal(narrow, rows[i].said);
        args_done(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_notations),   cmocka_unit_test(refusals_say_where),
        cmocka_unit_test(depth_is_bounded), cmocka_unit_test(flags_set_and_replace),
        cmocka_unit_test(flags_of_a_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
