#include "cluster/props/ec_shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/jsonx.h"

static int parse(const char *text, struct ec_shape *out)
{
    _cleanup_json_ json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    *out = (struct ec_shape){.min_size = 7};
    return ec_shape_from_json(value, out, NULL);
}

static void both_forms_say_the_same(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        struct ec_shape is;
    } rows[] = {
        {"\"4+2\"", {4, 2, 7}},
        {"\"10+4:64KiB\"", {10, 4, 65536}},
        {"\"2+1:0\"", {2, 1, 0}},
        {"{\"data\": 4, \"parity\": 2}", {4, 2, 7}},
        {"{\"data\": 4, \"parity\": 2, \"min_size\": 100}", {4, 2, 100}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ec_shape got;
        assert_int_equal(parse(rows[i].text, &got), 0);
        assert_int_equal(got.data, rows[i].is.data);
        assert_int_equal(got.parity, rows[i].is.parity);
        assert_int_equal(got.min_size, rows[i].is.min_size);
    }
}

static void what_is_neither_is_refused(void **unused)
{
    (void)unused;
    static const char *const texts[] = {"\"\"",      "\"4\"",     "\"+\"",      "\"4+\"",
                                        "\"+2\"",    "\"4-2\"",   "\"4+2:\"",   "\"4+2:x\"",
                                        "\"4+2+1\"", "\"-4+2\"",  "\"4:1+2\"",  "\"4 + 2\"",
                                        "\"a+b\"",   "\"1e1+2\"", "\"4+2:1:1\""};
    struct ec_shape got;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(parse(texts[i], &got), E_INVALID);
    assert_int_equal(parse("5", &got), E_JSON);
    assert_int_equal(parse("[4, 2]", &got), E_JSON);
    assert_int_equal(parse("{\"data\": 4}", &got), E_JSON);
    assert_int_equal(parse("{\"data\": -4, \"parity\": 2}", &got), E_JSON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_say_the_same),
        cmocka_unit_test(what_is_neither_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
