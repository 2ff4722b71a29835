#include "cluster/props/bucket_props.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "common/jsonx.h"

/* What is written is read again as the same, and written again as the same. */
static void assert_round_trip(const struct bucket_props *p)
{
    struct bucket_props again = BUCKET_PROPS_DEFAULT;
    _cleanup_json_ json_t *doc = bucket_props_to_json(p);
    assert_int_equal(bucket_props_from_json(doc, &again, NULL), 0);
    assert_true(bucket_props_equal(p, &again));
    _cleanup_json_ json_t *twice = bucket_props_to_json(&again);
    assert_true(json_equal(doc, twice));
}

static void a_new_bucket_has_the_defaults(void **state)
{
    (void)state;
    _cleanup_json_ json_t *doc = bucket_props_to_json(&bucket_props_default);
    _cleanup_json_ json_t *expected =
        json_pack("{s:i, s:s, s:s, s:s, s:b, s:b}", "copies", 1, "durability", "sync", "checksum",
                  "xxh3", "etag", "fast", "verify_on_read", 0, "write_once", 0);
    assert_true(json_equal(doc, expected));
    assert_int_equal(bucket_props_check(&bucket_props_default, NULL), 0);
}

/* One value of each property, other than that of a new bucket. */
static const struct {
    const char *name, *value;
} others[] = {
    {"copies", "3"},
    {"durability", "\"async\""},
    {"checksum", "\"sha256\""},
    {"etag", "\"md5\""},
    {"verify_on_read", "true"},
    {"write_once", "true"},
    {"write_quorum", "\"majority\""},
    {"read_from", "\"any\""},
    {"ec", "{\"data\": 4, \"parity\": 2, \"min_size\": 65536}"},
    {"quota_bytes", "10737418240"},
    {"quota_objects", "5000000000"},
    {"backend", "\"http://host/base\""},
    {"lru", "false"},
    {"lru_min_age", "5000"},
    {"write_policy", "\"back\""},
    {"validate", "\"interval\""},
    {"validate_interval", "7000"},
    {"stale", "false"},
    {"range_fetch", "\"prefetch\""},
    {"ring", "{\"cap\": 100, \"keep\": 2, \"bytes_max\": 1048576, \"swap\": \"consumed\", "
             "\"policy\": \"drop\"}"},
};

/* Shown as it was given, where its need is met: with a backend and with copies. */
static void each_property_is_kept(void **state)
{
    (void)state;
    size_t count = sizeof others / sizeof *others;
    for (size_t i = 0; i < count; i++) {
        char text[256];
        struct bucket_props p = BUCKET_PROPS_DEFAULT;
        assert_string_equal(bucket_props_names[i], others[i].name);
        snprintf(text, sizeof text, "{\"copies\": 2, \"backend\": \"dfc://b\", \"%s\": %s}",
                 others[i].name, others[i].value);
        _cleanup_json_ json_t *given = json_loads(text, 0, NULL);
        assert_non_null(given);
        _cleanup_json_ json_t *read = json_deep_copy(given); /* p borrows from it */
        assert_int_equal(bucket_props_from_json(read, &p, NULL), 0);
        assert_false(bucket_props_equal(&p, &bucket_props_default));
        assert_round_trip(&p);
        _cleanup_json_ json_t *doc = bucket_props_to_json(&p);
        assert_true(json_equal(json_object_get(doc, others[i].name),
                               json_object_get(given, others[i].name)));
    }
    assert_null(bucket_props_names[count]);
}

static void assert_error(int code, const char *text, const char *message, bool reads)
{
    struct error err = ERROR_INIT;
    struct bucket_props p = BUCKET_PROPS_DEFAULT;
    _cleanup_json_ json_t *doc = json_loads(text, 0, NULL);
    assert_non_null(doc);
    int r = bucket_props_from_json(doc, &p, &err);
    if (reads) {
        assert_int_equal(r, 0);
        r = bucket_props_check(&p, &err);
    }
    assert_int_equal(r, code);
    assert_non_null(strstr(err.message, message));
}

static void wrong_values_are_refused_by_name(void **state)
{
    (void)state;
    assert_error(E_INVALID, "{\"durability\": \"soon\"}",
                 "'props.durability': 'soon' is not sync or async", false);
    assert_error(E_INVALID, "{\"checksum\": \"crc\"}", "'props.checksum'", false);
    assert_error(E_INVALID, "{\"write_policy\": \"x\"}", "none or through or back", false);
    assert_error(E_INVALID, "{\"copies\": 5000000000}", "'props.copies' is out of range", false);
    assert_error(E_JSON, "{\"quota_bytes\": \"much\"}", "'much' is not a size", false);
    assert_error(E_INVALID, "{\"quota_bytes\": \"8EiB\"}", "'quota_bytes' is out of range", true);
    assert_error(E_JSON, "{\"quota_objects\": -1}", "'props.quota_objects'", false);
    assert_error(E_UNSUPPORTED, "{\"backend\": \"http://h/\", \"write_once\": true}",
                 "'write_once': the backend", true);
    assert_error(E_UNSUPPORTED, "{\"backend\": \"http://h/\", \"quota_objects\": 5}",
                 "'quota_objects': a bucket with a backend has no quota", true);
    assert_error(E_INVALID, "{\"copies\": 9}", "'copies' must be at most 8", true);
    assert_error(E_INVALID, "{\"copies\": 0}", "'copies' must be at least 1", true);
    assert_error(E_INVALID, "{\"ring\": \"100\"}", "'props.ring': '100='", false);
    assert_error(E_UNSUPPORTED, "{\"ring\": \"cap=1\", \"ec\": \"2+1\"}", "'ring'", true);
    assert_error(E_INVALID, "{\"lru\": false}", "'lru' is for buckets with a backend", true);
    assert_error(E_INVALID, "{\"range_fetch\": \"never\"}", "'range_fetch' is for buckets", true);
    assert_error(E_INVALID, "{\"backend\": \"http://h/\", \"lru_min_age\": \"4000d\"}",
                 "'lru_min_age' is more than ten years", true);
}

/* The words of a row are the names of its enum, in order. */
static void words_are_in_the_order_of_the_enum(void **state)
{
    (void)state;
    for (int type = CHECKSUM_NONE; type < CHECKSUM_TYPES; type++) {
        struct bucket_props p = BUCKET_PROPS_DEFAULT;
        p.checksum = (enum checksum_type)type;
        _cleanup_json_ json_t *doc = bucket_props_to_json(&p);
        assert_string_equal(json_string_value(json_object_get(doc, "checksum")),
                            checksum_name(p.checksum));
    }
}

static void a_quota_may_have_a_unit(void **state)
{
    (void)state;
    struct bucket_props p = BUCKET_PROPS_DEFAULT;
    _cleanup_json_ json_t *doc = json_pack("{s:s, s:i}", "quota_bytes", "1.5GiB", "copies", 2);
    assert_int_equal(bucket_props_from_json(doc, &p, NULL), 0);
    assert_int_equal(bucket_props_check(&p, NULL), 0);
    assert_int_equal(p.quota_bytes, UINT64_C(3) << 29);
    assert_true(bucket_props_have_quota(&p));
    assert_false(bucket_props_have_quota(&bucket_props_default));
}

static void what_is_set_at_creation_stays(void **state)
{
    (void)state;
    struct bucket_props now = BUCKET_PROPS_DEFAULT;
    now.copies = 3;
    assert_int_equal(bucket_props_check_change(&bucket_props_default, &now, NULL), 0);
    now.write_quorum = WRITE_MAJORITY;
    assert_int_equal(bucket_props_check_change(&bucket_props_default, &now, NULL), E_INVALID);
}

static void the_table_has_a_row_for_each(void **state)
{
    (void)state;
    _cleanup_(buf_done)
    struct buf out = BUF_INIT;
    bucket_props_markdown(&out);
    assert_non_null(strstr(buf_str(&out), "| `copies` | 1 to 8 | 1 | always |"));
    assert_non_null(
        strstr(buf_str(&out), "| `lru` | `true`, `false` | `true` | always | a backend"));
    assert_non_null(
        strstr(buf_str(&out), "| `write_quorum` | `all`, `majority` | `all` | never |"));
    assert_non_null(strstr(buf_str(&out), "path\\|virtual"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_bucket_has_the_defaults),
        cmocka_unit_test(each_property_is_kept),
        cmocka_unit_test(wrong_values_are_refused_by_name),
        cmocka_unit_test(words_are_in_the_order_of_the_enum),
        cmocka_unit_test(a_quota_may_have_a_unit),
        cmocka_unit_test(what_is_set_at_creation_stays),
        cmocka_unit_test(the_table_has_a_row_for_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
