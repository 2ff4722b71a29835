/* When a target that is not settled is given a resilver. */
#include "proxy/jobs/resilver_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cluster/command/command.h"
#include "proxy/jobs/standing_job.h"

static struct cluster_state *state_with(enum job_state end, int64_t ended_ms)
{
    struct cluster_state *s = state_new("c-1");
    struct job *job = resilver_job_make("t1", 7, 1000);
    job->state = end;
    job->ended_ms = ended_ms;
    s->jobs.jobs = calloc(1, sizeof *s->jobs.jobs);
    s->jobs.jobs[0] = job;
    s->jobs.count = 1;
    return s;
}

static void check(enum job_state end, const char *target, uint64_t generation, int64_t now,
                  bool wanted)
{
    struct cluster_state *s = state_with(end, 2000);
    assert_int_equal(resilver_job_wanted(s, target, generation, now), wanted);
    job_unref(s->jobs.jobs[0]);
    free(s->jobs.jobs);
    state_unref(s);
}

static void test_one_at_a_time(void **state)
{
    (void)state;
    check(JOB_QUEUED, "t1", 7, 900000, false);
    check(JOB_RUNNING, "t1", 8, 900000, false);
    check(JOB_STOPPING, "t1", 8, 900000, false);
    check(JOB_RUNNING, "t2", 7, 900000, true);
}

static void test_what_was_aborted_stays_so_until_there_is_a_change(void **state)
{
    (void)state;
    check(JOB_ABORTED, "t1", 7, 900000, false);
    check(JOB_ABORTED, "t1", 8, 2001, true);
}

static void test_a_failed_one_is_tried_again_later(void **state)
{
    (void)state;
    check(JOB_FAILED, "t1", 7, 2000 + RESILVER_RETRY_MS - 1, false);
    check(JOB_FAILED, "t1", 7, 2000 + RESILVER_RETRY_MS, true);
    check(JOB_FAILED, "t1", 8, 2001, true);
    check(JOB_FINISHED, "t1", 7, 2001, false); /* its end has not reached the keepalive */
}

/* Its end was written down by a primary whose clock is ahead of this one's. */
static void test_an_end_in_the_future_holds_up_nothing(void **state)
{
    (void)state;
    check(JOB_FAILED, "t1", 7, 2000 - 3600000, true);
    check(JOB_FINISHED, "t1", 7, 1999, true);
    check(JOB_ABORTED, "t1", 7, 2000 - 3600000, false);
}

static void test_a_job_is_of_one_target(void **state)
{
    (void)state;
    struct job *job = resilver_job_make("t3", 9, 1000);
    assert_true(standing_is(job, resilver_kind.name));
    assert_int_equal(job->participant_count, 1);
    assert_string_equal(job->participants[0], "t3");
    json_t *doc = job_to_json(job);
    struct job *back;
    assert_int_equal(job_from_json(doc, &back, NULL), 0);
    json_decref(doc);
    job_unref(back);
    job_unref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_at_a_time),
        cmocka_unit_test(test_what_was_aborted_stays_so_until_there_is_a_change),
        cmocka_unit_test(test_a_failed_one_is_tried_again_later),
        cmocka_unit_test(test_an_end_in_the_future_holds_up_nothing),
        cmocka_unit_test(test_a_job_is_of_one_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
