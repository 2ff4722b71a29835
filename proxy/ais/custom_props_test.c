/* What can be user metadata, and what cannot. */
#include "proxy/ais/custom_props.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"
#include "common/jsonx.h"

static void test_pairs(void **state)
{
    (void)state;
    static const struct {
        const char *props, *words; /* NULL: taken */
    } rows[] = {
        {"{}", NULL},
        {"{\"color\": \"red\", \"x-1_y.z\": \"\", \"k\": \"a, b=c \xc3\xa9\"}", NULL},
        {"[]", "'value'"},
        {"{\"\": \"x\"}", "name"},
        {"{\"a b\": \"x\"}", "'a b'"},
        {"{\"a=b\": \"x\"}", "'a=b'"},
        {"{\"a:\": \"x\"}", "'a:'"},
        {"{\"\xc3\xa9\": \"x\"}", "name"},
        {"{\"a\": 1}", "value.a"},
        {"{\"a\": null}", "value.a"},
        {"{\"a\": \" x\"}", "value.a"},
        {"{\"a\": \"x \"}", "value.a"},
        {"{\"a\": \"x\\r\\nDfc-Checksum-Type: none\"}", "value.a"},
        {"{\"a\": \"x\\ty\"}", "value.a"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        _cleanup_json_ json_t *props = NULL;
        struct error err = ERROR_INIT;
        assert_int_equal(json_parse(rows[i].props, strlen(rows[i].props), &props, NULL), 0);
        int code = custom_props_check(props, &err);
        if (code != (rows[i].words != NULL ? E_INVALID : 0) ||
            (rows[i].words != NULL && strstr(err.message, rows[i].words) == NULL))
            fail_msg("%s: %s, '%s'", rows[i].props, error_name(code), err.message);
    }
    assert_int_equal(custom_props_check(NULL, NULL), E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
