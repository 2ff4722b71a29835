#include "api/ctl/param_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/parse.h"

static void numbers_have_units(void **unused)
{
    (void)unused;
    static const struct {
        const char *type;
        json_int_t number;
        const char *text;
    } rows[] = {
        {"size", 0, "0"},
        {"size", 1000, "1000"},
        {"size", 4096, "4KiB"},
        {"size", 3 << 20, "3MiB"},
        {"size", 1536 << 20, "1536MiB"},
        {"duration", 0, "0ms"},
        {"duration", 500, "500ms"},
        {"duration", 5000, "5s"},
        {"duration", 90000, "90s"},
        {"duration", 604800000, "7d"},
        {"percent", 95, "95%"},
        {"count", 4096, "4096"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *value = json_integer(rows[i].number);
        _cleanup_free_ char *text = param_text(rows[i].type, value);
        uint64_t back = 0;
        assert_string_equal(text, rows[i].text);
        if (strcmp(rows[i].type, "duration") == 0)
            assert_int_equal(parse_duration_ms(text, &back, NULL), 0);
        else if (strcmp(rows[i].type, "size") == 0)
            assert_int_equal(parse_size(text, &back, NULL), 0);
        else
            back = (uint64_t)rows[i].number;
        assert_int_equal(back, rows[i].number);
        json_decref(value);
    }
}

static void other_values_are_as_they_are(void **unused)
{
    (void)unused;
    json_t *text_value = json_string("etcd://h:1");
    _cleanup_free_ char *text = param_text("text", text_value);
    _cleanup_free_ char *yes = param_text("boolean", json_true());
    assert_string_equal(text, "etcd://h:1");
    assert_string_equal(yes, "true");
    json_decref(text_value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_units),
        cmocka_unit_test(other_values_are_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
