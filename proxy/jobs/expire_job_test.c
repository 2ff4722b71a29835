/* When a job `expire` begins, and what may be asked of it. */
#include "proxy/jobs/expire_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/testing/test_state.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "proxy/jobs/bare_job.h"
#include "proxy/jobs/periodic_job.h"

enum { MADE_MS = 1000, INTERVAL_MS = 50000 };

static const struct cluster_state *s;

static void apply(struct command cmd)
{
    test_state_apply(&s, &cmd);
}

static void set_interval(const char *text)
{
    apply((struct command){.kind = CMD_CONFIG_SET, .name = "lifecycle_interval", .text = text});
}

static void set_rules(const char *text)
{
    _cleanup_json_ json_t *patch = json_pack("{s:s}", "lifecycle", text);
    apply((struct command){.kind = CMD_BUCKET_TEXTS, .name = "b", .patch = patch});
}

static int setup(void **unused)
{
    const struct bucket_props props = BUCKET_PROPS_DEFAULT;
    (void)unused;
    s = state_new("c");
    test_state_join(&s, "t1", "b", false);
    test_state_join(&s, "t2", "b", false);
    apply((struct command){.kind = CMD_NODE_STATE, .name = "t2", .node_state = NODE_UNREACHABLE});
    apply((struct command){
        .kind = CMD_BUCKET_CREATE, .name = "b", .props = &props, .wall_ms = MADE_MS});
    set_interval("50s");
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    state_unref(s);
    return 0;
}

static struct job *next(int64_t wall_ms)
{
    struct command cmd;
    return expire_kind.next(s, &(struct standing_now){.wall_ms = wall_ms}, &cmd)
               ? (struct job *)cmd.job
               : NULL;
}

static bool is_wanted(int64_t wall_ms)
{
    struct job *job = next(wall_ms);
    if (job != NULL)
        job_unref(job);
    return job != NULL;
}

static int ask(const char *value, struct job **job, struct error *err)
{
    _cleanup_free_ char *text =
        xprintf("{\"action\": \"start\", \"name\": \"expire\", \"value\": %s}", value);
    return bare_job_make(s, text, strlen(text), MADE_MS, job, err);
}

static void only_rules_make_one_begin(void **unused)
{
    (void)unused;
    assert_false(is_wanted(MADE_MS + 100 * INTERVAL_MS));
    set_rules("<LifecycleConfiguration/>");
    assert_false(is_wanted(MADE_MS + INTERVAL_MS - 1));
    assert_true(is_wanted(MADE_MS + INTERVAL_MS));
    set_interval("0");
    assert_false(is_wanted(MADE_MS + 100 * INTERVAL_MS));
}

static void targets_that_do_not_answer_are_left_out(void **unused)
{
    (void)unused;
    set_rules("<LifecycleConfiguration/>");
    struct job *job = next(MADE_MS + INTERVAL_MS);
    assert_non_null(job);
    assert_int_equal(job->participant_count, 1);
    assert_string_equal(job->participants[0], "t1");
    assert_string_equal(job->description, "without t2");
    job_unref(job);
}

/* One for a bucket alone does not put the next one off; but there is one at a time. */
static void one_bucket_by_hand(void **unused)
{
    struct error err = ERROR_INIT;
    struct job *job, *other;
    (void)unused;
    set_rules("<LifecycleConfiguration/>");
    assert_int_equal(ask("{\"bucket\": \"b\"}", &job, &err), 0);
    apply((struct command){.kind = CMD_JOB_CREATE, .name = job->id, .job = job});
    assert_false(periodic_is_last(&s->jobs, s->jobs.jobs[0]));
    assert_false(is_wanted(MADE_MS + INTERVAL_MS));
    assert_int_equal(ask("{}", &other, &err), E_JOB_STATE);
    struct job *ended = job_copy(job);
    ended->state = JOB_STOPPING;
    ended->stop_as = JOB_ABORTED;
    apply((struct command){.kind = CMD_JOB_UPDATE, .name = job->id, .job = ended});
    ended->state = JOB_ABORTED;
    ended->ended_ms = MADE_MS + INTERVAL_MS;
    apply((struct command){.kind = CMD_JOB_UPDATE, .name = job->id, .job = ended});
    job_unref(ended);
    assert_true(is_wanted(MADE_MS + INTERVAL_MS));
    job_unref(job);
}

static void what_is_refused(void **unused)
{
    static const struct {
        const char *value;
        int code;
    } rows[] = {
        {"{\"bucket\": \"none\"}", E_BUCKET_NOT_FOUND},
        {"{\"bucket\": \"\"}", E_NAME},
        {"{\"bucket\": \"a/b\"}", E_NAME},
        {"{\"bucket\": 7}", E_JSON},
        {"{\"buckets\": \"b\"}", E_JSON},
    };
    struct job *job;
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        int code = ask(rows[i].value, &job, &err);
        if (code != rows[i].code)
            fail_msg("row %zu: %d, %s", i, code, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_rules_make_one_begin, setup, teardown),
        cmocka_unit_test_setup_teardown(targets_that_do_not_answer_are_left_out, setup, teardown),
        cmocka_unit_test_setup_teardown(one_bucket_by_hand, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
