/* Lists of parts as the SDK sends them, and what is none. */
#include "proxy/ais/part_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/jsonx.h"

static const struct row {
    const char *value, *list; /* NULL: refused, … */
    int code;
    const char *words;
} rows[] = {
    {"[{\"part-number\": 1, \"etag\": \"\"}]", "[{\"part\":1}]", 0, ""},
    {"[{\"part-number\": 3}, {\"part-number\": 1, \"etag\": \"ab\"}, {\"part-number\": 3}]",
     "[{\"part\":1,\"tag\":\"ab\"},{\"part\":3}]", 0, ""},
    {"[{\"part-number\": 0}]", "[{\"part\":0}]", 0, ""},
    {"[]", NULL, E_INVALID, "'value'"},
    {"{}", NULL, E_INVALID, "'value'"},
    {"[1]", NULL, E_JSON, "value[0]"},
    {"[{\"part-number\": 1}, {}]", NULL, E_JSON, "value[1]"},
    {"[{\"part-number\": -1}]", NULL, E_JSON, "part-number"},
    {"[{\"part-number\": \"1\"}]", NULL, E_JSON, "part-number"},
    {"[{\"part-number\": 1, \"etag\": 2}]", NULL, E_JSON, "etag"},
    {"[{\"part-number\": 1, \"size\": 2}]", NULL, E_JSON, "size"},
};

static void test_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        _cleanup_json_ json_t *value = NULL;
        _cleanup_buf_ struct buf out = BUF_INIT;
        struct error err = ERROR_INIT;
        assert_int_equal(json_parse(r->value, strlen(r->value), &value, NULL), 0);
        int code = part_list_translate(value, &out, &err);
        if (code != r->code || strstr(err.message, r->words) == NULL)
            fail_msg("%s: %s, '%s'", r->value, error_name(code), err.message);
        if (r->list != NULL)
            assert_string_equal(buf_str(&out), r->list);
    }
    struct buf out = BUF_INIT;
    assert_int_equal(part_list_translate(NULL, &out, NULL), E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
