#include "proxy/jobs/job_stall.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "cluster/documents/job.h"
#include "cluster/documents/jobs.h"
#include "common/jsonx.h"
#include "common/metrics.h"

static char kind[] = "copy", id[] = "cpy-1";

static json_t *reports(void *ctx, const char *job_id)
{
    json_t *doc = NULL;
    const char *text = ctx;
    assert_string_equal(job_id, id);
    assert_int_equal(json_parse(text, strlen(text), &doc, NULL), 0);
    return doc;
}

static void look(struct job_stalls *s, enum job_state state, const char *text, uint64_t now_ms)
{
    struct job job = {.id = id, .kind = kind, .state = state};
    struct job *list[] = {&job};
    const struct jobs jobs = {.count = 1, .jobs = list};
    job_stalls_look(s, &jobs, reports, (void *)text, now_ms);
}

static uint64_t shown(void)
{
    return metric_value(metric_get(M_jobs_stalled_seconds, "kind=\"copy\""));
}

static void a_job_without_progress(void **unused)
{
    (void)unused;
    struct job_stalls *s = job_stalls_new();
    look(s, JOB_RUNNING, "{\"t1\": {\"status\": {\"objects\": 1}}}", 1000);
    assert_int_equal(job_stalls_ms(s, id), 0);
    look(s, JOB_RUNNING, "{\"t1\": {\"status\": {\"objects\": 1}}}", 31000);
    assert_int_equal(job_stalls_ms(s, id), 30000);
    assert_int_equal(shown(), 30);
    look(s, JOB_RUNNING, "{\"t1\": {\"status\": {\"objects\": 2}}}", 32000);
    assert_int_equal(job_stalls_ms(s, id), 0);
    assert_int_equal(shown(), 0);
    look(s, JOB_COMMITTING, "{\"t1\": {\"status\": {\"objects\": 2}}}", 40000);
    assert_int_equal(job_stalls_ms(s, id), 0);
    job_stalls_free(s);
}

static void times_are_no_progress(void **unused)
{
    (void)unused;
    struct job_stalls *s = job_stalls_new();
    look(s, JOB_RUNNING, "{\"t1\": {\"seconds\": {\"extract\": 1}, \"rate\": 1.5}}", 0);
    look(s, JOB_RUNNING, "{\"t1\": {\"seconds\": {\"extract\": 9}, \"rate\": 2.5}}", 5000);
    assert_int_equal(job_stalls_ms(s, id), 5000);
    job_stalls_free(s);
}

static void a_job_that_waits_or_has_ended_is_forgotten(void **unused)
{
    (void)unused;
    static const enum job_state states[] = {JOB_QUEUED, JOB_FINISHED, JOB_FAILED, JOB_ABORTED};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct job_stalls *s = job_stalls_new();
        look(s, JOB_RUNNING, "{}", 0);
        look(s, JOB_RUNNING, "{}", 9000);
        assert_int_equal(shown(), 9);
        look(s, states[i], "{}", 10000);
        assert_int_equal(job_stalls_ms(s, id), 0);
        assert_int_equal(shown(), 0);
        job_stalls_free(s);
    }
}

static void a_proxy_that_is_primary_no_longer(void **unused)
{
    (void)unused;
    struct job_stalls *s = job_stalls_new();
    look(s, JOB_RUNNING, "{}", 0);
    look(s, JOB_RUNNING, "{}", 9000);
    job_stalls_look(s, NULL, reports, NULL, 10000);
    assert_int_equal(shown(), 0);
    look(s, JOB_RUNNING, "{}", 20000);
    assert_int_equal(job_stalls_ms(s, id), 0);
    job_stalls_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_without_progress),
        cmocka_unit_test(times_are_no_progress),
        cmocka_unit_test(a_job_that_waits_or_has_ended_is_forgotten),
        cmocka_unit_test(a_proxy_that_is_primary_no_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
