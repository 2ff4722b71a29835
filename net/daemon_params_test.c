/* What can change while a daemon runs does, within its bounds; all else says so. */
#include "net/daemon_params.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "common/jsonx.h"
#include "common/log.h"
#include "net/daemon_sources.h"

struct values {
    uint64_t size;
    uint64_t wait;
    bool flag;
    char *log_level;
};

static const struct param_row rows[] = {
    {"size", PARAM_size, offsetof(struct values, size), "1MiB", "4KiB", "1GiB", "a size"},
    {"wait", PARAM_duration, offsetof(struct values, wait), "5s", "1s", "1h", "a time"},
    {"flag", PARAM_boolean, offsetof(struct values, flag), "true", "", "", "a switch"},
    {"log_level", PARAM_text, offsetof(struct values, log_level), "info", "", "", "how much"},
    {.name = NULL},
};
static const char *const live[] = {"size", "flag", NULL};

static int act(struct values *v, const char *body, struct error *err)
{
    struct daemon_sources *sources = daemon_sources_new(rows, v, live);
    const struct daemon_params p = {.rows = rows, .values = v, .live = live, .sources = sources};
    *err = ERROR_INIT;
    int code = daemon_params_act(&p, body, strlen(body), err);
    daemon_sources_free(sources);
    return code;
}

static void live_ones_change_within_their_bounds(void **unused)
{
    (void)unused;
    struct values v = {0};
    struct error err;
    assert_int_equal(params_defaults(rows, &v, NULL), 0);
    assert_int_equal(
        act(&v, "{\"action\": \"setparam\", \"name\": \"size\", \"value\": \"64KiB\"}", &err), 0);
    assert_true(v.size == 64 << 10);
    assert_int_equal(
        act(&v, "{\"action\": \"setparam\", \"name\": \"size\", \"value\": 8192}", &err), 0);
    assert_true(v.size == 8192);
    assert_int_equal(
        act(&v, "{\"action\": \"setparam\", \"name\": \"flag\", \"value\": false}", &err), 0);
    assert_false(v.flag);
    static const struct {
        const char *body;
        int code;
        const char *words;
    } refused[] = {
        {"{\"action\": \"setparam\", \"name\": \"size\", \"value\": \"1KiB\"}", E_INVALID,
         "at least 4KiB"},
        {"{\"action\": \"setparam\", \"name\": \"size\", \"value\": \"big\"}", E_INVALID, "big"},
        {"{\"action\": \"setparam\", \"name\": \"wait\", \"value\": \"2s\"}", E_UNSUPPORTED,
         "start it again with --wait"},
        {"{\"action\": \"setparam\", \"name\": \"none\", \"value\": \"2s\"}", E_NOT_FOUND, "none"},
        {"{\"action\": \"setparam\", \"name\": \"size\"}", E_JSON, "value"},
        {"{\"action\": \"setparam\", \"name\": \"size\", \"value\": null}", E_JSON, "value"},
        {"{\"action\": \"other\", \"name\": \"size\", \"value\": 1}", E_INVALID, "setparam"},
        {"[]", E_JSON, ""},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_int_equal(act(&v, refused[i].body, &err), refused[i].code);
        if (strstr(err.message, refused[i].words) == NULL)
            fail_msg("'%s' is not in '%s'", refused[i].words, err.message);
    }
    assert_true(v.size == 8192 && v.wait == 5000);
    params_free(rows, &v);
}

static void the_log_level_is_one_of_them(void **unused)
{
    (void)unused;
    struct values v = {0};
    struct error err;
    assert_int_equal(params_defaults(rows, &v, NULL), 0);
    struct daemon_sources *sources = daemon_sources_new(rows, &v, live);
    const struct daemon_params p = {.rows = rows, .values = &v, .live = live, .sources = sources};
    assert_int_equal(
        act(&v, "{\"action\": \"setparam\", \"name\": \"log_level\", \"value\": \"warn\"}", &err),
        0);
    assert_string_equal(log_level_now(), "warn");
    assert_int_equal(
        act(&v, "{\"action\": \"setparam\", \"name\": \"log_level\", \"value\": \"loud\"}", &err),
        E_INVALID);
    _cleanup_json_ json_t *doc = daemon_params_json(&p);
    json_t *list = json_object_get(doc, "params");
    assert_int_equal(json_array_size(list), 4);
    json_t *size = json_array_get(list, 0);
    assert_string_equal(json_string_value(json_object_get(size, "type")), "size");
    assert_int_equal(json_integer_value(json_object_get(size, "value")), 1 << 20);
    assert_string_equal(json_string_value(json_object_get(size, "max")), "1GiB");
    assert_true(json_is_true(json_object_get(size, "live")));
    assert_true(json_is_false(json_object_get(json_array_get(list, 1), "live")));
    json_t *level = json_array_get(list, 3);
    assert_string_equal(json_string_value(json_object_get(level, "value")), "warn");
    assert_true(json_is_true(json_object_get(level, "live")));
    assert_string_equal(json_string_value(json_object_get(size, "source")), "default");
    log_set_level(LOG_INFO);
    daemon_sources_free(sources);
    params_free(rows, &v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_ones_change_within_their_bounds),
        cmocka_unit_test(the_log_level_is_one_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
