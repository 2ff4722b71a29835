/* A job as the SDK reads it, while it runs and when it has ended. */
#include "proxy/ais/job_form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/jsonx.h"
#include "common/mem.h"

static void expect_json(json_t *got, const char *wanted)
{
    _cleanup_free_ char *text = json_text(got);
    assert_string_equal(text, wanted);
    json_decref(got);
}

static json_t *parse(const char *text)
{
    json_t *doc = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(json_parse(text, strlen(text), &doc, &err), 0);
    return doc;
}

static struct job *job_of(const char *kind, const char *spec)
{
    struct job *job = job_new("j-1", kind);
    job->state = JOB_RUNNING;
    job->created_ms = 1000;
    job->spec = parse(spec);
    return job;
}

static void test_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *native, *spec, *name;
    } rows[] = {
        {"sort", "{}", "dsort"},
        {"delete", "{\"prefix\":\"\"}", "delete-listrange"},
        {"copy", "{}", "copy-bck"},
        {"copy", "{\"prefix\":\"a\"}", "copy-bck"},
        {"copy", "{\"list\":[\"a\"]}", "copy-listrange"},
        {"copy", "{\"template\":\"a{0..1}\"}", "copy-listrange"},
        {"mirror", "{}", "make-n-copies"},
        {"lru", "{}", "lru"},
        {"scrub", "{}", "scrub"},
        {"of a later release", "{}", "of a later release"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job *job = job_of(rows[i].native, rows[i].spec);
        assert_string_equal(job_form_kind(job), rows[i].name);
        assert_true(job_form_is_of(job, rows[i].name));
        assert_true(job_form_is_of(job, ""));
        assert_false(job_form_is_of(job, "ec-encode"));
        job_unref(job);
    }
    assert_string_equal(job_form_bare("make-n-copies"), "mirror");
    assert_string_equal(job_form_bare("trim_copies"), "mirror");
    assert_string_equal(job_form_bare("lru"), "lru");
    assert_null(job_form_bare("ec-encode"));
    assert_null(job_form_bare("resilver"));
    assert_null(job_form_bare("dsort"));
    assert_null(job_form_bare(""));
}

static void test_status(void **state)
{
    (void)state;
    struct job *job = job_of("copy", "{}");
    expect_json(job_form_status(job), "{\"uuid\":\"j-1\",\"kind\":\"copy-bck\",\"err\":\"\","
                                      "\"end_time\":0,\"aborted\":false}");
    job->state = JOB_STOPPING;
    job->error_message = xstrdup("why");
    expect_json(job_form_status(job), "{\"uuid\":\"j-1\",\"kind\":\"copy-bck\",\"err\":\"\","
                                      "\"end_time\":0,\"aborted\":false}");
    job->state = JOB_ABORTED;
    job->ended_ms = 1700000000123;
    expect_json(job_form_status(job), "{\"uuid\":\"j-1\",\"kind\":\"copy-bck\",\"err\":\"why\","
                                      "\"end_time\":1700000000123000000,\"aborted\":true}");
    job->state = JOB_FAILED;
    expect_json(job_form_status(job), "{\"uuid\":\"j-1\",\"kind\":\"copy-bck\",\"err\":\"why\","
                                      "\"end_time\":1700000000123000000,\"aborted\":false}");
    job_unref(job);
}

static void test_snapshots(void **state)
{
    (void)state;
    char name[] = "b", to[] = "c";
    struct bucket buckets[] = {{.name = name, .id = 3}, {.name = to, .id = 4}};
    const struct bmd bmd = {.buckets = buckets, .count = 2};
    _cleanup_json_ json_t *report = parse("{\"status\":{\"objects\":{\"done\":4},\"bytes\":400}}");
    struct job *job = job_of("delete", "{}");
    job->plan = parse("{\"input_bucket_id\":3,\"output_bucket_id\":0}");
    expect_json(job_form_snapshot(job, report, &bmd),
                "{\"id\":\"j-1\",\"kind\":\"delete-listrange\","
                "\"start-time\":\"1970-01-01T00:00:01Z\",\"end-time\":\"0001-01-01T00:00:00Z\","
                "\"stats\":{\"loc-objs\":\"4\",\"loc-bytes\":\"400\"},\"aborted\":false,"
                "\"abort-err\":\"\",\"is_idle\":false,"
                "\"bck\":{\"name\":\"b\",\"provider\":\"ais\"}}");
    json_decref(job->plan);
    job->plan = parse("{\"input_bucket_id\":9,\"output_bucket_id\":4}");
    job->state = JOB_FINISHED;
    job->started_ms = 2000;
    job->ended_ms = 3000;
    expect_json(job_form_snapshot(job, NULL, &bmd),
                "{\"id\":\"j-1\",\"kind\":\"delete-listrange\","
                "\"start-time\":\"1970-01-01T00:00:02Z\",\"end-time\":\"1970-01-01T00:00:03Z\","
                "\"stats\":{\"loc-objs\":\"0\",\"loc-bytes\":\"0\"},\"aborted\":false,"
                "\"abort-err\":\"\",\"is_idle\":true,"
                "\"dst-bck\":{\"name\":\"c\",\"provider\":\"ais\"}}");
    job_unref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_snapshots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
