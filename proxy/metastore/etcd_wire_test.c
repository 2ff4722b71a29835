#include "proxy/metastore/etcd_wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "common/jsonx.h"
#include "common/mem.h"

static void assert_base64(const char *bytes, size_t len, const char *text)
{
    _cleanup_(buf_done)
    struct buf out = BUF_INIT;
    _cleanup_(buf_done)
    struct buf back = BUF_INIT;
    etcd_base64_put(&out, bytes, len);
    assert_string_equal(buf_str(&out), text);
    assert_int_equal(etcd_base64_parse(text, &back, NULL), 0);
    assert_int_equal(back.len, len);
    assert_memory_equal(buf_str(&back), bytes, len);
}

/* RFC 4648 section 10, and bytes that are not text. */
static void base64_goes_both_ways(void **unused)
{
    (void)unused;
    assert_base64("", 0, "");
    assert_base64("f", 1, "Zg==");
    assert_base64("fo", 2, "Zm8=");
    assert_base64("foo", 3, "Zm9v");
    assert_base64("foobar", 6, "Zm9vYmFy");
    assert_base64("\xff\xfe\x00\x3e", 4, "//4APg==");
}

static void what_is_no_base64_is_refused(void **unused)
{
    (void)unused;
    static const char *const rows[] = {
        "Z", "Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zg==Zg==", "Zm9v\n", "Zm-v", "Z g="};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_(buf_done)
        struct buf out = BUF_INIT;
        if (etcd_base64_parse(rows[i], &out, NULL) != E_JSON)
            fail_msg("'%s' was taken", rows[i]);
    }
}

static void assert_text(json_t *doc, const char *text)
{
    _cleanup_free_ char *made = json_text(doc);
    assert_string_equal(made, text);
    json_decref(doc);
}

static void requests_are_as_the_gateway_takes_them(void **unused)
{
    (void)unused;
    assert_text(etcd_put("a", "f", 1, 0),
                "{\"request_put\":{\"key\":\"YQ==\",\"value\":\"Zg==\"}}");
    assert_text(etcd_put("a", "", 0, UINT64_MAX / 2),
                "{\"request_put\":{\"key\":\"YQ==\",\"value\":\"\",\"lease\":"
                "\"9223372036854775807\"}}");
    assert_text(
        etcd_txn(json_pack("[o, o]", etcd_if_created("a", 7), etcd_if_changed("b", 0)),
                 json_pack("[o]", etcd_delete("a")), json_pack("[o]", etcd_get("b"))),
        "{\"compare\":[{\"key\":\"YQ==\",\"target\":\"CREATE\",\"result\":\"EQUAL\","
        "\"create_revision\":\"7\"},{\"key\":\"Yg==\",\"target\":\"MOD\",\"result\":"
        "\"EQUAL\",\"mod_revision\":\"0\"}],\"success\":[{\"request_delete_range\":{\"key\":"
        "\"YQ==\"}}],\"failure\":[{\"request_range\":{\"key\":\"Yg==\"}}]}");
    assert_text(etcd_range("a", "b", 3, 9), "{\"key\":\"YQ==\",\"range_end\":\"Yg==\",\"revision\":"
                                            "\"3\",\"limit\":\"9\"}");
}

/* No level has more than etcd's 128 operations, and none is lost. */
static void many_operations_are_nested(void **unused)
{
    (void)unused;
    for (size_t count = 95; count < 1000; count += 61) {
        json_t *operations = json_array();
        size_t found = 0;
        size_t i;
        json_t *outer;
        for (size_t n = 0; n < count; n++)
            json_array_append_new(operations, etcd_delete("a"));
        _cleanup_json_ json_t *txn = etcd_txn(json_array(), operations, json_array());
        json_array_foreach(json_object_get(txn, "success"), i, outer)
        {
            json_t *inner = json_object_get(json_object_get(outer, "request_txn"), "success");
            assert_in_range(json_array_size(inner), 0, 64);
            found += inner != NULL ? json_array_size(inner) : 1;
        }
        assert_in_range(i, 1, 100);
        assert_int_equal(found, count);
    }
}

static void answers_are_read(void **unused)
{
    (void)unused;
    _cleanup_json_ json_t *doc = json_loads(
        "{\"header\":{\"revision\":\"12\"},\"responses\":[{\"response_range\":{\"header\":{"
        "\"revision\":\"12\"},\"kvs\":[{\"key\":\"YQ==\",\"create_revision\":\"2\","
        "\"mod_revision\":\"11\",\"version\":\"1\",\"value\":\"Zm9v\"}],\"count\":\"1\"}},"
        "{\"response_range\":{\"header\":{\"revision\":\"12\"}}}]}",
        0, NULL);
    bool succeeded;
    uint64_t revision;
    assert_int_equal(etcd_txn_parse(doc, &succeeded, &revision, NULL), 0);
    assert_false(succeeded); /* false is left out */
    assert_int_equal(revision, 12);
    _cleanup_(etcd_kvs_done)
    struct etcd_kvs kvs = {0};
    assert_int_equal(etcd_txn_kvs_parse(doc, 0, &kvs, NULL), 0);
    assert_int_equal(kvs.count, 1);
    assert_string_equal(kvs.kvs[0].key, "a");
    assert_string_equal(buf_str(&kvs.kvs[0].value), "foo");
    assert_int_equal(kvs.kvs[0].create_revision, 2);
    assert_int_equal(kvs.kvs[0].mod_revision, 11);
    etcd_kvs_done(&kvs);
    assert_int_equal(etcd_txn_kvs_parse(doc, 1, &kvs, NULL), 0);
    assert_int_equal(kvs.count, 0);
    assert_int_equal(etcd_txn_kvs_parse(doc, 2, &kvs, NULL), E_JSON);
}

static void malformed_answers_are_refused(void **unused)
{
    (void)unused;
    static const char *const rows[] = {
        "{\"kvs\":{}}",
        "{\"kvs\":[{\"value\":\"Zg==\"}]}",
        "{\"kvs\":[{\"key\":\"YQ==\",\"mod_revision\":\"-1\"}]}",
        "{\"kvs\":[{\"key\":\"YQ==\",\"mod_revision\":5}]}",
        "{\"kvs\":[{\"key\":\"YQ==\"},{\"key\":\"?\"}]}",
        "{\"header\":{\"revision\":\"99999999999999999999999\"}}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_json_ json_t *doc = json_loads(rows[i], 0, NULL);
        struct etcd_kvs kvs;
        assert_non_null(doc);
        if (etcd_kvs_parse(doc, &kvs, NULL) != E_JSON)
            fail_msg("%s was taken", rows[i]);
    }
}

/* What is not surely undone is in doubt. */
static void refusals_and_doubts(void **unused)
{
    (void)unused;
    static const struct {
        int status;
        const char *body;
        int code;
    } rows[] = {
        {200, "", 0},
        {400, "{\"message\":\"etcdserver: request is too large\",\"code\":3}", E_TOO_LARGE},
        {400, "{\"message\":\"etcdserver: too many operations in txn request\",\"code\":3}",
         E_TOO_LARGE},
        {400, "{\"message\":\"etcdserver: user name is empty\",\"code\":3}", E_UNAUTHORIZED},
        {401, "{\"message\":\"etcdserver: invalid auth token\",\"code\":16}", E_UNAUTHORIZED},
        {404, "{\"message\":\"etcdserver: requested lease not found\",\"code\":5}", E_NOT_FOUND},
        {429, "{\"message\":\"etcdserver: mvcc: database space exceeded\",\"code\":8}", E_NO_SPACE},
        {429, "{\"message\":\"etcdserver: too many requests\",\"code\":8}", E_OVERLOAD},
        {400,
         "{\"message\":\"etcdserver: mvcc: required revision has been compacted\","
         "\"code\":11}",
         E_RANGE},
        {503, "{\"message\":\"etcdserver: request timed out\",\"code\":14}", E_IN_DOUBT},
        {503, "{\"message\":\"etcdserver: leader changed\",\"code\":14}", E_IN_DOUBT},
        {408, "{\"message\":\"context canceled\",\"code\":1}", E_IN_DOUBT},
        {500, "{\"message\":\"what\",\"code\":2}", E_IN_DOUBT},
        {404, "404 page not found\n", E_IN_DOUBT},
        {502, "", E_IN_DOUBT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(
            etcd_answer_check(rows[i].status, rows[i].body, strlen(rows[i].body), NULL),
            rows[i].code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64_goes_both_ways),
        cmocka_unit_test(what_is_no_base64_is_refused),
        cmocka_unit_test(requests_are_as_the_gateway_takes_them),
        cmocka_unit_test(many_operations_are_nested),
        cmocka_unit_test(answers_are_read),
        cmocka_unit_test(malformed_answers_are_refused),
        cmocka_unit_test(refusals_and_doubts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
