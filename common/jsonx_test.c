#include "common/jsonx.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static json_t *parsed(const char *text)
{
    json_t *value = NULL;
    assert_int_equal(json_parse(text, strlen(text), &value, NULL), 0);
    return value;
}

static void fill(char *text, size_t len, const char *piece)
{
    text[0] = '[';
    for (size_t i = 1, n = strlen(piece); i < len; i++)
        text[i] = piece[(i - 1) % n];
}

static size_t memory(const char *text)
{
    size_t bytes;
    assert_int_equal(json_memory(text, strlen(text), &bytes, NULL), 0);
    return bytes;
}

/* What takes many times its length is refused before it is parsed; names and strings that hold
 * brackets are not. */
static void memory_is_bounded(void **state)
{
    (void)state;
    enum { LEN = 4 << 20 };
    static const char *const refused[] = {"{},", "[],", "[", "{\"a\":{},\"b\":[]},", "1,"};
    static const char *const let_in[] = {"\"shard-00\",", "\"{{{{{[[[[[,,,,,\\\"\","};
    char *text = malloc(LEN);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        json_t *value = NULL;
        fill(text, LEN, refused[i]);
        assert_int_equal(json_parse(text, LEN, &value, NULL), E_TOO_LARGE);
        assert_null(value);
    }
    for (size_t i = 0; i < sizeof let_in / sizeof let_in[0]; i++) {
        size_t n = strlen(let_in[i]);
        size_t len = 1 + (LEN / n - 1) * n;
        json_t *value = NULL;
        fill(text, len, let_in[i]);
        text[len - 1] = ']';
        assert_int_equal(json_parse(text, len, &value, NULL), 0);
        assert_int_equal(json_array_size(value), LEN / n - 1);
        json_decref(value);
    }
    free(text);
    assert_int_equal(memory("{}"), memory("[{}]") - memory("[]"));
    assert_int_equal(memory("\"\\\"{\""), 5);
    assert_int_equal(memory("\"\\"), 2);
}

static void texts_that_are_not_json(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "{\"a\":1}x",
        "{'a':1}",
        "{\"a\":1,}",
        "nul",
        "[1 2]",
        "\"\xff\"",
        "{\"a\":1e999}",
        "{\"a\":99999999999999999999}",
        "{\"a\\u0000\":1}",
        "7",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *value = NULL;
        struct error err = ERROR_INIT;
        assert_int_equal(json_parse(bad[i], strlen(bad[i]), &value, &err), E_JSON);
        assert_non_null(strstr(err.message, "line 1, column "));
        assert_null(value);
    }
}

static void nothing_is_called_nothing(void **state)
{
    (void)state;
    json_t *value;
    struct error err = ERROR_INIT;
    assert_int_equal(json_parse("", 0, &value, &err), E_JSON);
    assert_non_null(strstr(err.message, "there is none"));
}

static void the_place_is_named(void **state)
{
    (void)state;
    json_t *value;
    struct error err = ERROR_INIT;
    static const char text[] = "{\n  \"a\": 1,\n  \"b\": x\n}";
    assert_int_equal(json_parse(text, sizeof text - 1, &value, &err), E_JSON);
    assert_string_equal(err.message, "line 3, column 8: invalid token near 'x'");
}

static void secrets_are_not_quoted(void **state)
{
    (void)state;
    static const char *const bad[] = {"{\"a\" \"secret\"}", "{\"a\": \"secret", "[secret]",
                                      "{\"secret\": 1, \"secret\": 2}", "[1] \"secret\""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *value = NULL;
        struct error err = ERROR_INIT;
        assert_int_equal(json_parse_secret(bad[i], strlen(bad[i]), &value, &err), E_JSON);
        assert_null(strstr(err.message, "secret"));
        assert_non_null(strstr(err.message, "line 1, column "));
        assert_int_equal(json_parse(bad[i], strlen(bad[i]), &value, &err), E_JSON);
        assert_non_null(strstr(err.message, "secret"));
    }
}

static void duplicate_keys_are_refused(void **state)
{
    (void)state;
    json_t *value;
    struct error err = ERROR_INIT;
    static const char text[] = "{\"a\":1,\"a\":2}";
    assert_int_equal(json_parse(text, sizeof text - 1, &value, &err), E_JSON);
    assert_non_null(strstr(err.message, "duplicate"));
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    json_t *value;
    char text[8000];
    memset(text, '[', sizeof text);
    assert_int_equal(json_parse(text, sizeof text, &value, NULL), E_JSON);
}

static void getters_give_what_is_there(void **state)
{
    (void)state;
    _cleanup_json_ json_t *obj =
        parsed("{\"s\":\"x\",\"u\":9223372036854775807,\"i\":-5,\"b\":true,"
               "\"size\":\"10MiB\",\"size2\":7,\"d\":\"5s\",\"d2\":250,"
               "\"o\":{\"k\":1},\"a\":[1,2]}");
    const char *s = NULL;
    uint64_t u = 0;
    int64_t i = 0;
    bool b = false;
    json_t *o = NULL;
    json_t *a = NULL;
    uint64_t sizes[4] = {0};
    assert_int_equal(json_get_str(obj, "", "s", &s, NULL), 0);
    assert_string_equal(s, "x");
    assert_int_equal(json_get_u64(obj, "", "u", &u, NULL), 0);
    assert_int_equal(u, INT64_MAX);
    assert_int_equal(json_get_i64(obj, "", "i", &i, NULL), 0);
    assert_int_equal(i, -5);
    assert_int_equal(json_get_bool(obj, "", "b", &b, NULL), 0);
    assert_true(b);
    assert_int_equal(json_get_size(obj, "", "size", &sizes[0], NULL), 0);
    assert_int_equal(json_get_size(obj, "", "size2", &sizes[1], NULL), 0);
    assert_int_equal(json_get_duration_ms(obj, "", "d", &sizes[2], NULL), 0);
    assert_int_equal(json_get_duration_ms(obj, "", "d2", &sizes[3], NULL), 0);
    assert_true(sizes[0] == 10 << 20 && sizes[1] == 7 && sizes[2] == 5000 && sizes[3] == 250);
    assert_int_equal(json_get_object(obj, "", "o", &o, NULL), 0);
    assert_int_equal(json_get_array(obj, "", "a", &a, NULL), 0);
    assert_int_equal(json_array_size(a), 2);
    assert_int_equal(json_need_str(obj, "", "s", &s, NULL), 0);
    assert_int_equal(json_need_u64(o, "o", "k", &u, NULL), 0);
    assert_int_equal(u, 1);
}

static void missing_and_null_leave_the_default(void **state)
{
    (void)state;
    _cleanup_json_ json_t *obj = parsed("{\"null\":null}");
    static const char *const names[] = {"null", "missing"};
    for (int k = 0; k < 2; k++) {
        const char *s = "before";
        uint64_t u = 7;
        int64_t i = -7;
        bool b = true;
        json_t *o = obj;
        assert_int_equal(json_get_str(obj, "", names[k], &s, NULL), 0);
        assert_int_equal(json_get_u64(obj, "", names[k], &u, NULL), 0);
        assert_int_equal(json_get_i64(obj, "", names[k], &i, NULL), 0);
        assert_int_equal(json_get_bool(obj, "", names[k], &b, NULL), 0);
        assert_int_equal(json_get_size(obj, "", names[k], &u, NULL), 0);
        assert_int_equal(json_get_duration_ms(obj, "", names[k], &u, NULL), 0);
        assert_int_equal(json_get_object(obj, "", names[k], &o, NULL), 0);
        assert_int_equal(json_get_array(obj, "", names[k], &o, NULL), 0);
        assert_string_equal(s, "before");
        assert_true(u == 7 && i == -7 && b && o == obj);

        struct error err;
        char want[64];
        snprintf(want, sizeof want, "field 'spec.%s' is missing", names[k]);
        assert_int_equal(json_need_str(obj, "spec", names[k], &s, &err), E_JSON);
        assert_string_equal(err.message, want);
        assert_int_equal(json_need_u64(obj, "spec", names[k], &u, &err), E_JSON);
        assert_string_equal(err.message, want);
    }
}

typedef int get_fn(json_t *obj, struct error *err);

static int get_str(json_t *obj, struct error *err)
{
    const char *out;
    return json_get_str(obj, "algorithm", "kind", &out, err);
}

static int need_str(json_t *obj, struct error *err)
{
    const char *out;
    return json_need_str(obj, "", "kind", &out, err);
}

static int get_u64(json_t *obj, struct error *err)
{
    uint64_t out;
    return json_get_u64(obj, "a.b", "kind", &out, err);
}

static int get_i64(json_t *obj, struct error *err)
{
    int64_t out;
    return json_get_i64(obj, "", "kind", &out, err);
}

static int get_bool(json_t *obj, struct error *err)
{
    bool out;
    return json_get_bool(obj, "", "kind", &out, err);
}

static int get_size(json_t *obj, struct error *err)
{
    uint64_t out;
    return json_get_size(obj, "p", "kind", &out, err);
}

static int get_duration(json_t *obj, struct error *err)
{
    uint64_t out;
    return json_get_duration_ms(obj, "p", "kind", &out, err);
}

static int get_object(json_t *obj, struct error *err)
{
    json_t *out;
    return json_get_object(obj, "", "kind", &out, err);
}

static int get_array(json_t *obj, struct error *err)
{
    json_t *out;
    return json_get_array(obj, "", "kind", &out, err);
}

static void wrong_types_are_named(void **state)
{
    (void)state;
    static const struct {
        get_fn *get;
        const char *value;
        const char *message;
    } rows[] = {
        {get_str, "1", "field 'algorithm.kind' must be a string"},
        {need_str, "{}", "field 'kind' must be a string"},
        {get_u64, "-1", "field 'a.b.kind' must be an integer that is not negative"},
        {get_u64, "1.0", "field 'a.b.kind' must be an integer that is not negative"},
        {get_u64, "\"1\"", "field 'a.b.kind' must be an integer that is not negative"},
        {get_i64, "1.5", "field 'kind' must be an integer"},
        {get_bool, "1", "field 'kind' must be true or false"},
        {get_bool, "\"true\"", "field 'kind' must be true or false"},
        {get_size, "\"ten\"", "field 'p.kind': 'ten' is not a size such as 512, 64KiB or 1.5GiB"},
        {get_size, "-1", "field 'p.kind' must be a size: bytes, or a text such as \"10MiB\""},
        {get_duration, "\"5 s\"",
         "field 'p.kind': '5 s' is not a duration such as 250ms, 10s or 2h"},
        {get_duration, "1.5",
         "field 'p.kind' must be a duration: milliseconds, or a text such as \"5s\""},
        {get_object, "[]", "field 'kind' must be an object"},
        {get_array, "{}", "field 'kind' must be an array"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[64];
        struct error err = ERROR_INIT;
        snprintf(text, sizeof text, "{\"kind\":%s}", rows[i].value);
        _cleanup_json_ json_t *obj = parsed(text);
        assert_int_equal(rows[i].get(obj, &err), E_JSON);
        assert_int_equal(err.code, E_JSON);
        assert_string_equal(err.message, rows[i].message);
    }
}

static void strange_objects_have_no_fields(void **state)
{
    (void)state;
    _cleanup_json_ json_t *array = parsed("[1]");
    const char *s = "before";
    assert_int_equal(json_get_str(array, "", "kind", &s, NULL), 0);
    assert_int_equal(json_get_str(NULL, "", "kind", &s, NULL), 0);
    assert_string_equal(s, "before");
    assert_int_equal(json_need_str(array, "", "kind", &s, NULL), E_JSON);
}

static void unknown_fields_are_named(void **state)
{
    (void)state;
    static const char *const allowed[] = {"a", "b", NULL};
    _cleanup_json_ json_t *good = parsed("{\"b\":1,\"a\":2}");
    _cleanup_json_ json_t *bad = parsed("{\"b\":1,\"sede\":2}");
    struct error err = ERROR_INIT;
    assert_int_equal(json_only_fields(good, "spec", allowed, &err), 0);
    assert_int_equal(json_only_fields(bad, "spec", allowed, &err), E_JSON);
    assert_string_equal(err.message, "field 'spec.sede' is not known here");
}

static void bodies_of_actions(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        const char *message;
    } bad[] = {
        {"{", E_JSON, "line 1"},
        {"[]", E_JSON, "must be an object"},
        {"{\"action\":\"start\"}", E_JSON, "'name'"},
        {"{\"name\":\"x\"}", E_JSON, "'action'"},
        {"{\"action\":\"start\",\"name\":\"x\",\"value\":1}", E_JSON, "'value'"},
        {"{\"action\":\"stop\",\"name\":\"x\"}", E_INVALID, "'stop' is not start"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = ERROR_INIT;
        _cleanup_json_ json_t *doc = NULL;
        const char *name = NULL;
        assert_int_equal(
            json_parse_action(bad[i].text, strlen(bad[i].text), "start", &doc, &name, NULL, &err),
            bad[i].code);
        assert_non_null(strstr(err.message, bad[i].message));
    }
    static const char good[] = "{\"name\":\"x\",\"action\":\"start\"}";
    _cleanup_json_ json_t *doc = NULL;
    const char *name = NULL;
    assert_int_equal(json_parse_action(good, strlen(good), "start", &doc, &name, NULL, NULL), 0);
    assert_string_equal(name, "x");
}

static void actions_with_a_value(void **state)
{
    (void)state;
    static const char with[] = "{\"action\":\"start\",\"name\":\"x\",\"value\":{\"a\":1}}";
    static const char without[] = "{\"action\":\"start\",\"name\":\"x\"}";
    static const char wrong[] = "{\"action\":\"start\",\"name\":\"x\",\"value\":1}";
    _cleanup_json_ json_t *first = NULL;
    _cleanup_json_ json_t *second = NULL;
    _cleanup_json_ json_t *third = NULL;
    const char *name = NULL;
    json_t *value = NULL;
    assert_int_equal(
        json_parse_action(without, strlen(without), "start", &first, &name, &value, NULL), 0);
    assert_null(value);
    assert_int_equal(json_parse_action(with, strlen(with), "start", &second, &name, &value, NULL),
                     0);
    assert_int_equal(json_object_size(value), 1);
    assert_int_equal(json_parse_action(wrong, strlen(wrong), "start", &third, &name, &value, NULL),
                     E_JSON);
}

static void texts_keep_the_order(void **state)
{
    (void)state;
    static const char text[] = "{\"z\":[1,true,null],\"a\":{\"k\":\"\\\"\"}}";
    _cleanup_json_ json_t *obj = parsed(text);
    _cleanup_free_ char *again = json_text(obj);
    assert_string_equal(again, text);
}

static void any_bytes_become_a_string(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", ""},
        {"plain \"quoted\"", "plain \"quoted\""},
        {"z\xc3\xbcrich", "z\xc3\xbcrich"},
        {"z\xfcrich", "z\\xfcrich"},
        {"cut \xc3", "cut \\xc3"},
        {"\xff\xc3\xbc\xfe", "\\xff\xc3\xbc\\xfe"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_json_ json_t *value = json_string_escaped(rows[i][0]);
        assert_string_equal(json_string_value(value), rows[i][1]);
    }
}

static void test_queries_are_masked(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"http://h/x?sig=1&y=2", "http://h/x?…"},
        {"http://h/x?", "http://h/x?…"},
        {"get 'https://h/x?sig=1': 403, then http://h/y?z next",
         "get 'https://h/x?…': 403, then http://h/y?… next"},
        {"https://h/it's.tar?sig=1", "https://h/it's.tar?…"},
        {"https://h/x?a='x&sig=1", "https://h/x?…"},
        {"s3://b/p", "s3://b/p"},
        {"what? http://h/x", "what? http://h/x"},
        {"a?b", "a?b"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *doc = json_pack("{s:[s], s:{s:s}, s:i}", "list", rows[i][0], "deep", "url",
                                rows[i][0], "n", 1);
        json_mask_queries(doc);
        assert_string_equal(json_string_value(json_array_get(json_object_get(doc, "list"), 0)),
                            rows[i][1]);
        assert_string_equal(json_string_value(json_object_get(json_object_get(doc, "deep"), "url")),
                            rows[i][1]);
        json_decref(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(texts_that_are_not_json),
        cmocka_unit_test(nothing_is_called_nothing),
        cmocka_unit_test(the_place_is_named),
        cmocka_unit_test(secrets_are_not_quoted),
        cmocka_unit_test(duplicate_keys_are_refused),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(getters_give_what_is_there),
        cmocka_unit_test(missing_and_null_leave_the_default),
        cmocka_unit_test(wrong_types_are_named),
        cmocka_unit_test(strange_objects_have_no_fields),
        cmocka_unit_test(unknown_fields_are_named),
        cmocka_unit_test(bodies_of_actions),
        cmocka_unit_test(actions_with_a_value),
        cmocka_unit_test(texts_keep_the_order),
        cmocka_unit_test(any_bytes_become_a_string),
        cmocka_unit_test(test_queries_are_masked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
