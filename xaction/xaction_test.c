/* The registry's life cycle, with a kind whose steps the test opens and closes one by one. */
#include "xaction/xaction.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/documents/state.h"
#include "common/fault.h"
#include "common/jsonx.h"
#include "common/log.h"
#include "common/rng.h"
#include "xaction/testing/fake_kind.h"

struct fixture {
    struct xactions *x;
    struct job *job;
};

static int setup(void **state)
{
    static struct fixture f;
    static int host;
    fake_reset();
    log_set_level(LOG_OFF);
    f.x = xactions_new(fake_kinds, &host, fake_moved);
    f.job = job_new("srt-1", "sort");
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    xactions_free(f->x);
    job_unref(f->job);
    return 0;
}

static void order(struct fixture *f, enum xaction_order o)
{
    struct error err = ERROR_INIT;
    assert_int_equal(xactions_order(f->x, o, f->job, &err), 0);
}

static enum xaction_state state_of(struct fixture *f)
{
    _cleanup_json_ json_t *report = xactions_report(f->x, f->job->id);
    enum xaction_state s;
    assert_int_equal(
        xaction_state_from_name(json_string_value(json_object_get(report, "state")), &s), 0);
    return s;
}

/* Waits by yielding: the registry has no other observer than its reports. */
static void wait_for(struct fixture *f, enum xaction_state wanted)
{
    while (state_of(f) != wanted)
        sched_yield();
}

static void make_ready(struct fixture *f)
{
    order(f, XACTION_PREPARE);
    wait_for(f, XACTION_READY);
}

static void assert_error(struct fixture *f, const char *code, const char *message)
{
    _cleanup_json_ json_t *report = xactions_report(f->x, f->job->id);
    const json_t *error = json_object_get(report, "error");
    assert_string_equal(json_string_value(json_object_get(error, "code")), code);
    if (message != NULL)
        assert_string_equal(json_string_value(json_object_get(error, "message")), message);
}

static void test_whole_life(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(state_of(f), XACTION_NONE);
    order(f, XACTION_PREPARE);
    order(f, XACTION_PREPARE);
    wait_for(f, XACTION_READY);
    order(f, XACTION_PREPARE);
    order(f, XACTION_RUN);
    order(f, XACTION_RUN);
    fake_let_run();
    wait_for(f, XACTION_PREPARED);
    order(f, XACTION_COMMIT);
    wait_for(f, XACTION_COMMITTED);
    order(f, XACTION_COMMIT);
    assert_int_equal(fake.prepares, 1);
    assert_int_equal(fake.runs, 1);
    assert_int_equal(fake.commits, 1);
    assert_int_equal(fake_count(&fake.moves), 3); /* ready, prepared, committed */
    while (fake_count(&fake.frees) == 0)
        sched_yield();
    _cleanup_json_ json_t *report = xactions_report(f->x, f->job->id);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(report, "status"), "done")),
                     42);
    assert_null(json_object_get(report, "error"));
}

static void assert_no_error(struct fixture *f)
{
    _cleanup_json_ json_t *report = xactions_report(f->x, f->job->id);
    assert_null(json_object_get(report, "error"));
}

/* Beside a success an error says nothing. */
static void test_a_success_has_no_error(void **state)
{
    struct fixture *f = *state;
    fake.leaves_error = true;
    make_ready(f);
    assert_no_error(f);
    order(f, XACTION_RUN);
    fake_let_run();
    wait_for(f, XACTION_PREPARED);
    assert_no_error(f);
    order(f, XACTION_COMMIT);
    wait_for(f, XACTION_COMMITTED);
    assert_no_error(f);
}

/* Orders and questions do not wait for a slow disk; nothing of a job that is being prepared can be
 * seen or held. */
static void test_prepare_is_no_burden(void **state)
{
    struct fixture *f = *state;
    fake.may_prepare = false;
    order(f, XACTION_PREPARE);
    assert_int_equal(state_of(f), XACTION_PREPARING);
    _cleanup_json_ json_t *report = xactions_report(f->x, f->job->id);
    assert_null(json_object_get(report, "status"));
    assert_null(xactions_hold(f->x, f->job->id, "sort"));
    struct error err = ERROR_INIT;
    assert_int_equal(xactions_order(f->x, XACTION_RUN, f->job, &err), E_JOB_STATE);
    assert_int_equal(xactions_order(f->x, XACTION_COMMIT, f->job, &err), E_JOB_STATE);
    fake_let_prepare();
    wait_for(f, XACTION_READY);
}

static void test_stop_while_preparing(void **state)
{
    struct fixture *f = *state;
    fake.may_prepare = false;
    order(f, XACTION_PREPARE);
    order(f, XACTION_STOP);
    assert_int_equal(fake_count(&fake.undos), 0);
    fake_let_prepare();
    wait_for(f, XACTION_STOPPED);
    assert_int_equal(fake_count(&fake.undos), 1);
    assert_int_equal(fake_count(&fake.stops), 0); /* that is for run() */
    assert_int_equal(fake_count(&fake.runs), 0);
}

/* What it had made before it failed has to go. */
static void test_failed_prepare_is_undone(void **state)
{
    struct fixture *f = *state;
    fake.prepare_code = E_NO_SPACE;
    order(f, XACTION_PREPARE);
    wait_for(f, XACTION_FAILED);
    assert_error(f, "no_space", "prepare");
    order(f, XACTION_STOP);
    wait_for(f, XACTION_STOPPED);
    assert_int_equal(fake_count(&fake.undos), 1);
    assert_error(f, "no_space", "prepare");
}

static void test_stop_interrupts_the_run(void **state)
{
    struct fixture *f = *state;
    make_ready(f);
    order(f, XACTION_RUN);
    order(f, XACTION_STOP);
    wait_for(f, XACTION_STOPPED);
    order(f, XACTION_STOP);
    assert_int_equal(fake_count(&fake.undos), 1);
    while (fake_count(&fake.frees) == 0)
        sched_yield();
    struct error err = ERROR_INIT;
    assert_int_equal(xactions_order(f->x, XACTION_PREPARE, f->job, &err), E_JOB_STATE);
    assert_int_equal(xactions_order(f->x, XACTION_COMMIT, f->job, &err), E_JOB_STATE);
}

static void test_failed_run_waits_for_stop(void **state)
{
    struct fixture *f = *state;
    fake.run_code = E_SHARD_CORRUPT;
    make_ready(f);
    order(f, XACTION_RUN);
    fake_let_run();
    wait_for(f, XACTION_FAILED);
    assert_int_equal(fake_count(&fake.undos), 0);
    struct error err = ERROR_INIT;
    assert_int_equal(xactions_order(f->x, XACTION_COMMIT, f->job, &err), E_JOB_STATE);
    order(f, XACTION_STOP);
    wait_for(f, XACTION_STOPPED);
    assert_int_equal(fake_count(&fake.undos), 1);
    assert_error(f, "shard_corrupt", "run");
}

/* The names of files are bytes; the report is JSON. */
static void test_errors_of_any_bytes(void **state)
{
    struct fixture *f = *state;
    fake.run_code = E_DUPLICATE_RECORD;
    fake.message = "'na\xefve'";
    make_ready(f);
    order(f, XACTION_RUN);
    fake_let_run();
    wait_for(f, XACTION_FAILED);
    assert_error(f, "duplicate_record", "'na\\xefve'");
}

static void test_failed_commit_is_tried_again(void **state)
{
    struct fixture *f = *state;
    fake.commit_code = E_IO;
    fake.bad_tries = 2;
    make_ready(f);
    order(f, XACTION_RUN);
    fake_let_run();
    wait_for(f, XACTION_PREPARED);
    order(f, XACTION_COMMIT);
    while (fake_count(&fake.commits) == 0)
        sched_yield();
    struct error err = ERROR_INIT;
    assert_int_equal(xactions_order(f->x, XACTION_STOP, f->job, &err), E_JOB_STATE);
    wait_for(f, XACTION_COMMITTED);
    assert_int_equal(fake_count(&fake.commits), 3);
    _cleanup_json_ json_t *report = xactions_report(f->x, f->job->id);
    assert_null(json_object_get(report, "error"));
}

static void test_failed_undo_is_tried_again(void **state)
{
    struct fixture *f = *state;
    fake.undo_code = E_IO;
    make_ready(f);
    order(f, XACTION_STOP);
    wait_for(f, XACTION_STOPPED);
    assert_int_equal(fake_count(&fake.undos), 2);
}

/* An order that fails for want of a thread has done nothing: given again, it is carried out. */
static void assert_given_again(struct fixture *f, enum xaction_order o, enum xaction_state then)
{
    struct error err = ERROR_INIT;
    assert_int_equal(fault_configure("thread.start=EAGAIN", NULL), 0);
    assert_int_not_equal(xactions_order(f->x, o, f->job, &err), 0);
    assert_non_null(strstr(err.message, "srt-1"));
    assert_int_equal(fault_configure("", NULL), 0);
    order(f, o);
    wait_for(f, then);
}

static void test_without_a_thread_nothing_is_done(void **state)
{
    struct fixture *f = *state;
    assert_given_again(f, XACTION_PREPARE, XACTION_READY);
    job_unref(f->job);
    f->job = job_new("srt-1", "sort");
    f->job->attempt = 1;
    assert_given_again(f, XACTION_PREPARE, XACTION_READY);
    while (fake_count(&fake.prepares) < 2)
        sched_yield();
    assert_given_again(f, XACTION_STOP, XACTION_STOPPED);
}

/* A node that stops does not wait for a disk that may never get well, and undoes nothing more. */
static void test_the_end_ends_the_tries(void **state)
{
    struct fixture *f = *state;
    fake.undo_code = E_IO;
    fake.bad_tries = 1000;
    make_ready(f);
    order(f, XACTION_STOP);
    while (fake_count(&fake.undos) < 3)
        sched_yield();
    assert_error(f, "io_error", "not yet");
    xactions_free(f->x);
    f->x = NULL;
    assert_true(fake.undos >= 3 && fake.bad_tries > 0); /* a busy machine may come to some more */
    assert_int_equal(fake.frees, 1);
}

/* After a restart the node knows nothing: commit and stop work from the disks. */
static void test_orders_after_restart(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    assert_int_equal(xactions_order(f->x, XACTION_RUN, f->job, &err), E_JOB_STATE);
    assert_int_equal(state_of(f), XACTION_NONE);
    order(f, XACTION_COMMIT);
    wait_for(f, XACTION_COMMITTED);
    assert_int_equal(fake.prepares, 0);
    assert_int_equal(fake.runs, 0);
    assert_int_equal(fake.commits, 1);
}

static void test_stop_after_restart(void **state)
{
    struct fixture *f = *state;
    order(f, XACTION_STOP);
    wait_for(f, XACTION_STOPPED);
    assert_int_equal(fake.prepares, 0);
    assert_int_equal(fake.undos, 1);
}

static void test_job_that_cannot_be_opened(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    fake.open_code = E_SPEC;
    assert_int_equal(xactions_order(f->x, XACTION_COMMIT, f->job, &err), E_SPEC);
    assert_int_equal(state_of(f), XACTION_NONE); /* it may be opened another time */
    order(f, XACTION_PREPARE);
    assert_int_equal(state_of(f), XACTION_FAILED);
    assert_error(f, "invalid_spec", "open");
    order(f, XACTION_STOP);
    assert_int_equal(state_of(f), XACTION_STOPPED);
    assert_int_equal(fake.undos, 0);
}

static void test_unknown_kind_fails(void **state)
{
    struct fixture *f = *state;
    struct job *other = job_new("x-1", "juggle");
    struct job *mine = f->job;
    f->job = other;
    order(f, XACTION_PREPARE);
    assert_int_equal(state_of(f), XACTION_FAILED);
    assert_error(f, "not_supported", NULL);
    assert_null(xactions_hold(f->x, "x-1", "juggle"));
    order(f, XACTION_STOP);
    assert_int_equal(state_of(f), XACTION_STOPPED);
    f->job = mine;
    job_unref(other);
}

/* A peer that is frozen in the middle of a stream holds up nothing but the memory. */
static void test_only_the_memory_waits_for_holders(void **state)
{
    struct fixture *f = *state;
    make_ready(f);
    assert_non_null(xactions_hold(f->x, f->job->id, "sort"));
    assert_non_null(xactions_hold(f->x, f->job->id, "sort"));
    assert_null(xactions_hold(f->x, "srt-2", "sort"));
    assert_null(xactions_hold(f->x, f->job->id, "juggle"));
    xactions_release(f->x, f->job->id);
    order(f, XACTION_STOP);
    assert_null(xactions_hold(f->x, f->job->id, "sort"));
    wait_for(f, XACTION_STOPPED);
    assert_int_equal(fake_count(&fake.undos), 1);
    assert_int_equal(fake_count(&fake.frees), 0);
    const struct jobs none = {0};
    xactions_settle(f->x, &none, "t1");
    assert_int_equal(state_of(f), XACTION_STOPPED);
    xactions_release(f->x, f->job->id);
    while (state_of(f) != XACTION_NONE) {
        xactions_settle(f->x, &none, "t1");
        sched_yield();
    }
    assert_int_equal(fake_count(&fake.frees), 1);
}

/* Documents in which the job is in this state. */
static const struct jobs *jobs_in(struct fixture *f, enum job_state state)
{
    static struct jobs jobs;
    f->job->state = state;
    jobs = (struct jobs){.count = 1, .jobs = &f->job};
    return &jobs;
}

static void settle_until_gone(struct fixture *f, const struct jobs *jobs)
{
    while (state_of(f) != XACTION_NONE) {
        xactions_settle(f->x, jobs, "t1");
        sched_yield();
    }
}

static void test_settling_leaves_what_has_not_ended(void **state)
{
    struct fixture *f = *state;
    make_ready(f);
    static const enum job_state going[] = {JOB_QUEUED, JOB_RUNNING, JOB_COMMITTING, JOB_STOPPING};
    for (size_t i = 0; i < sizeof going / sizeof *going; i++) {
        xactions_settle(f->x, jobs_in(f, going[i]), "t1");
        assert_int_equal(state_of(f), XACTION_READY);
    }
    order(f, XACTION_STOP);
    wait_for(f, XACTION_STOPPED);
    xactions_settle(f->x, jobs_in(f, JOB_STOPPING), "t1"); /* the primary may still ask */
    assert_int_equal(state_of(f), XACTION_STOPPED);
    settle_until_gone(f, jobs_in(f, JOB_ABORTED));
    assert_int_equal(fake.frees, 1);
}

static void test_settling_stops_what_has_failed_or_is_forgotten(void **state)
{
    struct fixture *f = *state;
    const struct jobs none = {0};
    make_ready(f);
    order(f, XACTION_RUN);
    settle_until_gone(f, jobs_in(f, JOB_FAILED));
    assert_int_equal(fake.undos, 1);
    fake.open_code = E_SPEC;
    order(f, XACTION_PREPARE);
    settle_until_gone(f, &none);
    assert_int_equal(fake.undos, 1);
}

/* A target that was taken for lost after the decision makes its part visible all the same. */
static void test_settling_commits_what_has_finished(void **state)
{
    struct fixture *f = *state;
    make_ready(f);
    order(f, XACTION_RUN);
    fake_let_run();
    wait_for(f, XACTION_PREPARED);
    settle_until_gone(f, jobs_in(f, JOB_FINISHED));
    assert_int_equal(fake.commits, 1);
    assert_int_equal(fake.undos, 0);
}

static void test_closing_refuses(void **state)
{
    struct fixture *f = *state;
    make_ready(f);
    order(f, XACTION_RUN);
    xactions_close(f->x);
    assert_int_equal(fake_count(&fake.stops), 1);
    for (int i = 0; i < 1000; i++) { /* the job's thread comes to its end meanwhile */
        assert_int_equal(state_of(f), XACTION_RUNNING);
        sched_yield();
    }
    assert_null(xactions_hold(f->x, f->job->id, "sort"));
    struct error err = ERROR_INIT;
    assert_int_equal(xactions_order(f->x, XACTION_STOP, f->job, &err), E_NOT_READY);
    xactions_free(f->x);
    f->x = NULL;
    assert_int_equal(fake.undos, 0); /* that is for the next start */
}

/* --- everything at once ----------------------------------------------------------------------- */

enum { ROBBERS = 4, ENOUGH = 20, JOBS = 5 };

struct robber {
    struct fixture *f;
    struct job **jobs;
    unsigned seed;
};

static void do_something(struct robber *r, struct rng *rng)
{
    const struct job *job = r->jobs[rng_below(rng, JOBS)];
    const struct jobs none = {0};
    switch (rng_below(rng, 7)) {
    case 0:
        json_decref(xactions_report(r->f->x, job->id));
        break;
    case 1:
        if (xactions_hold(r->f->x, job->id, "sort") != NULL)
            xactions_release(r->f->x, job->id);
        break;
    case 2:
        xactions_settle(r->f->x, &none, "t1");
        break;
    default:
        xactions_order(r->f->x, (enum xaction_order)rng_below(rng, 4), job, NULL);
        break;
    }
}

static void *robber_main(void *arg)
{
    struct robber *r = arg;
    struct rng rng;
    rng_seed(&rng, r->seed);
    while (fake_count(&fake.runs) < ENOUGH || fake_count(&fake.commits) < ENOUGH ||
           fake_count(&fake.undos) < ENOUGH || fake_count(&fake.frees) < ENOUGH) {
        do_something(r, &rng);
        sched_yield();
    }
    return NULL;
}

static void test_everything_at_once(void **state)
{
    struct fixture *f = *state;
    struct job *jobs[JOBS];
    pthread_t threads[ROBBERS];
    struct robber robbers[ROBBERS];
    fake.may_run = true;
    for (int i = 0; i < JOBS; i++) {
        char id[16];
        snprintf(id, sizeof id, "srt-%d", i);
        jobs[i] = job_new(id, "sort");
    }
    for (unsigned i = 0; i < ROBBERS; i++) {
        robbers[i] = (struct robber){.f = f, .jobs = jobs, .seed = i};
        assert_int_equal(pthread_create(&threads[i], NULL, robber_main, &robbers[i]), 0);
    }
    for (int i = 0; i < ROBBERS; i++)
        pthread_join(threads[i], NULL);
    xactions_free(f->x);
    f->x = NULL;
    for (int i = 0; i < JOBS; i++)
        job_unref(jobs[i]);
    assert_true(fake.frees >= ENOUGH);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_whole_life),
        TEST(test_a_success_has_no_error),
        TEST(test_prepare_is_no_burden),
        TEST(test_stop_while_preparing),
        TEST(test_failed_prepare_is_undone),
        TEST(test_stop_interrupts_the_run),
        TEST(test_failed_run_waits_for_stop),
        TEST(test_errors_of_any_bytes),
        TEST(test_failed_commit_is_tried_again),
        TEST(test_failed_undo_is_tried_again),
        TEST(test_without_a_thread_nothing_is_done),
        TEST(test_the_end_ends_the_tries),
        TEST(test_orders_after_restart),
        TEST(test_stop_after_restart),
        TEST(test_job_that_cannot_be_opened),
        TEST(test_unknown_kind_fails),
        TEST(test_only_the_memory_waits_for_holders),
        TEST(test_settling_leaves_what_has_not_ended),
        TEST(test_settling_stops_what_has_failed_or_is_forgotten),
        TEST(test_settling_commits_what_has_finished),
        TEST(test_closing_refuses),
        TEST(test_everything_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
