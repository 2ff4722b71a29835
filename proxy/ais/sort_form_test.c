/* dSort's request and its JobInfo. */
#include "proxy/ais/sort_form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/jsonx.h"
#include "common/mem.h"

static json_t *parse(const char *text)
{
    json_t *doc = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(json_parse(text, strlen(text), &doc, &err), 0);
    return doc;
}

/* `wanted`: NULL where it is refused. */
static void expect_request(const char *text, const char *wanted)
{
    static const char *const hosts[] = {"h:1", "[::1]:2", NULL};
    _cleanup_json_ json_t *doc = parse(text);
    struct error err = ERROR_INIT;
    int code = sort_form_request(doc, hosts, &err);
    if (wanted == NULL) {
        assert_int_equal(code, E_INVALID);
        return;
    }
    assert_int_equal(code, 0);
    _cleanup_free_ char *got = json_text(doc);
    assert_string_equal(got, wanted);
}

static void test_requests(void **state)
{
    (void)state;
    expect_request("{\"output_format\":\"\"}", "{}");
    expect_request("{\"output_format\":\"o-%d\"}", "{\"output_format\":\"o-%d\"}");
    expect_request("{\"ekm_sep\":\"x\"}", "{\"ekm_file_sep\":\"x\"}");
    expect_request("{\"ekm_sep\":\"x\",\"ekm_file_sep\":\"y\"}", "{\"ekm_file_sep\":\"y\"}");
    expect_request("{\"ekm_file\":\"http://h:1/v1/objects/b/a%20b/c?provider=ais\"}",
                   "{\"ekm_file\":\"dfc://b/a b/c\"}");
    expect_request("{\"ekm_file\":\"https://[::1]:2/v1/objects/b/c\"}",
                   "{\"ekm_file\":\"dfc://b/c\"}");
    expect_request("{\"ekm_file\":\"http://h:1/v1/objects/b/%zz\"}", NULL);
    expect_request("{\"ekm_file\":\"http://h:1/v1/objects/b/%ff\"}", NULL);
    static const char *const others[] = {
        "{\"ekm_file\":\"http://h:12/v1/objects/b/c\"}",
        "{\"ekm_file\":\"http://h:1/v1/other\"}",
        "{\"ekm_file\":\"http://other/v1/objects/b/c\"}",
        "{\"ekm_file\":\"h:1/v1/objects/b/c\"}",
        "{\"ekm_file\":7}",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        expect_request(others[i], others[i]);
}

static const json_t *at(const json_t *doc, const char *a, const char *b, const char *c)
{
    const json_t *part = json_object_get(doc, a);
    part = b != NULL ? json_object_get(part, b) : part;
    return c != NULL ? json_object_get(part, c) : part;
}

static void expect_text(const json_t *info, const char *a, const char *b, const char *c,
                        const char *wanted)
{
    assert_string_equal(json_string_value(at(info, a, b, c)), wanted);
}

static void test_info(void **state)
{
    (void)state;
    struct job *job = job_new("srt-1", "sort");
    job->state = JOB_RUNNING;
    job->started_ms = 1000;
    job->spec = parse("{\"input_bck\":{\"name\":\"in\"},\"output_bck\":{\"name\":\"out\"}}");
    _cleanup_json_ json_t *report = parse(
        "{\"status\":{\"phase\":\"creating\",\"extract\":{\"shards\":{\"done\":4,\"total\":5},"
        "\"records\":40,\"bytes\":400,\"spilled_bytes\":7},\"create\":{\"shards\":{\"done\":1,"
        "\"total\":2},\"bytes\":{\"done\":100}},\"warnings\":[\"w\"],"
        "\"seconds\":{\"extract\":3.7}}}");
    json_t *info = sort_form_info(job, report);
    expect_text(info, "src-bck", "name", NULL, "in");
    expect_text(info, "dst-bck", "name", NULL, "out");
    expect_text(info, "loc-objs", NULL, NULL, "1");
    expect_text(info, "loc-bytes", NULL, NULL, "100");
    expect_text(info, "Metrics", "local_extraction", "total_count", "5");
    expect_text(info, "Metrics", "local_extraction", "extracted_to_disk_size", "7");
    expect_text(info, "Metrics", "shard_creation", "to_create", "2");
    expect_text(info, "finish_time", NULL, NULL, "0001-01-01T00:00:00Z");
    assert_int_equal(json_integer_value(at(info, "Metrics", "local_extraction", "elapsed")), 3);
    assert_true(json_is_true(at(info, "Metrics", "shard_creation", "running")));
    assert_true(json_is_false(at(info, "Metrics", "shard_creation", "finished")));
    assert_int_equal(json_array_size(at(info, "Metrics", "warnings", NULL)), 1);
    json_decref(info);
    job->state = JOB_FAILED;
    job->ended_ms = 2000;
    job->error_message = xstrdup("why");
    info = sort_form_info(job, NULL);
    assert_true(json_is_true(at(info, "Metrics", "aborted", NULL)));
    assert_true(json_is_true(at(info, "aborted", NULL, NULL)));
    assert_string_equal(json_string_value(json_array_get(at(info, "Metrics", "errors", NULL), 0)),
                        "why");
    assert_true(json_is_false(at(info, "Metrics", "shard_creation", "finished")));
    json_decref(info);
    job->state = JOB_FINISHED;
    info = sort_form_info(job, report);
    assert_true(json_is_true(at(info, "Metrics", "shard_creation", "finished")));
    assert_true(json_is_false(at(info, "aborted", NULL, NULL)));
    assert_int_equal(json_array_size(at(info, "Metrics", "errors", NULL)), 0);
    expect_text(info, "finish_time", NULL, NULL, "1970-01-01T00:00:02Z");
    json_decref(info);
    job_unref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_info),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
