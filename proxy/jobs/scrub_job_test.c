/* When a scrub begins, and with whom. */
#include "proxy/jobs/scrub_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cluster/testing/test_state.h"
#include "proxy/jobs/periodic_job.h"

enum { MADE_MS = 1000, INTERVAL_MS = 50000 };

static const struct cluster_state *s;

static void apply(struct command cmd)
{
    test_state_apply(&s, &cmd);
}

static void join(const char *id)
{
    test_state_join(&s, id, "b", false);
}

static void set_interval(const char *text)
{
    apply((struct command){.kind = CMD_CONFIG_SET, .name = "scrub_interval", .text = text});
}

static void add_bucket(void)
{
    const struct bucket_props props = BUCKET_PROPS_DEFAULT;
    apply((struct command){
        .kind = CMD_BUCKET_CREATE, .name = "b", .props = &props, .wall_ms = MADE_MS});
}

static int setup(void **unused)
{
    (void)unused;
    s = state_new("c");
    join("t1");
    join("t2");
    apply((struct command){.kind = CMD_NODE_STATE, .name = "t2", .node_state = NODE_UNREACHABLE});
    set_interval("50s");
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    state_unref(s);
    return 0;
}

static void move(const char *id, enum job_state to, enum job_state end, int64_t ended_ms)
{
    struct job *job = job_copy(jobs_find(&s->jobs, id));
    job->state = to;
    job->stop_as = end == JOB_ABORTED ? JOB_ABORTED : JOB_FAILED;
    job->ended_ms = ended_ms;
    apply((struct command){.kind = CMD_JOB_UPDATE, .name = id, .job = job});
    job_unref(job);
}

/* Begins one, and has it end so; JOB_QUEUED: it does not. */
static void begin(int64_t wall_ms, enum job_state end, int64_t ended_ms)
{
    struct command cmd;
    assert_true(scrub_kind.next(s, &(struct standing_now){.wall_ms = wall_ms}, &cmd));
    apply(cmd);
    if (end == JOB_FINISHED) {
        move(cmd.name, JOB_RUNNING, end, 0);
        move(cmd.name, JOB_COMMITTING, end, 0);
    } else if (end != JOB_QUEUED) {
        move(cmd.name, JOB_STOPPING, end, 0);
    }
    if (end != JOB_QUEUED)
        move(cmd.name, end, end, ended_ms);
    job_unref((struct job *)cmd.job);
}

static bool is_wanted(int64_t wall_ms)
{
    struct command cmd;
    bool wanted = scrub_kind.next(s, &(struct standing_now){.wall_ms = wall_ms}, &cmd);
    if (wanted)
        job_unref((struct job *)cmd.job);
    return wanted;
}

static void test_the_first_is_counted_from_the_first_bucket(void **state)
{
    (void)state;
    assert_false(is_wanted(MADE_MS + 100 * INTERVAL_MS)); /* there is nothing to be read */
    add_bucket();
    assert_false(is_wanted(MADE_MS + INTERVAL_MS - 1));
    assert_true(is_wanted(MADE_MS + INTERVAL_MS));
    set_interval("0");
    assert_false(is_wanted(MADE_MS + 100 * INTERVAL_MS));
}

static void test_one_at_a_time(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct job *job;
    add_bucket();
    begin(100000, JOB_QUEUED, 0);
    assert_false(is_wanted(100000 + 10 * INTERVAL_MS));
    assert_int_equal(scrub_kind.make(s, 200000, &job, &err), E_JOB_STATE);
}

static void test_the_next_one(void **state)
{
    (void)state;
    add_bucket();
    begin(100000, JOB_FINISHED, 120000);
    assert_true(periodic_is_last(&s->jobs, s->jobs.jobs[0]));
    assert_false(is_wanted(100000 + INTERVAL_MS - 1));
    begin(100000 + INTERVAL_MS, JOB_ABORTED, 160000);
    assert_false(periodic_is_last(&s->jobs, s->jobs.jobs[0]));
    assert_true(periodic_is_last(&s->jobs, s->jobs.jobs[1]));
    assert_false(is_wanted(100000 + 2 * INTERVAL_MS - 1));
    assert_true(is_wanted(100000 + 2 * INTERVAL_MS));
}

static void test_a_failed_one_is_tried_again(void **state)
{
    (void)state;
    add_bucket();
    begin(100000, JOB_FAILED, 120000);
    set_interval("30d");
    assert_false(is_wanted(120000 + SCRUB_RETRY_MS - 1));
    assert_true(is_wanted(120000 + SCRUB_RETRY_MS));
}

static void test_who_does_not_answer_is_left_out(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct job *job;
    assert_int_equal(scrub_kind.make(s, 5, &job, &err), 0);
    assert_int_equal(job->participant_count, 1);
    assert_string_equal(job->participants[0], "t1");
    assert_string_equal(job->description, "without t2");
    assert_int_equal(scrub_kind.fits(job, s, &err), 0);
    apply((struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_UNREACHABLE});
    apply((struct command){.kind = CMD_NODE_REMOVE, .name = "t1", .force = true});
    assert_int_equal(scrub_kind.fits(job, s, &err), E_STALE_MAP);
    job_unref(job);
    assert_int_equal(scrub_kind.make(s, 5, &job, &err), E_NO_TARGETS);
}

static void test_the_age_counts_those_that_have_not_failed(void **unused)
{
    (void)unused;
    assert_int_equal(scrub_age_ms(s, MADE_MS), 0);
    add_bucket();
    assert_int_equal(scrub_age_ms(s, MADE_MS + 7), 7);
    assert_int_equal(scrub_age_ms(s, MADE_MS - 7), 0);
    begin(MADE_MS + INTERVAL_MS, JOB_FAILED, MADE_MS + INTERVAL_MS + 5);
    assert_int_equal(scrub_age_ms(s, MADE_MS + INTERVAL_MS + 9), INTERVAL_MS + 9);
    begin(MADE_MS + 3 * INTERVAL_MS, JOB_FINISHED, MADE_MS + 3 * INTERVAL_MS + 5);
    assert_int_equal(scrub_age_ms(s, MADE_MS + 3 * INTERVAL_MS + 9), 9);
    begin(MADE_MS + 4 * INTERVAL_MS, JOB_QUEUED, 0);
    assert_int_equal(scrub_age_ms(s, MADE_MS + 4 * INTERVAL_MS + 3), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_first_is_counted_from_the_first_bucket, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_one_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_next_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_failed_one_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_age_counts_those_that_have_not_failed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_who_does_not_answer_is_left_out, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
