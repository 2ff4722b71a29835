#include "proxy/http/cache_groups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/jsonx.h"

static const struct cache_times times = {.away_ms = 10000, .settle_ms = 300000};

static int report(struct cache_groups *g, const char *id, uint64_t now)
{
    const struct cache_report r = {
        .group = "g", .id = id, .boot = "b1", .url = "http://10.0.0.1:9470", .weight = 7};
    return cache_groups_report(g, &r, &times, now, NULL);
}

/* The number of a field, or -1: there is no such member. */
static long long field(struct cache_groups *g, const char *id, const char *name, uint64_t now)
{
    long long found = -1;
    size_t i;
    json_t *member;
    _cleanup_json_ json_t *doc = cache_groups_show(g, "g", &times, now);
    json_array_foreach(json_object_get(doc, "members"), i, member)
    {
        json_t *value = json_object_get(member, name);
        if (strcmp(json_string_value(json_object_get(member, "id")), id) == 0)
            found = json_is_string(value) ? strcmp(json_string_value(value), "away") == 0
                                          : json_integer_value(value);
    }
    return found;
}

static void a_member_is_present_away_and_forgotten(void **unused)
{
    (void)unused;
    struct cache_groups *g = cache_groups_new();
    assert_int_equal(field(g, "m1", "state", 1000), -1);
    assert_int_equal(report(g, "m1", 1000), 0);
    for (uint64_t at = 2000; at < 400000; at += 2000)
        assert_int_equal(report(g, "m2", at), 0);
    assert_int_equal(report(g, "m1", 400000), 0);
    for (uint64_t at = 402000; at <= 700000; at += 2000) {
        assert_int_equal(report(g, "m2", at), 0);
        assert_int_equal(field(g, "m1", "state", at), at > 410000);
    }
    assert_int_equal(field(g, "m1", "state", 390000), 0); /* a call that was overtaken */
    assert_int_equal(field(g, "m1", "silent_ms", 700000), 300000);
    assert_int_equal(field(g, "m2", "present_ms", 700000), 698000);
    assert_int_equal(field(g, "m1", "state", 700001), -1);
    cache_groups_free(g);
}

static void a_flap_begins_its_presence_anew(void **unused)
{
    (void)unused;
    struct cache_groups *g = cache_groups_new();
    for (uint64_t at = 1000; at <= 61000; at += 2000) {
        assert_int_equal(report(g, "m2", at), 0);
        if (at < 11000 || at > 51000)
            assert_int_equal(report(g, "m1", at), 0);
    }
    assert_int_equal(field(g, "m1", "present_ms", 61000), 8000);
    assert_int_equal(field(g, "m2", "present_ms", 61000), 60000);
    /* A pause that nobody saw is none. */
    assert_int_equal(report(g, "m1", 70000), 0);
    assert_int_equal(field(g, "m1", "present_ms", 70000), 17000);
    cache_groups_free(g);
}

static void weights_are_those_of_two_maps(void **unused)
{
    (void)unused;
    struct cache_groups *g = cache_groups_new();
    struct cache_report r = {
        .group = "g", .id = "m1", .boot = "b1", .url = "http://h:1", .weight = 7};
    assert_int_equal(cache_groups_report(g, &r, &times, 1000, NULL), 0);
    assert_int_equal(field(g, "m1", "earlier_weight", 1000), 7);
    r.weight = 9;
    assert_int_equal(cache_groups_report(g, &r, &times, 2000, NULL), 0);
    assert_int_equal(field(g, "m1", "weight", 3000), 9);
    assert_int_equal(field(g, "m1", "earlier_weight", 3000), 7);
    r.drains = true;
    for (uint64_t at = 4000; at < 900000; at += 2000)
        assert_int_equal(cache_groups_report(g, &r, &times, at, NULL), 0);
    assert_int_equal(field(g, "m1", "weight", 900000), 0);
    assert_int_equal(field(g, "m1", "earlier_weight", 900000), 9);
    r.leaves = true;
    assert_int_equal(cache_groups_report(g, &r, &times, 901000, NULL), 0);
    assert_int_equal(field(g, "m1", "state", 901000), 1);
    cache_groups_free(g);
}

static void two_members_of_one_id_are_told(void **unused)
{
    (void)unused;
    struct cache_groups *g = cache_groups_new();
    struct cache_report r = {
        .group = "g", .id = "m1", .boot = "b1", .url = "http://h:1", .weight = 7};
    assert_int_equal(cache_groups_report(g, &r, &times, 1000, NULL), 0);
    r.boot = "b2"; /* it was started again */
    assert_int_equal(cache_groups_report(g, &r, &times, 2000, NULL), 0);
    r.boot = "b3";
    r.url = "http://h:2";
    assert_int_equal(cache_groups_report(g, &r, &times, 3000, NULL), E_EXISTS);
    assert_int_equal(cache_groups_report(g, &r, &times, 12001, NULL), 0);
    cache_groups_free(g);
}

static void a_new_primary_says_how_long_it_has_listened(void **unused)
{
    (void)unused;
    struct cache_groups *g = cache_groups_new();
    assert_int_equal(report(g, "m1", 5000), 0);
    _cleanup_json_ json_t *doc = cache_groups_show(g, "g", &times, 9000);
    assert_int_equal(json_integer_value(json_object_get(doc, "age_ms")), 4000);
    /* All were silent: what was known is of an earlier turn. */
    assert_int_equal(report(g, "m2", 20000), 0);
    _cleanup_json_ json_t *later = cache_groups_show(g, "g", &times, 20500);
    assert_int_equal(json_integer_value(json_object_get(later, "age_ms")), 500);
    assert_int_equal(json_array_size(json_object_get(later, "members")), 1);
    cache_groups_free(g);
}

static void what_is_wrong_or_too_much_is_refused(void **unused)
{
    (void)unused;
    struct cache_groups *g = cache_groups_new();
    char name[80];
    struct cache_report r = {.group = "g", .id = "", .boot = "b", .url = "http://h:1", .weight = 1};
    assert_int_equal(cache_groups_report(g, &r, &times, 1, NULL), E_INVALID);
    r.id = "a/b";
    assert_int_equal(cache_groups_report(g, &r, &times, 1, NULL), E_INVALID);
    memset(name, 'a', sizeof name);
    name[CACHE_WORD_MAX] = '\0';
    r.id = name;
    assert_int_equal(cache_groups_report(g, &r, &times, 1, NULL), E_INVALID);
    name[CACHE_WORD_MAX - 1] = '\0';
    assert_int_equal(cache_groups_report(g, &r, &times, 1, NULL), 0);
    r.url = "https://h:1";
    assert_int_equal(cache_groups_report(g, &r, &times, 1, NULL), E_INVALID);
    r.url = "http://h:1";
    r.weight = 0;
    assert_int_equal(cache_groups_report(g, &r, &times, 1, NULL), E_INVALID);
    for (unsigned i = 1; i < CACHE_MEMBERS_MAX; i++) {
        snprintf(name, sizeof name, "m%u", i);
        assert_int_equal(report(g, name, 100), 0);
    }
    assert_int_equal(report(g, "more", 200), E_OVERLOAD);
    for (uint64_t at = 5000; at <= 300000; at += 5000)
        assert_int_equal(report(g, "m1", at), 0);
    assert_int_equal(report(g, "more", 300001), E_OVERLOAD);
    assert_int_equal(report(g, "more", 300002), 0); /* the first one is forgotten */
    cache_groups_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_is_present_away_and_forgotten),
        cmocka_unit_test(a_flap_begins_its_presence_anew),
        cmocka_unit_test(weights_are_those_of_two_maps),
        cmocka_unit_test(two_members_of_one_id_are_told),
        cmocka_unit_test(a_new_primary_says_how_long_it_has_listened),
        cmocka_unit_test(what_is_wrong_or_too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
