#include "proxy/jobs/job_view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/jsonx.h"
#include "common/mem.h"

static json_t *parse(const char *text)
{
    json_t *doc = NULL;
    struct error err = ERROR_INIT;
    if (json_parse(text, strlen(text), &doc, &err) != 0)
        fail_msg("%s", err.message);
    return doc;
}

#define STATUS(phase, made)                                                                     \
    "{\"state\": \"running\", \"status\": {\"phase\": \"" phase "\", \"warnings\": [\"w\"],"    \
    " \"extract\": {\"shards\": {\"done\": 4, \"total\": 4}, \"records\": 40, \"bytes\": 400}," \
    " \"create\": {\"shards\": {\"done\": 1, \"total\": 2}, \"records\": 10,"                   \
    "              \"bytes\": {\"done\": " made ", \"total\": 200}},"                           \
    " \"seconds\": {\"extract\": 1, \"merge\": 0.1, \"create\": 2.0}}}"

static void test_running_job(void **state)
{
    (void)state;
    struct job *job = job_new("srt-1", "sort");
    job->state = JOB_RUNNING;
    _cleanup_json_ json_t *reports =
        parse("{\"t1\": " STATUS("creating", "100") ", \"t2\": " STATUS("creating", "150") "}");
    _cleanup_json_ json_t *view = job_view(job, reports, false);
    assert_string_equal(json_string_value(json_object_get(view, "state")), "creating");
    const json_t *progress = json_object_get(view, "progress");
    assert_int_equal(json_integer_value(json_object_get(progress, "percent")), 20 + 79 * 250 / 400);
    assert_int_equal(json_integer_value(json_object_get(progress, "rate_bytes_s")), 125);
    assert_int_equal(json_integer_value(json_object_get(progress, "eta_s")), 1);
    const json_t *warnings = json_object_get(view, "warnings");
    assert_int_equal(json_array_size(warnings), 2);
    assert_string_equal(json_string_value(json_array_get(warnings, 0)), "t1: w");
    assert_int_equal(json_object_size(json_object_get(view, "targets")), 2);
    job_unref(job);
}

static void test_who_is_waited_for(void **state)
{
    (void)state;
    struct job *job = job_new("srt-1", "sort");
    char t1[] = "t1", t2[] = "t2", t3[] = "t3", *participants[] = {t1, t2, t3};
    struct node nodes[] = {{.id = "t1", .role = NODE_TARGET, .state = NODE_UNREACHABLE},
                           {.id = "t2", .role = NODE_TARGET, .state = NODE_ACTIVE},
                           {.id = "t4", .role = NODE_TARGET, .state = NODE_UNREACHABLE}};
    const struct cluster_state s = {.smap = {.nodes = nodes, .count = 3}};
    job->state = JOB_QUEUED;
    job->participants = participants;
    job->participant_count = 3;
    _cleanup_json_ json_t *ids = job_view_waits(job, &s);
    assert_int_equal(json_array_size(ids), 1);
    assert_string_equal(json_string_value(json_array_get(ids, 0)), "t1");
    job->state = JOB_STOPPING;
    _cleanup_json_ json_t *none = job_view_waits(job, &s);
    assert_int_equal(json_array_size(none), 0);
    job->participants = NULL;
    job->participant_count = 0;
    job_unref(job);
}

static void test_phase_is_the_slowest_targets(void **state)
{
    (void)state;
    struct job *job = job_new("srt-1", "sort");
    job->state = JOB_RUNNING;
    _cleanup_json_ json_t *reports =
        parse("{\"t1\": " STATUS("extracting", "0") ", \"t2\": " STATUS("merging", "0") "}");
    assert_string_equal(job_view_state(job, reports), "extracting");
    assert_string_equal(job_view_state(job, NULL), "extracting");
    job->state = JOB_QUEUED;
    assert_string_equal(job_view_state(job, reports), "queued");
    job->state = JOB_COMMITTING;
    assert_string_equal(job_view_state(job, reports), "creating");
    job_unref(job);
}

static void test_ended_job(void **state)
{
    (void)state;
    struct job *job = job_new("srt-1", "sort");
    job->state = JOB_FAILED;
    job->error_code = xstrdup("shard_corrupt");
    job->error_message = xstrdup("t1: shard 'a' at byte 512: bad checksum");
    _cleanup_json_ json_t *view = job_view(job, NULL, true);
    assert_string_equal(json_string_value(json_object_get(view, "state")), "failed");
    const json_t *error = json_array_get(json_object_get(view, "errors"), 0);
    assert_string_equal(json_string_value(json_object_get(error, "code")), "shard_corrupt");
    assert_null(json_object_get(view, "targets"));
    job->state = JOB_FINISHED;
    _cleanup_json_ json_t *done = job_view(job, NULL, true);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(done, "progress"), "percent")), 100);
    job_unref(job);
}

/* Cut in the middle of a character, as messages may be. */
static void test_an_error_that_is_not_utf8_is_shown(void **state)
{
    (void)state;
    struct job *job = job_new("srt-1", "sort");
    job->state = JOB_FAILED;
    job->error_code = xstrdup("shard_corrupt");
    job->error_message = xstrdup("t1: shard '\xe6\x97\xa5\xe6\x9c");
    _cleanup_json_ json_t *view = job_view(job, NULL, true);
    const json_t *error = json_array_get(json_object_get(view, "errors"), 0);
    assert_string_equal(json_string_value(json_object_get(error, "code")), "shard_corrupt");
    assert_string_equal(json_string_value(json_object_get(error, "message")),
                        "t1: shard '\xe6\x97\xa5\\xe6\\x9c");
    job_unref(job);
}

static void test_a_job_over_objects(void **state)
{
    (void)state;
    struct job *job = job_new("del-1", "delete");
    job->state = JOB_RUNNING;
    _cleanup_json_ json_t *reports = parse(
        "{\"t1\": {\"status\": {\"objects\": {\"done\": 10, \"skipped\": 5, \"missing\": 1, "
        "\"failed\": 0, \"total\": 40}, \"bytes\": 100, \"seconds\": 2.0}}, \"t2\": "
        "{\"status\": {\"objects\": {\"done\": 4, \"total\": 40}, \"bytes\": 50}}, \"t3\": {}}");
    _cleanup_json_ json_t *view = job_view(job, reports, true);
    assert_string_equal(json_string_value(json_object_get(view, "state")), "running");
    assert_int_equal(json_array_size(json_object_get(view, "warnings")), 0);
    const json_t *progress = json_object_get(view, "progress");
    assert_int_equal(json_integer_value(json_object_get(progress, "percent")), 25);
    assert_int_equal(json_integer_value(json_object_get(progress, "rate_bytes_s")), 75);
    assert_int_equal(json_integer_value(json_object_get(progress, "eta_s")), 6);
    const json_t *objects = json_object_get(progress, "objects");
    assert_int_equal(json_integer_value(json_object_get(objects, "done")), 14);
    job->state = JOB_ABORTED;
    _cleanup_json_ json_t *aborted = job_view(job, reports, true);
    assert_string_equal(json_string_value(json_array_get(json_object_get(aborted, "warnings"), 0)),
                        "what was deleted before the end stays deleted");
    job_unref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_running_job),
        cmocka_unit_test(test_who_is_waited_for),
        cmocka_unit_test(test_phase_is_the_slowest_targets),
        cmocka_unit_test(test_ended_job),
        cmocka_unit_test(test_an_error_that_is_not_utf8_is_shown),
        cmocka_unit_test(test_a_job_over_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
