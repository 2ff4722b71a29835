/* Documents of Get-Batch, as the SDK writes them, and what becomes of them. */
#include "proxy/ais/moss.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "common/cleanup.h"

static void test_what_becomes_of_a_document(void **state)
{
    (void)state;
    static const struct {
        const char *moss, *bucket, *native;
    } rows[] = {
        {"{\"in\": [{\"objname\": \"o\"}]}", "b",
         "{\"entries\":[{\"bucket\":\"b\",\"object\":\"o\"}],\"on_missing\":\"fail\",\"format\":"
         "\".tar\",\"names\":\"bucket\",\"report\":true}"},
        {"{\"in\": [{\"objname\": \"o\", \"bucket\": \"c\", \"provider\": \"ais\", \"archpath\": "
         "\"m\", \"start\": 5, \"length\": 7, \"opaque\": \"eA==\"}], \"mime\": \".tgz\", "
         "\"coer\": "
         "true, \"onob\": true, \"strm\": true, \"coloc\": 1}",
         "b",
         "{\"entries\":[{\"bucket\":\"c\",\"object\":\"o\",\"member\":\"m\",\"opaque\":\"eA==\","
         "\"offset\":5,\"length\":7}],\"on_missing\":\"empty\",\"format\":\".tgz\",\"names\":"
         "\"object\",\"report\":false}"},
        {"{\"in\": [{\"objname\": \"o\", \"start\": 5, \"length\": -1}, {\"objname\": \"p\", "
         "\"length\": -1}], \"mime\": \"zip\"}",
         "b",
         "{\"entries\":[{\"bucket\":\"b\",\"object\":\"o\",\"offset\":5},{\"bucket\":\"b\","
         "\"object\":\"p\"}],\"on_missing\":\"fail\",\"format\":\".zip\",\"names\":\"bucket\","
         "\"report\":true}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        _cleanup_buf_ struct buf out = BUF_INIT;
        struct error err = ERROR_INIT;
        assert_int_equal(
            moss_translate(rows[i].moss, strlen(rows[i].moss), rows[i].bucket, &out, &err), 0);
        assert_string_equal(buf_str(&out), rows[i].native);
    }
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {"", E_JSON, ""},
        {"[]", E_JSON, "'in'"},
        {"{}", E_INVALID, "'in'"},
        {"{\"in\": []}", E_INVALID, "'in'"},
        {"{\"in\": {}}", E_JSON, "in"},
        {"{\"in\": [1]}", E_JSON, "in[0]"},
        {"{\"in\": [{\"bucket\": \"b\"}]}", E_JSON, "objname"},
        {"{\"in\": [{\"objname\": \"o\"}]}", E_INVALID, "in[0].bucket"},
        {"{\"in\": [{\"objname\": \"o\", \"bucket\": \"\"}]}", E_INVALID, "in[0].bucket"},
        {"{\"in\": [{\"objname\": \"o\", \"bucket\": \"b\", \"provider\": \"aws\"}]}",
         E_UNSUPPORTED, "in[0].provider"},
        {"{\"in\": [{\"objname\": \"o\", \"bucket\": \"b\", \"uname\": \"u\"}]}", E_UNSUPPORTED,
         "in[0].uname"},
        {"{\"in\": [{\"objname\": \"o\", \"bucket\": \"b\", \"start\": -1}]}", E_INVALID, "start"},
        {"{\"in\": [{\"objname\": \"o\", \"bucket\": \"b\", \"start\": 1}]}", E_INVALID, "length"},
        {"{\"in\": [{\"objname\": \"o\", \"bucket\": \"b\", \"length\": -2}]}", E_INVALID,
         "length"},
        {"{\"in\": [{\"objname\": \"o\", \"bucket\": \"b\", \"other\": 1}]}", E_JSON, "other"},
        {"{\"in\": [{\"objname\": \"o\", \"bucket\": \"b\"}], \"other\": 1}", E_JSON, "other"},
        {"{\"in\": [{\"objname\": \"o\", \"bucket\": \"b\"}], \"coer\": 1}", E_JSON, "coer"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        _cleanup_buf_ struct buf out = BUF_INIT;
        struct error err = ERROR_INIT;
        int code = moss_translate(rows[i].text, strlen(rows[i].text), NULL, &out, &err);
        if (code != rows[i].code || strstr(err.message, rows[i].words) == NULL)
            fail_msg("%s: %s, '%s'", rows[i].text, error_name(code), err.message);
        assert_int_equal(out.len, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_becomes_of_a_document),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
