/* The driver of jobs against three fake targets and a fake metastore (jobs_world.h). */
#include "proxy/jobs/jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "proxy/testing/jobs_world.h"

static void test_runs_to_the_end(void **state)
{
    struct world *w = *state;
    world_add_job(w, "srt-1");
    world_ticks(w, 6);
    const struct job *job = world_job(w, "srt-1");
    assert_int_equal(job->state, JOB_FINISHED);
    assert_int_equal(job->ended_ms, 1000);
    assert_int_equal(json_object_size(job->report), TARGETS);
    assert_int_equal(w->commit_orders_before_decision, 0);
    _cleanup_json_ json_t *live = jobs_driver_reports(w->driver, "srt-1");
    world_ticks(w, 1);
    _cleanup_json_ json_t *after = jobs_driver_reports(w->driver, "srt-1");
    assert_int_equal(json_object_size(after), 0);
}

static void news(struct world *w, const char *job_id)
{
    for (size_t i = 0; i < TARGETS; i++) {
        char id[3] = {'t', (char)('1' + i), '\0'};
        jobs_driver_moved(w->driver, job_id, id);
    }
}

/* One tick begins it; what the targets say of themselves does the rest. */
static void test_news_need_no_tick(void **state)
{
    struct world *w = *state;
    world_add_job(w, "srt-1");
    world_ticks(w, 1);
    for (int i = 0; i < 6 && world_job(w, "srt-1")->state != JOB_FINISHED; i++) {
        news(w, "srt-1");
        world_deliver(w);
    }
    assert_int_equal(world_job(w, "srt-1")->state, JOB_FINISHED);
    assert_int_equal(w->commit_orders_before_decision, 0);
}

/* The answer that is under way may have been given before. */
static void test_news_that_cross_an_answer_ask_again(void **state)
{
    struct world *w = *state;
    world_add_job(w, "srt-1");
    jobs_driver_tick(w->driver);
    jobs_driver_moved(w->driver, "srt-1", "t1");
    jobs_driver_moved(w->driver, "srt-1", "t1");
    assert_int_equal(w->sent[0], 1);
    world_deliver(w);
    assert_int_equal(w->sent[0], w->sent[1] + 1);
    jobs_driver_moved(w->driver, "srt-404", "t1");
    jobs_driver_moved(w->driver, "srt-1", "t404");
    assert_int_equal(w->event_count, 0);
}

/* Each step looks at all targets. */
static void test_answers_without_news_take_no_step(void **state)
{
    struct world *w = *state;
    w->commits_slowly = true;
    world_add_job(w, "srt-1");
    world_ticks(w, 8);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_COMMITTING);
    world_steps = 0;
    world_ticks(w, 5);
    assert_int_equal(world_steps, 5); /* those of the ticks */
}

static void test_refused_commits_are_tried_again(void **state)
{
    struct world *w = *state;
    world_add_job(w, "srt-1");
    w->commits_refused = 2;
    world_ticks(w, 12);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_FINISHED);
}

/* The targets have more to tell than the metastore takes: the job ends all the same, with what
 * there is room for. */
static void test_an_end_that_is_too_large_is_made_with_less(void **state)
{
    static const struct {
        size_t max, reports, warning;
    } rows[] = {{3000, TARGETS, 1}, {600, 0, 0}};
    struct world *w = *state;
    w->tells = 2500;
    for (size_t i = 0; i < 2; i++) {
        const char id[] = {'s', 'r', 't', '-', (char)('0' + i), '\0'};
        for (size_t k = 0; k < TARGETS; k++)
            w->targets[k] = XACTION_NONE;
        w->fails[0] = i == 1 ? "shard_corrupt" : NULL;
        w->job_bytes_max = rows[i].max;
        world_add_job(w, id);
        world_ticks(w, 12);
        const struct job *job = world_job(w, id);
        assert_int_equal(job->state, i == 1 ? JOB_FAILED : JOB_FINISHED);
        assert_int_equal(json_object_size(job->report), rows[i].reports);
        const json_t *status = json_object_get(json_object_get(job->report, "t1"), "status");
        assert_int_equal(json_array_size(json_object_get(status, "warnings")), rows[i].warning);
    }
}

static void test_failure_names_its_cause(void **state)
{
    struct world *w = *state;
    w->fails[1] = "shard_corrupt";
    world_add_job(w, "srt-1");
    world_ticks(w, 8);
    const struct job *job = world_job(w, "srt-1");
    assert_int_equal(job->state, JOB_FAILED);
    assert_string_equal(job->error_code, "shard_corrupt");
    assert_string_equal(job->error_message, "t2: bad");
    for (size_t i = 0; i < TARGETS; i++)
        assert_int_equal(w->targets[i], XACTION_STOPPED);
}

/* t1 reports that t2 cut its stream, before t2 has said why. */
static void run_into_an_echo(struct world *w)
{
    w->fails[0] = "network_error";
    w->fails[1] = "shard_corrupt";
    world_add_job(w, "srt-1");
    for (int i = 0; w->targets[1] != XACTION_RUNNING; i++) {
        assert_true(i < 8);
        world_ticks(w, 1);
    }
    w->deaf[1] = true;
    world_ticks(w, 2);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_RUNNING);
}

static void test_an_echo_gives_way_to_its_cause(void **state)
{
    struct world *w = *state;
    run_into_an_echo(w);
    w->deaf[1] = false;
    world_ticks(w, 6);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_FAILED);
    assert_string_equal(world_job(w, "srt-1")->error_message, "t2: bad");
}

static void test_an_echo_without_a_cause_makes_the_job_begin_again(void **state)
{
    struct world *w = *state;
    run_into_an_echo(w);
    world_ticks(w, 6);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_QUEUED);
    assert_int_equal(world_job(w, "srt-1")->attempt, 1);
}

static void test_unfit_job_is_stopped(void **state)
{
    struct world *w = *state;
    w->deaf[0] = true;
    world_add_job(w, "srt-1");
    world_ticks(w, 2);
    world_unfit = "the output bucket was destroyed";
    w->deaf[0] = false;
    world_ticks(w, 6);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_FAILED);
    assert_string_equal(world_job(w, "srt-1")->error_code, "bucket_not_found");
}

/* What a restarted target does not know any more is still in the job's report. */
static void test_reports_outlive_a_restart(void **state)
{
    struct world *w = *state;
    world_add_job(w, "srt-1");
    w->commits_slowly = true;
    world_ticks(w, 6);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_COMMITTING);
    w->forgetful = true;
    w->commits_slowly = false;
    world_ticks(w, 4);
    const struct job *job = world_job(w, "srt-1");
    assert_int_equal(job->state, JOB_FINISHED);
    for (int i = 0; i < TARGETS; i++) {
        char id[] = {'t', (char)('1' + i), '\0'};
        const json_t *report = json_object_get(job->report, id);
        assert_string_equal(json_string_value(json_object_get(report, "state")), "committed");
        assert_int_equal(
            json_integer_value(json_object_get(json_object_get(report, "status"), "number")), i);
    }
}

/* A target that was taken out of the map after the decision will not come back to commit. */
static void test_removed_target_does_not_hold_the_commit(void **state)
{
    struct world *w = *state;
    world_add_job(w, "srt-1");
    w->commits_slowly = true;
    world_ticks(w, 6);
    w->deaf[2] = true;
    w->commits_slowly = false;
    world_set_node(w, "t3", NODE_UNREACHABLE);
    world_ticks(w, 3);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_COMMITTING);
    world_apply(w, &(struct command){.kind = CMD_NODE_REMOVE, .name = "t3"});
    world_ticks(w, 3);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_FINISHED);
}

/* A sort is waited with: it cannot do without. */
static void test_a_sort_waits_for_a_target_that_is_away(void **state)
{
    struct world *w = *state;
    w->deaf[2] = true;
    world_add_job(w, "srt-1");
    world_set_node(w, "t3", NODE_UNREACHABLE);
    world_ticks(w, 8);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_QUEUED);
    w->deaf[2] = false;
    world_set_node(w, "t3", NODE_ACTIVE);
    world_ticks(w, 12);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_FINISHED);
    assert_int_equal(world_job(w, "srt-1")->attempt, 0);
}

static void test_a_sort_goes_on_without_a_target(void **state)
{
    struct world *w = *state;
    w->deaf[2] = true;
    world_spared = 1;
    world_add_job(w, "srt-1");
    world_set_node(w, "t3", NODE_UNREACHABLE);
    world_ticks(w, 3);
    assert_int_equal(world_job(w, "srt-1")->without_count, 0);
    world_ticks(w, 12);
    const struct job *job = world_job(w, "srt-1");
    assert_int_equal(job->state, JOB_FINISHED);
    assert_int_equal(job->without_count, 1);
    assert_string_equal(job->without[0], "t3");
    assert_int_equal(job->attempt, 1);
    assert_int_not_equal(job->started_ms, 0);
    assert_null(json_object_get(job->report, "t3"));
    assert_non_null(json_object_get(job->report, "t2"));
}

/* A job of no target, which ends as soon as it is looked at. */
static void add_ending_job(struct world *w, const char *id)
{
    struct job *job = job_new(id, "sort");
    job->spec = json_object();
    job->plan = json_object();
    world_apply(w, &(struct command){.kind = CMD_JOB_CREATE, .job = job});
    struct job *stopping = job_copy(job);
    stopping->state = JOB_STOPPING;
    stopping->stop_as = JOB_ABORTED;
    world_apply(w, &(struct command){.kind = CMD_JOB_UPDATE, .name = id, .job = stopping});
    job_unref(stopping);
    job_unref(job);
}

/* Ends of others, which wake the driver between its world_ticks, make no time pass. */
static void test_others_do_not_shorten_the_wait(void **state)
{
    struct world *w = *state;
    w->deaf[2] = true;
    world_spared = 1;
    world_add_job(w, "srt-1");
    world_set_node(w, "t3", NODE_UNREACHABLE);
    world_ticks(w, 1);
    for (int i = 2; i < 9; i++) {
        const char id[] = {'s', 'r', 't', '-', (char)('0' + i), '\0'};
        add_ending_job(w, id);
    }
    world_ticks(w, 2);
    for (size_t i = 1; i < w->state->jobs.count; i++)
        assert_int_equal(w->state->jobs.jobs[i]->state, JOB_ABORTED);
    assert_int_equal(world_job(w, "srt-1")->without_count, 0);
    world_ticks(w, 1);
    assert_int_equal(world_job(w, "srt-1")->without_count, 1);
}

/* Two at once are more than it can do without: it waits, and goes on when one is back. */
static void test_a_sort_does_not_go_on_without_too_many(void **state)
{
    struct world *w = *state;
    world_spared = 1;
    for (size_t i = 1; i < 3; i++)
        w->deaf[i] = true;
    world_set_node(w, "t2", NODE_UNREACHABLE);
    world_set_node(w, "t3", NODE_UNREACHABLE);
    world_add_job(w, "srt-1");
    world_ticks(w, 20);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_QUEUED);
    assert_int_equal(world_job(w, "srt-1")->without_count, 0);
    w->deaf[1] = false;
    world_set_node(w, "t2", NODE_ACTIVE);
    world_ticks(w, 16);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_FINISHED);
    assert_string_equal(world_job(w, "srt-1")->without[0], "t3");
}

/* t2 restarts while all run: another attempt, to the end. */
static void test_a_sort_begins_again(void **state)
{
    struct world *w = *state;
    world_add_job(w, "srt-1");
    for (int i = 0; w->targets[1] != XACTION_RUNNING; i++) {
        assert_true(i < 8);
        world_ticks(w, 1);
    }
    w->targets[1] = XACTION_NONE;
    for (int i = 0; world_job(w, "srt-1")->attempt == 0; i++) {
        assert_true(i < 8);
        world_ticks(w, 1);
    }
    world_ticks(w, 12);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_FINISHED);
    assert_int_equal(world_job(w, "srt-1")->attempt, 1);
}

static void test_after_the_decision_the_job_waits(void **state)
{
    struct world *w = *state;
    world_add_job(w, "srt-1");
    w->commits_slowly = true;
    world_ticks(w, 6);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_COMMITTING);
    w->deaf[0] = true;
    world_set_node(w, "t1", NODE_UNREACHABLE);
    world_ticks(w, 5);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_COMMITTING);
    w->deaf[0] = w->commits_slowly = false;
    world_set_node(w, "t1", NODE_ACTIVE);
    world_ticks(w, 5);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_FINISHED);
}

/* It keeps its part: it is not one that the job goes on without. */
static void test_after_the_decision_it_does_not_wait_for_who_is_spared(void **state)
{
    struct world *w = *state;
    world_spared = 1;
    world_add_job(w, "srt-1");
    w->commits_slowly = true;
    world_ticks(w, 6);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_COMMITTING);
    w->deaf[0] = true;
    world_set_node(w, "t1", NODE_UNREACHABLE);
    world_ticks(w, 8);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_COMMITTING);
    w->commits_slowly = false;
    world_ticks(w, 5);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_FINISHED);
    assert_int_equal(world_job(w, "srt-1")->without_count, 0);
}

static void test_new_target_fails_the_job(void **state)
{
    struct world *w = *state;
    w->deaf[0] = true;
    world_add_job(w, "srt-1");
    world_ticks(w, 2);
    world_add_target(w, TARGETS);
    w->deaf[0] = false;
    world_ticks(w, 6);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_FAILED);
    assert_string_equal(world_job(w, "srt-1")->error_code, "stale_map");
}

/* So many run at once; one that waits for a target after the decision is not one of them. */
static void test_jobs_wait_for_their_turn(void **state)
{
    struct world *w = *state;
    w->deaf[0] = true;
    world_add_job(w, "srt-1");
    world_add_job(w, "srt-2");
    world_add_job(w, "srt-3");
    world_ticks(w, 3);
    for (int i = 1; i <= 3; i++) {
        const char id[] = {'s', 'r', 't', '-', (char)('0' + i), '\0'};
        _cleanup_json_ json_t *reports = jobs_driver_reports(w->driver, id);
        assert_int_equal(json_object_size(reports), i < 3 ? 2 : 0);
    }
    w->deaf[0] = false;
    w->commits_slowly = true;
    world_ticks(w, 8);
    assert_int_equal(world_job(w, "srt-1")->state, JOB_COMMITTING);
    assert_int_not_equal(world_job(w, "srt-3")->state, JOB_QUEUED);
}

/* A sort's targets may wait for the repair. */
static void test_a_repair_waits_for_no_turn(void **state)
{
    struct world *w = *state;
    w->deaf[0] = true;
    world_add_job(w, "srt-1");
    world_add_job(w, "srt-2");
    struct job *job = job_copy(world_job(w, "srt-1"));
    free(job->id);
    free(job->kind);
    job->id = xstrdup("rpr-1");
    job->kind = xstrdup("repair");
    json_decref(job->spec);
    job->spec = json_object();
    job->state = JOB_QUEUED;
    world_apply(w, &(struct command){.kind = CMD_JOB_CREATE, .job = job});
    job_unref(job);
    world_ticks(w, 3);
    _cleanup_json_ json_t *reports = jobs_driver_reports(w->driver, "rpr-1");
    assert_int_equal(json_object_size(reports), 2);
}

/* A few jobs with much to tell are kept no longer than many with little. */
static void test_long_documents_are_forgotten(void **state)
{
    struct world *w = *state;
    w->tells = 2500;
    for (int i = 0; i < 2; i++) {
        const char id[] = {'s', 'r', 't', '-', (char)('0' + i), '\0'};
        for (size_t k = 0; k < TARGETS; k++)
            w->targets[k] = XACTION_NONE;
        w->now_ms += 10;
        world_add_job(w, id);
        world_ticks(w, 8);
    }
    assert_int_equal(w->state->jobs.count, 0);
}

static void test_ended_jobs_are_forgotten(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 4; i++) {
        char id[8];
        snprintf(id, sizeof id, "srt-%d", i);
        for (size_t k = 0; k < TARGETS; k++)
            w->targets[k] = XACTION_NONE;
        w->now_ms += 10;
        world_add_job(w, id);
        world_ticks(w, 8);
    }
    assert_null(jobs_find(&w->state->jobs, "srt-0"));
    assert_null(jobs_find(&w->state->jobs, "srt-1"));
    assert_non_null(jobs_find(&w->state->jobs, "srt-2"));
    assert_non_null(jobs_find(&w->state->jobs, "srt-3"));
    w->now_ms += 20000;
    world_ticks(w, 3);
    assert_int_equal(w->state->jobs.count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_runs_to_the_end),
        TEST(test_news_need_no_tick),
        TEST(test_news_that_cross_an_answer_ask_again),
        TEST(test_answers_without_news_take_no_step),
        TEST(test_refused_commits_are_tried_again),
        TEST(test_an_end_that_is_too_large_is_made_with_less),
        TEST(test_failure_names_its_cause),
        TEST(test_a_sort_waits_for_a_target_that_is_away),
        TEST(test_a_sort_goes_on_without_a_target),
        TEST(test_others_do_not_shorten_the_wait),
        TEST(test_a_sort_does_not_go_on_without_too_many),
        TEST(test_a_sort_begins_again),
        TEST(test_after_the_decision_the_job_waits),
        TEST(test_after_the_decision_it_does_not_wait_for_who_is_spared),
        TEST(test_an_echo_gives_way_to_its_cause),
        TEST(test_an_echo_without_a_cause_makes_the_job_begin_again),
        TEST(test_unfit_job_is_stopped),
        TEST(test_reports_outlive_a_restart),
        TEST(test_removed_target_does_not_hold_the_commit),
        TEST(test_new_target_fails_the_job),
        TEST(test_jobs_wait_for_their_turn),
        TEST(test_a_repair_waits_for_no_turn),
        TEST(test_long_documents_are_forgotten),
        TEST(test_ended_jobs_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
