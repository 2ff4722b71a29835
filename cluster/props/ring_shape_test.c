#include "cluster/props/ring_shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/jsonx.h"

static int parse(const char *text, struct ring_shape *out)
{
    _cleanup_json_ json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    *out = (struct ring_shape){.keep = 1, .bytes_max = 1 << 30};
    return ring_shape_from_json(value, out, NULL);
}

static void both_forms_say_the_same(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        struct ring_shape is;
    } rows[] = {
        {"\"cap=100\"", {100, 1, 1 << 30}},
        {"\"cap=4,swap=consumed\"", {4, 1, 1 << 30, true, false}},
        {"\"policy=drop,cap=4,swap=full\"", {4, 1, 1 << 30, false, true}},
        {"{\"cap\": 4, \"swap\": \"consumed\", \"policy\": \"block\"}",
         {4, 1, 1 << 30, true, false}},
        {"\"cap=4096,keep=0,bytes_max=1MiB\"", {4096, 0, 1 << 20}},
        {"\"cap=1000000,keep=2\"", {1000000, 2, 1 << 30}},
        {"\"keep=16,cap=1\"", {1, 16, 1 << 30}},
        {"{\"cap\": 4}", {4, 1, 1 << 30}},
        {"{\"cap\": 4, \"keep\": 2, \"bytes_max\": \"2MiB\"}", {4, 2, 2 << 20}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ring_shape got;
        assert_int_equal(parse(rows[i].text, &got), 0);
        assert_int_equal(got.cap, rows[i].is.cap);
        assert_int_equal(got.keep, rows[i].is.keep);
        assert_int_equal(got.bytes_max, rows[i].is.bytes_max);
        _cleanup_json_ json_t *doc = ring_shape_to_json(&got);
        struct ring_shape again = {0};
        assert_int_equal(ring_shape_from_json(doc, &again, NULL), 0);
        assert_int_equal(again.bytes_max, got.bytes_max);
        assert_true(got.consumed == rows[i].is.consumed && again.consumed == got.consumed);
        assert_true(got.drops == rows[i].is.drops && again.drops == got.drops);
    }
}

/* Of a bucket in use: the words go back, and what is not said stays. */
static void a_choice_is_taken_back(void **unused)
{
    (void)unused;
    struct ring_shape s = {.cap = 4, .bytes_max = 1 << 30, .consumed = true, .drops = true};
    _cleanup_json_ json_t *value = json_string("policy=block");
    assert_int_equal(ring_shape_from_json(value, &s, NULL), 0);
    assert_true(s.consumed);
    assert_false(s.drops);
    _cleanup_json_ json_t *doc = ring_shape_to_json(&s);
    assert_null(json_object_get(doc, "policy"));
    assert_string_equal(json_string_value(json_object_get(doc, "swap")), "consumed");
}

static void what_is_neither_is_refused(void **unused)
{
    (void)unused;
    static const char *const texts[] = {"\"\"",
                                        "\"100\"",
                                        "\"cap\"",
                                        "\"cap=\"",
                                        "\"cap=0\"",
                                        "\"cap=x\"",
                                        "\"cap=100,\"",
                                        "\",cap=100\"",
                                        "\"cap=1000001\"",
                                        "\"keep=1\"",
                                        "\"cap=-1\"",
                                        "\"cap=1,a=2\"",
                                        "\"cap=1,keep=17\"",
                                        "\"cap=1 ,keep=1\"",
                                        "\"cap=1,swap=\"",
                                        "\"cap=1,swap=never\"",
                                        "\"cap=1,policy=consumed\"",
                                        "{\"cap\": 1, \"policy\": \"\"}",
                                        "{}",
                                        "{\"keep\": 1}",
                                        "\"cap=1,bytes_max=1023KiB\"",
                                        "\"cap=4097,keep=0,bytes_max=1MiB\"",
                                        "\"cap=4096,keep=1,bytes_max=1MiB\"",
                                        "\"cap=1000000,keep=16,bytes_max=2GiB\""};
    struct ring_shape got;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(parse(texts[i], &got), E_INVALID);
    assert_int_equal(parse("5", &got), E_JSON);
    assert_int_equal(parse("{\"cap\": 1, \"more\": 1}", &got), E_JSON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_say_the_same),
        cmocka_unit_test(a_choice_is_taken_back),
        cmocka_unit_test(what_is_neither_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
