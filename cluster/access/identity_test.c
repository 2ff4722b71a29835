#include "cluster/access/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/base/document.h"
#include "common/jsonx.h"

#define ID1 "00112233445566778899aabbccddeeff"
#define ID2 "ffeeddccbbaa99887766554433221100"
#define KEY1 "DFC4JAAAAAAAAAAAAAA1"
#define KEY2 "DFC4JAAAAAAAAAAAAAA2"

static const char whole[] =
    "{\"version\": 4, \"users\": ["
    "{\"id\": \"" ID2 "\", \"name\": \"anna\", \"kind\": \"person\", \"enabled\": false,"
    " \"grants\": [{\"rights\": [\"list\"], \"bucket\": \"b\"}],"
    " \"password\": \"scrypt:15:8:1:aa:bb\", \"tokens_after_ms\": 17},"
    "{\"id\": \"" ID1 "\", \"name\": \"trainer\", \"kind\": \"service\", \"enabled\": true,"
    " \"roles\": [\"lab\", \"reader\"],"
    " \"keys\": [{\"access\": \"" KEY1 "\", \"secret\": \"s1\", \"created_ms\": 1},"
    "            {\"access\": \"" KEY2 "\", \"secret\": \"s2\", \"expires_ms\": 9}],"
    " \"rate\": {\"requests\": 10, \"bytes\": 0}}],"
    "\"roles\": [{\"name\": \"lab\", \"grants\": [{\"rights\": [\"see\"]}],"
    " \"rate\": {\"requests\": 5, \"bytes\": 7}}]}";

static int parse_json(json_t *doc, struct access *out, struct error *err)
{
    *out = (struct access){0};
    int r = access_from_json(doc, out, err);
    return r != 0 ? r : access_check(out, err);
}

static struct access parse(const char *text)
{
    _cleanup_json_ json_t *doc = json_loads(text, 0, NULL);
    struct access a;
    struct error err = ERROR_INIT;
    assert_non_null(doc);
    if (parse_json(doc, &a, &err) != 0)
        fail_msg("%s", err.message);
    return a;
}

static void test_json_there_and_back(void **state)
{
    (void)state;
    struct access a = parse(whole);
    _cleanup_json_ json_t *want = json_loads(whole, 0, NULL);
    _cleanup_json_ json_t *got = access_to_json(&a, ACCESS_WHOLE);
    assert_true(json_equal(want, got));
    document_unref(a.memory);
}

static void test_a_public_view_has_no_secrets(void **state)
{
    (void)state;
    struct access a = parse(whole);
    _cleanup_json_ json_t *doc = access_to_json(&a, ACCESS_PUBLIC);
    _cleanup_free_ char *text = json_text(doc);
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "s1"));
    assert_null(strstr(text, "scrypt"));
    assert_non_null(strstr(text, KEY1));
    document_unref(a.memory);
}

static void test_lookups(void **state)
{
    (void)state;
    struct access a = parse(whole);
    assert_string_equal(access_user(&a, "anna")->id, ID2);
    assert_null(access_user(&a, "Anna"));
    assert_string_equal(access_user_by_id(&a, ID1)->name, "trainer");
    assert_string_equal(access_user_by_id(&a, ID2)->name, "anna");
    assert_null(access_user_by_id(&a, "0"));
    assert_string_equal(access_key_owner(&a, KEY2)->user->name, "trainer");
    assert_string_equal(access_key_owner(&a, KEY2)->key->secret, "s2");
    assert_null(access_key_owner(&a, "DFC"));
    assert_non_null(access_role_grants(&a, "lab"));
    assert_non_null(access_role_grants(&a, "admin"));
    assert_null(access_role_grants(&a, "no"));
    struct access_rate rate = access_rate_of(&a, access_user(&a, "trainer"));
    assert_int_equal(rate.requests, 5);
    assert_int_equal(rate.bytes, 7);
    document_unref(a.memory);
    struct access none = {0};
    assert_null(access_user(&none, "anna"));
    assert_null(access_user_by_id(&none, ID1));
    assert_null(access_key_owner(&none, KEY1));
}

static void test_the_next_document(void **state)
{
    (void)state;
    struct access a = parse(whole);
    struct user u = *access_user(&a, "trainer");
    struct access b;
    struct access c;
    struct access d;
    u.name = "zoe";
    u.id = "0123456789abcdef0123456789abcdef";
    u.key_count = 0;
    access_with_user(&a, &u, &b);
    assert_int_equal(b.version, 5);
    assert_int_equal(b.user_count, 3);
    assert_int_equal(a.user_count, 2);
    assert_int_equal(access_check(&b, NULL), 0);
    access_without_user(&b, "anna", &c);
    assert_null(access_user(&c, "anna"));
    assert_null(access_user_by_id(&c, ID2));
    assert_non_null(access_user(&c, "zoe"));
    access_with_role(&c, &(struct role){.name = "aaa"}, &d);
    assert_int_equal(d.role_count, 2);
    assert_non_null(access_role(&d, "aaa"));
    document_unref(a.memory);
    document_unref(b.memory); /* the later ones share nothing with it */
    document_unref(c.memory);
    access_without_role(&d, "lab", &a);
    assert_int_equal(access_check(&a, NULL), E_ROLE_NOT_FOUND);
    assert_string_equal(access_user(&a, "trainer")->keys[0].access, KEY1);
    document_unref(a.memory);
    document_unref(d.memory);
}

/* `text` is put in place of the field of the user "trainer". */
static int with_field(const char *field, const char *text, struct error *err)
{
    struct access a;
    _cleanup_json_ json_t *doc = json_loads(whole, 0, NULL);
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(value);
    json_object_set_new(json_array_get(json_object_get(doc, "users"), 1), field, value);
    int r = parse_json(doc, &a, err);
    document_unref(a.memory);
    return r;
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *field, *text;
        int code;
    } rows[] = {
        {"id", "\"" ID2 "\"", E_INVALID},
        {"id", "\"123\"", E_INVALID},
        {"name", "\"anna\"", E_INVALID},
        {"name", "\"-anna\"", E_NAME},
        {"name", "\"\"", E_NAME},
        {"name", "\"anonymous\"", E_INVALID},
        {"kind", "\"anonymous\"", E_INVALID},
        {"kind", "\"robot\"", E_INVALID},
        {"enabled", "1", E_JSON},
        {"roles", "[\"nobody\"]", E_ROLE_NOT_FOUND},
        {"roles", "[\"reader\", \"reader\"]", E_INVALID},
        {"roles", "[1]", E_JSON},
        {"tokens_after_ms", "-1", E_INVALID},
        {"rate", "{\"requests\": -1}", E_JSON},
        {"keys", "[{\"access\": \"" KEY1 "\"}]", E_JSON},
        {"keys", "[{\"access\": \"short\", \"secret\": \"s\"}]", E_INVALID},
        {"keys",
         "[{\"access\": \"" KEY1 "\", \"secret\": \"s\"}, {\"access\": \"" KEY1
         "\", \"secret\": \"s\"}]",
         E_INVALID},
        {"keys", "[{}, {}, {}]", E_INVALID},
        {"password", "[]", E_JSON},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        if (with_field(rows[i].field, rows[i].text, &err) != rows[i].code)
            fail_msg("%s: %s gives %d: %s", rows[i].field, rows[i].text, err.code, err.message);
    }
}

static void test_anonymous_is_bounded(void **state)
{
    static const struct {
        const char *more;
        int code;
    } rows[] = {
        {"", 0},
        {", \"grants\": [{\"rights\": [\"list\", \"read\", \"write\"], \"bucket\": \"b\"}]", 0},
        {", \"grants\": [{\"rights\": [\"delete\"], \"bucket\": \"b\"}]", E_INVALID},
        {", \"grants\": [{\"rights\": [\"admin\"], \"bucket\": \"b\"}]", E_INVALID},
        {", \"grants\": [{\"rights\": [\"see\"]}]", E_INVALID},
        {", \"roles\": [\"reader\"]", E_INVALID},
        {", \"password\": \"x\"", E_INVALID},
        {", \"keys\": [{\"access\": \"" KEY1 "\", \"secret\": \"s\"}]", E_INVALID},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct arena *a = arena_new(512);
        struct user u;
        char text[256];
        snprintf(text, sizeof text,
                 "{\"id\": \"" ID1 "\", \"name\": \"anonymous\", \"kind\": \"anonymous\"%s}",
                 rows[i].more);
        _cleanup_json_ json_t *doc = json_loads(text, 0, NULL);
        assert_int_equal(user_from_json(doc, "u", a, &u, NULL), rows[i].code);
        arena_free(a);
    }
}

static void test_built_in_roles_cannot_be_changed(void **state)
{
    (void)state;
    const struct builtin_role *r;
    for (size_t i = 0; (r = builtin_role_at(i)) != NULL; i++) {
        struct arena *a = arena_new(512);
        struct role out;
        _cleanup_json_ json_t *doc = json_pack("{s:s}", "name", r->name);
        assert_int_equal(role_from_json(doc, "r", a, &out, NULL), E_INVALID);
        arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_there_and_back),
        cmocka_unit_test(test_a_public_view_has_no_secrets),
        cmocka_unit_test(test_lookups),
        cmocka_unit_test(test_the_next_document),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_anonymous_is_bounded),
        cmocka_unit_test(test_built_in_roles_cannot_be_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
