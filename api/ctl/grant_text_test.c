#include "api/ctl/grant_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/jsonx.h"

static void grants(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"see", "{\"rights\":[\"see\"]}"},
        {"see,,jobs,", "{\"rights\":[\"see\",\"jobs\"]}"},
        {"read:b", "{\"rights\":[\"read\"],\"bucket\":\"b\"}"},
        {"list,read:train-*/a/b", "{\"rights\":[\"list\",\"read\"],\"bucket\":\"train-*\","
                                  "\"prefix\":\"a/b\"}"},
        {"", NULL},
        {",", NULL},
        {":b", NULL},
        {"read:", NULL},
        {"read:/x", NULL},
        {"read,\xff", NULL}, /* not only 'read' */
        {"\xff", NULL},
        {"read:\xff", NULL},
        {"read:b/\xff", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *doc;
        if (rows[i][1] == NULL) {
            assert_int_equal(grant_parse(rows[i][0], &doc, NULL), E_INVALID);
            continue;
        }
        assert_int_equal(grant_parse(rows[i][0], &doc, NULL), 0);
        _cleanup_free_ char *text = json_text(doc);
        assert_string_equal(text, rows[i][1]);
        json_decref(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(grants)};
    return cmocka_run_group_tests_name("grant_text", tests, NULL, NULL);
}
