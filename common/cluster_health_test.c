#include "common/cluster_health.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"

#define PRIMARY "{\"id\": \"p1\", \"role\": \"proxy\", \"state\": \"active\", \"version\": 3}"
#define TARGET "{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"version\": 3}"

static json_t *parse(const char *text)
{
    json_t *doc = NULL;
    assert_int_equal(json_parse(text, strlen(text), &doc, NULL), 0);
    return doc;
}

/* words: of the first reason; NULL: there is none. */
static void judged_as(const char *healthy, const char *nodes, const char *refused,
                      const char *health, size_t reasons, const char *words)
{
    _cleanup_free_ char *text =
        xprintf("{\"primary\": \"p1\", \"healthy\": %s, \"nodes\": [%s], \"refused\": %s}", healthy,
                nodes, refused != NULL ? refused : "0");
    _cleanup_json_ json_t *overview = parse(text);
    _cleanup_json_ json_t *doc = cluster_health_judge(overview);
    json_t *list = json_object_get(doc, "reasons");
    assert_string_equal(json_string_value(json_object_get(doc, "health")), health);
    assert_int_equal(json_array_size(list), reasons);
    if (words == NULL)
        return;
    const char *first = json_string_value(json_object_get(json_array_get(list, 0), "text"));
    if (strstr(first, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, first);
}

static void judged(const char *nodes, const char *refused, const char *health, size_t reasons,
                   const char *words)
{
    judged_as("false", nodes, refused, health, reasons, words);
}

static void everybody_is_there(void **unused)
{
    (void)unused;
    judged_as("true", PRIMARY "," TARGET, NULL, "green", 0, NULL);
    judged_as("true", PRIMARY "," TARGET, "0", "green", 0, NULL);
    judged_as("true", PRIMARY "," TARGET, "0, \"open_to_all\": false", "green", 0, NULL);
    judged_as("true",
              PRIMARY ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", "
                      "\"version\": 3, \"certificate_left_s\": 1209600}",
              NULL, "green", 0, NULL);
    judged_as("true",
              PRIMARY ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"version\": "
                      "3, \"capacity\": "
                      "{\"uploads_waiting\": 5, \"uploads_late\": 0, \"uploads_oldest_ms\": 9}}",
              NULL, "green", 0, NULL);
}

static void what_wants_looking_after(void **unused)
{
    (void)unused;
    judged(PRIMARY "," TARGET, "0, \"open_to_all\": true", "yellow", 1, "anybody who reaches");
    judged(PRIMARY ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", "
                   "\"version\": 3, \"certificate_left_s\": 1209599}",
           NULL, "yellow", 1, "the certificate of 't1' expires in 13 d");
    judged(PRIMARY "," TARGET,
           "0, \"quotas\": [{\"bucket\": \"b\", \"use\": \"near\", \"text\": \"9 of 10 objects\"}]",
           "yellow", 1, "bucket 'b' has used most of its quota (9 of 10 objects)");
    judged(PRIMARY "," TARGET, "0, \"sealed_by_old_key\": 2", "yellow", 1,
           "2 secrets of users are sealed under an old cluster key");
    judged(PRIMARY "," TARGET ",{\"id\": \"p2\", \"role\": \"proxy\", \"state\": \"unreachable\"}",
           NULL, "yellow", 1, "proxy 'p2'");
    judged(PRIMARY "," TARGET ",{\"id\": \"t2\", \"role\": \"target\", \"state\": \"maintenance\"}",
           NULL, "yellow", 1, "maintenance");
}

static void what_a_target_reports(void **unused)
{
    (void)unused;
    judged(PRIMARY ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"version\": 3, "
                   "\"capacity\": "
                   "{\"mountpaths_high\": 2, \"mountpaths_out\": 0}}",
           NULL, "yellow", 1, "2 mountpaths of 't1' above space_high");
    judged(PRIMARY ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"version\": 3, "
                   "\"capacity\": "
                   "{\"quarantined\": 3}}",
           NULL, "yellow", 1, "3 damaged files of 't1' in quarantine");
    judged(PRIMARY ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"version\": 3, "
                   "\"capacity\": "
                   "{\"quarantined\": 0, \"lost\": 2}}",
           NULL, "red", 1, "2 lost objects, says 't1'");
    judged(PRIMARY ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"version\": 3, "
                   "\"capacity\": "
                   "{\"mountpaths_missing\": 1}}",
           NULL, "yellow", 1, "1 mountpath of 't1' is disabled");
    judged(PRIMARY ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"version\": 3, "
                   "\"capacity\": "
                   "{\"mountpaths_missing\": 2, \"disks_missing\": 2, \"disk_missing\": \"/d2\"}}",
           NULL, "red", 1, "mountpath '/d2' and 1 more of 't1' was missing at its start");
    judged(PRIMARY ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"version\": 3, "
                   "\"capacity\": "
                   "{\"mountpaths_missing\": 2, \"disks_missing\": 1, \"disk_missing\": \"/d2\"}}",
           NULL, "red", 2, "mountpath '/d2' of 't1' was missing at its start");
    judged(PRIMARY ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"version\": 3, "
                   "\"capacity\": "
                   "{\"uploads_waiting\": 5, \"uploads_late\": 2, \"uploads_oldest_ms\": 2159999}}",
           NULL, "yellow", 1,
           "2 of 5 writes on 't1' that wait for a backend were made more than 'back_late' ago, the "
           "first 35 min ago");
    judged(PRIMARY ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"version\": 3, "
                   "\"capacity\": {\"backends_failing\": 2, \"failing_bucket\": \"cold\", "
                   "\"failing_endpoint\": \"http://store:9000\"}}",
           NULL, "yellow", 1,
           "the last requests of 't1' to http://store:9000, the backend of bucket 'cold' (and of 1 "
           "more), failed");
}

static void what_is_silent(void **unused)
{
    (void)unused;
    judged(PRIMARY "," TARGET ",{\"id\": \"t2\", \"role\": \"target\", \"state\": "
                   "\"maintenance\", \"absent\": true}",
           NULL, "yellow", 1, "does not answer: a rebalance waits for it");
    judged_as("false, \"moving\": false",
              PRIMARY "," TARGET ",{\"id\": \"t2\", \"role\": \"target\", "
                      "\"state\": \"maintenance\", \"absent\": true}",
              NULL, "yellow", 1, "does not answer, which it need not");
    judged(PRIMARY ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\"}", NULL, "yellow",
           1, "'t1' has not reported");
    judged_as("true",
              PRIMARY ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"version\": "
                      "3, \"silent_ms\": 2140, \"late\": true}",
              NULL, "yellow", 1, "'t1' has not reported to the primary for 2.1 s");
}

static void what_is_refused(void **unused)
{
    (void)unused;
    judged(PRIMARY "," TARGET, NULL, "red", 1, "no primary");
    judged(PRIMARY, NULL, "red", 1, "no target is active");
    judged(PRIMARY "," TARGET ",{\"id\": \"p2\", \"role\": \"proxy\", \"state\": \"unreachable\"},"
                   "{\"id\": \"t2\", \"role\": \"target\", \"state\": \"unreachable\"}",
           NULL, "red", 2, "target 't2'");
    judged(PRIMARY ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"version\": 3, "
                   "\"capacity\": "
                   "{\"mountpaths_high\": 2, \"mountpaths_out\": 1}}",
           NULL, "red", 2, "PUT is refused");
    judged("{\"id\": \"p1\", \"role\": \"proxy\", \"state\": \"active\"}," TARGET, NULL, "red", 1,
           "does not answer");
    judged(PRIMARY "," TARGET, "1", "red", 1, "recover");
}

static void copies_soften_what_is_missing(void **unused)
{
    (void)unused;
    static const char *const nodes = PRIMARY "," TARGET ",{\"id\": \"t2\", \"role\": \"target\", "
                                             "\"state\": \"unreachable\", \"lag\": \"missed\"}";
    static const struct {
        const char *protection, *health, *words, *last;
        size_t reasons;
    } rows[] = {
        {"{\"protected\": 0, \"degraded\": 1, \"unavailable\": 0}, \"at_risk\": [{\"bucket\": "
         "\"b\", "
         "\"protection\": \"degraded\", \"why\": \"so\"}]",
         "yellow", "one copy less", "bucket 'b' is degraded: so", 2},
        {"{\"protected\": 1, \"degraded\": 1, \"unavailable\": 1}, \"at_risk\": [{\"bucket\": "
         "\"b\", "
         "\"protection\": \"unavailable\", \"why\": \"so\"}]",
         "red", "give 503", "1 more bucket is degraded", 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        _cleanup_free_ char *text = xprintf("{\"primary\": \"p1\", \"healthy\": false, \"nodes\": "
                                            "[%s], \"protection\": %s}",
                                            nodes, rows[i].protection);
        _cleanup_json_ json_t *overview = parse(text);
        _cleanup_json_ json_t *doc = cluster_health_judge(overview);
        json_t *list = json_object_get(doc, "reasons");
        const char *first = json_string_value(json_object_get(json_array_get(list, 0), "text"));
        size_t count = json_array_size(list);
        const char *last =
            json_string_value(json_object_get(json_array_get(list, count - 1), "text"));
        assert_string_equal(json_string_value(json_object_get(doc, "health")), rows[i].health);
        assert_int_equal(count, rows[i].reasons);
        assert_non_null(strstr(last, rows[i].last));
        assert_non_null(strstr(first, rows[i].words));
    }
    judged(
        PRIMARY
        ",{\"id\": \"t1\", \"role\": \"target\", \"state\": \"active\", \"version\": 3, \"lag\": "
        "\"restarted\"}",
        NULL, "yellow", 1, "must be compared (restarted): a repair begins by itself");
}

static void what_the_cluster_says_counts(void **state)
{
    (void)state;
    _cleanup_json_ json_t *said = parse("{\"health\": \"yellow\", \"reasons\": [], \"nodes\": []}");
    _cleanup_json_ json_t *doc = cluster_health_said(said);
    assert_string_equal(json_string_value(json_object_get(doc, "health")), "yellow");
    assert_int_equal(json_array_size(json_object_get(doc, "reasons")), 0);
    _cleanup_json_ json_t *old = parse("{\"health\": \"yellow\", \"nodes\": []}");
    _cleanup_json_ json_t *judged_here = cluster_health_said(old);
    assert_string_equal(json_string_value(json_object_get(judged_here, "health")), "red");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_is_there),
        cmocka_unit_test(what_wants_looking_after),
        cmocka_unit_test(what_a_target_reports),
        cmocka_unit_test(what_is_silent),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(copies_soften_what_is_missing),
        cmocka_unit_test(what_the_cluster_says_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
