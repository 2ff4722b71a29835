#include "cluster/documents/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "common/jsonx.h"
#include "common/mem.h"

static void the_moves_are_those_of_the_drawing(void **unused)
{
    (void)unused;
    static const struct {
        enum job_state from, to;
    } allowed[] = {
        {JOB_QUEUED, JOB_RUNNING},   {JOB_QUEUED, JOB_STOPPING},     {JOB_RUNNING, JOB_COMMITTING},
        {JOB_RUNNING, JOB_STOPPING}, {JOB_COMMITTING, JOB_FINISHED}, {JOB_STOPPING, JOB_FAILED},
        {JOB_STOPPING, JOB_ABORTED}, {JOB_RUNNING, JOB_QUEUED},
    };
    unsigned count = 0;
    for (int from = JOB_QUEUED; from <= JOB_ABORTED; from++) {
        for (int to = JOB_QUEUED; to <= JOB_ABORTED; to++)
            count += job_may_move((enum job_state)from, (enum job_state)to);
    }
    assert_int_equal(count, sizeof allowed / sizeof allowed[0]);
    for (size_t i = 0; i < count; i++)
        assert_true(job_may_move(allowed[i].from, allowed[i].to));
    for (int s = JOB_QUEUED; s <= JOB_ABORTED; s++) {
        enum job_state read;
        assert_int_equal(job_state_from_name(job_state_name((enum job_state)s), &read, NULL), 0);
        assert_int_equal(read, s);
    }
    assert_int_equal(job_state_from_name("asleep", &(enum job_state){0}, NULL), E_INVALID);
}

static struct job *full_job(void)
{
    struct job *j = job_new("srt-abc", "sort");
    j->state = JOB_STOPPING;
    j->stop_as = JOB_ABORTED;
    j->attempt = 2;
    j->description = xstrdup("nightly");
    j->spec = json_pack("{s:s}", "input_bck", "in");
    j->plan = json_pack("{s:I}", "salt", (json_int_t)77);
    j->report = json_pack("{s:[s]}", "warnings", "none");
    j->participant_count = 2;
    j->participants = xcalloc(2, sizeof j->participants[0]);
    j->participants[0] = xstrdup("t2");
    j->participants[1] = xstrdup("t1");
    job_leave_out(j, "t1");
    j->created_ms = 1;
    j->started_ms = 2;
    j->ended_ms = 3;
    j->error_code = xstrdup("no_space");
    j->error_message = xstrdup("t2: full");
    return j;
}

static void a_job_survives_copy_and_json(void **unused)
{
    (void)unused;
    struct job *j = full_job();
    struct job *copy = job_copy(j);
    _cleanup_json_ json_t *doc = job_to_json(j);
    job_unref(j);
    struct job *read;
    assert_int_equal(job_from_json(doc, &read, NULL), 0);
    assert_string_equal(read->participants[0], "t2");
    assert_int_equal(read->stop_as, JOB_ABORTED);
    assert_string_equal(read->error_message, "t2: full");
    _cleanup_json_ json_t *of_copy = job_to_json(copy);
    _cleanup_json_ json_t *of_read = job_to_json(read);
    assert_true(json_equal(doc, of_copy));
    assert_true(json_equal(doc, of_read));
    job_unref(copy);
    job_unref(read);
}

static void a_message_that_is_not_utf8_does_not_hurt(void **unused)
{
    (void)unused;
    struct job *j = job_new("x", "sort");
    j->error_code = xstrdup("io_error");
    j->error_message = xstrdup("cut \xc3");
    _cleanup_json_ json_t *doc = job_to_json(j);
    const char *message = NULL;
    json_get_str(json_object_get(doc, "error"), "", "message", &message, NULL);
    assert_string_equal(message, "cut \\xc3");
    job_unref(j);
}

static void malformed_jobs_are_refused_by_field(void **unused)
{
    (void)unused;
#define JOB(more) "{\"id\": \"j\", \"kind\": \"sort\", \"state\": \"queued\"" more "}"
    static const struct {
        const char *text;
        int code;
        const char *words;
    } rows[] = {
        {"{\"kind\": \"sort\", \"state\": \"queued\"}", E_JSON, "'job.id'"},
        {"{\"id\": \"j\", \"state\": \"queued\"}", E_JSON, "'job.kind'"},
        {"{\"id\": \"j\", \"kind\": \"sort\"}", E_JSON, "'job.state'"},
        {"{\"id\": \"../j\", \"kind\": \"sort\", \"state\": \"queued\"}", E_INVALID, "'job.id'"},
        {"{\"id\": \"..\", \"kind\": \"sort\", \"state\": \"queued\"}", E_INVALID, "'job.id'"},
        {JOB(", \"stop_as\": \"finished\""), E_INVALID, "'job.stop_as'"},
        {JOB(", \"participants\": [1]"), E_JSON, "'job.participants[0]'"},
        {JOB(", \"participants\": [\"t1\", \"a b\"]"), E_INVALID, "'job.participants[1]'"},
        {JOB(", \"participants\": {}"), E_JSON, "'job.participants'"},
        {JOB(", \"error\": {}"), E_JSON, "'job.error.code'"},
        {JOB(", \"description\": 5"), E_JSON, "'job.description'"},
        {JOB(", \"created\": \"now\""), E_JSON, "'job.created'"},
        {JOB(", \"spec\": []"), E_JSON, "'job.spec'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_json_ json_t *doc = NULL;
        struct error err = ERROR_INIT;
        struct job *j = NULL;
        assert_int_equal(json_parse(rows[i].text, strlen(rows[i].text), &doc, NULL), 0);
        if (job_from_json(doc, &j, &err) != rows[i].code ||
            strstr(err.message, rows[i].words) == NULL)
            fail_msg("row %zu: %s '%s'", i, error_name(err.code), err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_moves_are_those_of_the_drawing),
        cmocka_unit_test(a_job_survives_copy_and_json),
        cmocka_unit_test(a_message_that_is_not_utf8_does_not_hurt),
        cmocka_unit_test(malformed_jobs_are_refused_by_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
