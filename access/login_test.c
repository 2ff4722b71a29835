#include "access/login.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "access/nonces.h"
#include "access/seal.h"
#include "cluster/base/document.h"
#include "common/jsonx.h"
#include "common/auth/login_proof.h"

#define LINE "0123456789abcdef0123456789abcdef"
#define USER "00112233445566778899aabbccddeeff"
#define OTHER "8899aabbccddeeff0011223344556677"
#define GONE "ffeeddccbbaa99887766554433221100"
#define KEY "DFC4JAAAAAAAAAAAAAA1"
#define OLD_KEY "DFC4JAAAAAAAAAAAAAA2"
#define GONE_KEY "DFC4JAAAAAAAAAAAAAA3"
#define OTHER_KEY "DFC4JAAAAAAAAAAAAAA4"
#define SECRET "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
#define NONCE "0123456789abcdef"

enum { NOW = 1000000000 };

struct world {
    struct proof_keys *keys;
    struct access doc;
    struct login *login;
};

static json_t *key_json(const struct cluster_keys *keys, const char *user, const char *access,
                        int expires_ms)
{
    char sealed[SEALED_MAX];
    assert_int_equal(seal_secret(keys, user, access, SECRET, sealed, NULL), 0);
    return json_pack("{s:s, s:s, s:i, s:i}", "access", access, "secret", sealed, "created_ms", 1,
                     "expires_ms", expires_ms);
}

static json_t *user_json(const char *id, const char *name, bool enabled, json_t *keys)
{
    return json_pack("{s:s, s:s, s:s, s:b, s:o}", "id", id, "name", name, "kind", "service",
                     "enabled", enabled, "keys", keys);
}

static int set_up(void **state)
{
    static struct world w;
    struct cluster_keys keys;
    assert_int_equal(cluster_keys_parse(LINE, strlen(LINE), &keys, NULL), 0);
    json_t *two =
        json_pack("[o, o]", key_json(&keys, USER, KEY, 0), key_json(&keys, USER, OLD_KEY, NOW));
    json_t *one = json_pack("[o]", key_json(&keys, GONE, GONE_KEY, 0));
    json_t *other = json_pack("[o]", key_json(&keys, OTHER, OTHER_KEY, 0));
    _cleanup_json_ json_t *doc = json_pack(
        "{s:i, s:[o, o, o], s:[]}", "version", 1, "users", user_json(USER, "anna", true, two),
        user_json(GONE, "bert", false, one), user_json(OTHER, "carl", true, other), "roles");
    w.doc = (struct access){0};
    assert_int_equal(access_from_json(doc, &w.doc, NULL), 0);
    w.keys = proof_keys_new(&keys);
    w.login = login_new();
    *state = &w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    login_free(w->login);
    proof_keys_unref(w->keys);
    document_unref(w->doc.memory);
    return 0;
}

static json_t *claim(const char *access, const char *secret, int64_t time_ms, const char *nonce)
{
    char proof[AUTH_HEX_MAX];
    login_proof(secret, access, time_ms, nonce, proof);
    return json_pack("{s:s, s:I, s:s, s:s}", "access", access, "time_ms", (json_int_t)time_ms,
                     "nonce", nonce, "proof", proof);
}

static int enter(struct world *w, json_t *body, struct error *err)
{
    const struct key_owner *o = NULL;
    int code = login_by_key(w->login, w->keys, &w->doc, body, NOW, &o, err);
    const char *access = json_string_value(json_object_get(body, "access"));
    if (code == 0)
        assert_string_equal(o->access, access);
    if (code == 0)
        assert_string_equal(o->user->name, strcmp(access, OTHER_KEY) == 0 ? "carl" : "anna");
    json_decref(body);
    return code;
}

static void test_a_login_is_taken_once(void **state)
{
    struct world *w = *state;
    struct error err = ERROR_INIT;
    assert_int_equal(enter(w, claim(KEY, SECRET, NOW, NONCE), &err), 0);
    assert_int_equal(enter(w, claim(KEY, SECRET, NOW, NONCE), &err), E_UNAUTHORIZED);
    assert_non_null(strstr(err.message, "before"));
    assert_int_equal(enter(w, claim(KEY, SECRET, NOW, NONCE "0"), &err), 0);
}

static void test_a_login_is_good_for_five_minutes(void **state)
{
    struct world *w = *state;
    int64_t edge = LOGIN_WINDOW_MS;
    assert_int_equal(enter(w, claim(KEY, SECRET, NOW - edge, NONCE), NULL), 0);
    assert_int_equal(enter(w, claim(KEY, SECRET, NOW + edge, NONCE "0"), NULL), 0);
    assert_int_equal(enter(w, claim(KEY, SECRET, NOW - edge - 1, NONCE "1"), NULL), E_UNAUTHORIZED);
    assert_int_equal(enter(w, claim(KEY, SECRET, NOW + edge + 1, NONCE "2"), NULL), E_UNAUTHORIZED);
    assert_int_equal(enter(w, claim(KEY, SECRET, INT64_MAX, NONCE "3"), NULL), E_UNAUTHORIZED);
}

/* The limit is of one access key: nobody can stop the logins of others. */
static void test_too_many_logins_stop_their_own_key_alone(void **state)
{
    struct world *w = *state;
    struct error err = ERROR_INIT;
    char nonce[LOGIN_NONCE_MAX + 1];
    for (int i = 0; i < NONCES_PER_KEY; i++) {
        snprintf(nonce, sizeof nonce, "%016x", i);
        assert_int_equal(enter(w, claim(KEY, SECRET, NOW, nonce), NULL), 0);
    }
    assert_int_equal(enter(w, claim(KEY, SECRET, NOW, NONCE), &err), E_RATE_LIMITED);
    assert_non_null(strstr(err.message, KEY));
    assert_int_equal(enter(w, claim(OTHER_KEY, SECRET, NOW, NONCE), NULL), 0);
}

/* What is wrong is not told, and a refused login takes no nonce. */
static void test_a_login_without_a_secret_in_force_is_refused(void **state)
{
    struct world *w = *state;
    struct error wrong = ERROR_INIT, other = ERROR_INIT;
    assert_int_equal(enter(w, claim(KEY, "x" SECRET, NOW, NONCE), &wrong), E_UNAUTHORIZED);
    static const char *const keys[] = {OLD_KEY, GONE_KEY, "DFC4JAAAAAAAAAAAAAA9", ""};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        assert_int_equal(enter(w, claim(keys[i], SECRET, NOW, NONCE), &other), E_UNAUTHORIZED);
        assert_string_equal(other.message, wrong.message);
    }
    assert_int_equal(enter(w, claim(KEY, SECRET, NOW, NONCE), NULL), 0);
}

static void test_every_field_is_proven(void **state)
{
    struct world *w = *state;
    json_t *body = claim(KEY, SECRET, NOW, NONCE);
    json_object_set_new(body, "time_ms", json_integer(NOW + 1));
    assert_int_equal(enter(w, body, NULL), E_UNAUTHORIZED);
    body = claim(KEY, SECRET, NOW, NONCE);
    json_object_set_new(body, "nonce", json_string(NONCE "0"));
    assert_int_equal(enter(w, body, NULL), E_UNAUTHORIZED);
    body = claim(KEY, SECRET, NOW, NONCE);
    json_object_set_new(body, "proof", json_string(""));
    assert_int_equal(enter(w, body, NULL), E_UNAUTHORIZED);
}

static void test_a_body_that_is_no_login(void **state)
{
    struct world *w = *state;
    assert_int_equal(enter(w, json_array(), NULL), E_JSON);
    assert_int_equal(enter(w, json_object(), NULL), E_JSON);
    assert_int_equal(enter(w, claim(KEY, SECRET, NOW, "short"), NULL), E_JSON);
    assert_int_equal(enter(w, claim(KEY, SECRET, NOW, "0123456789abcdeg"), NULL), E_JSON);
    json_t *body = claim(KEY, SECRET, NOW, NONCE);
    json_object_set_new(body, "more", json_true());
    assert_int_equal(enter(w, body, NULL), E_JSON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_login_is_taken_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_login_is_good_for_five_minutes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_login_without_a_secret_in_force_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_every_field_is_proven, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_too_many_logins_stop_their_own_key_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_body_that_is_no_login, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
