/* The driver of jobs against three fake targets and a fake metastore; time and delivery are the
 * test's.  Every callback is put into a queue, as a loop would. */
#include "proxy/jobs/jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"

enum { TARGETS = 3, EVENTS_MAX = 256 };

struct event {
    jobs_answer_fn *answered;
    void (*committed)(void *arg, const struct error *err);
    void *arg;
    json_t *report;
    struct error err;
};

struct world {
    const struct cluster_state *state;
    struct jobs_driver *driver;
    enum xaction_state targets[TARGETS];
    uint64_t attempts[TARGETS]; /* that they are at */
    bool deaf[TARGETS];         /* gets nothing, answers nothing */
    const char *fails[TARGETS]; /* with this code */
    size_t tells;               /* bytes of a warning in each report */
    bool forgetful;             /* reports have no status */
    bool commits_slowly;        /* a commit order does not get to its end */
    unsigned sent[TARGETS];     /* messages to it */
    unsigned commits_refused;   /* the next so many commits fail */
    size_t job_bytes_max;       /* the metastore takes no longer document; 0: any */
    unsigned commit_orders_before_decision;
    int64_t now_ms;
    struct event events[EVENTS_MAX];
    size_t event_count;
};

static const struct cluster_state *world_state(void *ctx)
{
    struct world *w = ctx;
    return state_ref(w->state);
}

static int64_t world_wall(void *ctx)
{
    struct world *w = ctx;
    return w->now_ms;
}

static void apply(struct world *w, const struct command *cmd)
{
    const struct cluster_state *next = NULL;
    struct error err = ERROR_INIT;
    if (command_apply(w->state, cmd, &next, &err) != 0)
        fail_msg("%s", err.message);
    state_unref(w->state);
    w->state = next;
}

static struct event *push(struct world *w)
{
    assert_true(w->event_count < EVENTS_MAX);
    struct event *e = &w->events[w->event_count++];
    *e = (struct event){0};
    return e;
}

static void world_commit(void *ctx, const struct command *cmd,
                         void (*done)(void *arg, const struct error *err), void *arg)
{
    struct world *w = ctx;
    struct event *e = push(w);
    e->committed = done;
    e->arg = arg;
    if (w->commits_refused > 0) {
        w->commits_refused--;
        error_set(&e->err, E_IO, "the disk of the metastore");
        return;
    }
    if (w->job_bytes_max > 0 && cmd->job != NULL && job_bytes(cmd->job) > w->job_bytes_max) {
        error_set(&e->err, E_TOO_LARGE, "the change is too large");
        return;
    }
    apply(w, cmd);
}

static void target_takes(struct world *w, size_t i, enum controller_order order, uint64_t attempt)
{
    enum xaction_state *s = &w->targets[i];
    bool begins = *s == XACTION_NONE || attempt > w->attempts[i];
    if (order == CONTROLLER_PREPARE && begins) {
        *s = XACTION_READY;
        w->attempts[i] = attempt;
    }
    if (order == CONTROLLER_RUN && *s == XACTION_READY)
        *s = XACTION_RUNNING;
    else if (order == CONTROLLER_COMMIT && !w->commits_slowly)
        *s = XACTION_COMMITTED;
    else if (order == CONTROLLER_STOP)
        *s = XACTION_STOPPED;
    else if (*s == XACTION_RUNNING) /* asked again: it has got on meanwhile */
        *s = w->fails[i] != NULL ? XACTION_FAILED : XACTION_PREPARED;
}

static void world_send(void *ctx, const struct node *target, enum controller_order order,
                       const struct job *job, jobs_answer_fn *done, void *arg)
{
    struct world *w = ctx;
    size_t i = (size_t)(target->id[1] - '1');
    struct event *e = push(w);
    w->sent[i]++;
    e->answered = done;
    e->arg = arg;
    if (order == CONTROLLER_COMMIT && job->state != JOB_COMMITTING)
        w->commit_orders_before_decision++;
    if (w->deaf[i])
        return;
    target_takes(w, i, order, job->attempt);
    e->report = json_pack("{s:s, s:{s:i}}", "state", xaction_state_name(w->targets[i]), "status",
                          "number", (int)i);
    if (w->targets[i] != XACTION_NONE)
        json_object_set_new(e->report, "attempt", json_integer((json_int_t)w->attempts[i]));
    if (w->tells > 0) {
        _cleanup_free_ char *text = xcalloc(w->tells + 1, 1);
        memset(text, 'x', w->tells);
        json_object_set_new(json_object_get(e->report, "status"), "warnings",
                            json_pack("[s]", text));
    }
    if (w->forgetful)
        json_object_del(e->report, "status");
    if (w->targets[i] == XACTION_FAILED)
        json_object_set_new(e->report, "error",
                            json_pack("{s:s, s:s}", "code", w->fails[i], "message", "bad"));
}

static const char *unfit; /* why the job's plan is no good any more */

static size_t spared; /* so many can be done without */

static size_t world_spares(const struct job *job, const struct cluster_state *s)
{
    (void)job, (void)s;
    return spared;
}

static int world_fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    (void)job, (void)s;
    return unfit != NULL ? error_set(err, E_BUCKET_NOT_FOUND, "%s", unfit) : 0;
}

static void deliver_all(struct world *w)
{
    struct error deaf;
    error_set(&deaf, E_TIMEOUT, "no answer");
    while (w->event_count > 0) {
        struct event e = w->events[0];
        w->event_count--;
        memmove(w->events, w->events + 1, w->event_count * sizeof *w->events);
        if (e.answered != NULL)
            e.answered(e.arg, e.report, e.report == NULL ? &deaf : NULL);
        else
            e.committed(e.arg, e.err.code != 0 ? &e.err : NULL);
        json_decref(e.report);
    }
}

static void add_target(struct world *w, size_t i)
{
    char id[3] = {'t', (char)('1' + i), '\0'};
    struct node n = {.id = id,
                     .role = NODE_TARGET,
                     .state = NODE_ACTIVE,
                     .public_url = (char *)"http://127.0.0.1:1",
                     .control_url = (char *)"http://127.0.0.1:2",
                     .data_url = (char *)"http://127.0.0.1:3",
                     .weight = 1024,
                     .boot = (char *)"b"};
    apply(w, &(struct command){.kind = CMD_NODE_JOIN, .node = &n});
}

static void set_node(struct world *w, const char *id, enum node_state state)
{
    apply(w, &(struct command){.kind = CMD_NODE_STATE, .name = id, .node_state = state});
}

static void add_job(struct world *w, const char *id)
{
    struct job *job = job_new(id, "sort");
    _cleanup_free_ char *names = xprintf("%s-%%d", id);
    job->spec = json_pack("{s:s}", "output_format", names);
    job->plan = json_object();
    job->participant_count = TARGETS;
    job->participants = xcalloc(TARGETS, sizeof *job->participants);
    for (size_t i = 0; i < TARGETS; i++)
        job->participants[i] = xprintf("t%zu", i + 1);
    apply(w, &(struct command){.kind = CMD_JOB_CREATE, .job = job});
    job_unref(job);
}

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    unfit = NULL;
    spared = 0;
    log_set_level(LOG_OFF);
    w->state = state_new("c-test");
    w->now_ms = 1000;
    for (size_t i = 0; i < TARGETS; i++)
        add_target(w, i);
    const struct jobs_env env = {.ctx = w,
                                 .state = world_state,
                                 .commit = world_commit,
                                 .send = world_send,
                                 .fits = world_fits,
                                 .spares = world_spares,
                                 .wall_ms = world_wall};
    const struct jobs_limits limits = {.keep_ms = 10000,
                                       .keep_max = 2,
                                       .keep_bytes = 4000,
                                       .running_max = 2,
                                       .attempts_max = 3,
                                       .away_ticks = 4};
    w->driver = jobs_driver_new(&env, &limits);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    deliver_all(w);
    jobs_driver_free(w->driver);
    state_unref(w->state);
    free(w);
    return 0;
}

static void ticks(struct world *w, int n)
{
    for (int i = 0; i < n; i++) {
        jobs_driver_tick(w->driver);
        deliver_all(w);
    }
}

static const struct job *job_of(const struct world *w, const char *id)
{
    const struct job *job = jobs_find(&w->state->jobs, id);
    assert_non_null(job);
    return job;
}

static void test_runs_to_the_end(void **state)
{
    struct world *w = *state;
    add_job(w, "srt-1");
    ticks(w, 6);
    const struct job *job = job_of(w, "srt-1");
    assert_int_equal(job->state, JOB_FINISHED);
    assert_int_equal(job->ended_ms, 1000);
    assert_int_equal(json_object_size(job->report), TARGETS);
    assert_int_equal(w->commit_orders_before_decision, 0);
    _cleanup_json_ json_t *live = jobs_driver_reports(w->driver, "srt-1");
    ticks(w, 1);
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
    add_job(w, "srt-1");
    ticks(w, 1);
    for (int i = 0; i < 6 && job_of(w, "srt-1")->state != JOB_FINISHED; i++) {
        news(w, "srt-1");
        deliver_all(w);
    }
    assert_int_equal(job_of(w, "srt-1")->state, JOB_FINISHED);
    assert_int_equal(w->commit_orders_before_decision, 0);
}

/* The answer that is under way may have been given before. */
static void test_news_that_cross_an_answer_ask_again(void **state)
{
    struct world *w = *state;
    add_job(w, "srt-1");
    jobs_driver_tick(w->driver);
    jobs_driver_moved(w->driver, "srt-1", "t1");
    jobs_driver_moved(w->driver, "srt-1", "t1");
    assert_int_equal(w->sent[0], 1);
    deliver_all(w);
    assert_int_equal(w->sent[0], w->sent[1] + 1);
    jobs_driver_moved(w->driver, "srt-404", "t1");
    jobs_driver_moved(w->driver, "srt-1", "t404");
    assert_int_equal(w->event_count, 0);
}

static void test_refused_commits_are_tried_again(void **state)
{
    struct world *w = *state;
    add_job(w, "srt-1");
    w->commits_refused = 2;
    ticks(w, 12);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_FINISHED);
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
        add_job(w, id);
        ticks(w, 12);
        const struct job *job = job_of(w, id);
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
    add_job(w, "srt-1");
    ticks(w, 8);
    const struct job *job = job_of(w, "srt-1");
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
    add_job(w, "srt-1");
    for (int i = 0; w->targets[1] != XACTION_RUNNING; i++) {
        assert_true(i < 8);
        ticks(w, 1);
    }
    w->deaf[1] = true;
    ticks(w, 2);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_RUNNING);
}

static void test_an_echo_gives_way_to_its_cause(void **state)
{
    struct world *w = *state;
    run_into_an_echo(w);
    w->deaf[1] = false;
    ticks(w, 6);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_FAILED);
    assert_string_equal(job_of(w, "srt-1")->error_message, "t2: bad");
}

static void test_an_echo_without_a_cause_makes_the_job_begin_again(void **state)
{
    struct world *w = *state;
    run_into_an_echo(w);
    ticks(w, 6);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_QUEUED);
    assert_int_equal(job_of(w, "srt-1")->attempt, 1);
}

static void test_unfit_job_is_stopped(void **state)
{
    struct world *w = *state;
    w->deaf[0] = true;
    add_job(w, "srt-1");
    ticks(w, 2);
    unfit = "the output bucket was destroyed";
    w->deaf[0] = false;
    ticks(w, 6);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_FAILED);
    assert_string_equal(job_of(w, "srt-1")->error_code, "bucket_not_found");
}

/* What a restarted target does not know any more is still in the job's report. */
static void test_reports_outlive_a_restart(void **state)
{
    struct world *w = *state;
    add_job(w, "srt-1");
    w->commits_slowly = true;
    ticks(w, 6);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_COMMITTING);
    w->forgetful = true;
    w->commits_slowly = false;
    ticks(w, 4);
    const struct job *job = job_of(w, "srt-1");
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
    add_job(w, "srt-1");
    w->commits_slowly = true;
    ticks(w, 6);
    w->deaf[2] = true;
    w->commits_slowly = false;
    set_node(w, "t3", NODE_UNREACHABLE);
    ticks(w, 3);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_COMMITTING);
    apply(w, &(struct command){.kind = CMD_NODE_REMOVE, .name = "t3"});
    ticks(w, 3);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_FINISHED);
}

/* A sort is waited with: it cannot do without. */
static void test_a_sort_waits_for_a_target_that_is_away(void **state)
{
    struct world *w = *state;
    w->deaf[2] = true;
    add_job(w, "srt-1");
    set_node(w, "t3", NODE_UNREACHABLE);
    ticks(w, 8);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_QUEUED);
    w->deaf[2] = false;
    set_node(w, "t3", NODE_ACTIVE);
    ticks(w, 12);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_FINISHED);
    assert_int_equal(job_of(w, "srt-1")->attempt, 0);
}

static void test_a_sort_goes_on_without_a_target(void **state)
{
    struct world *w = *state;
    w->deaf[2] = true;
    spared = 1;
    add_job(w, "srt-1");
    set_node(w, "t3", NODE_UNREACHABLE);
    ticks(w, 3);
    assert_int_equal(job_of(w, "srt-1")->without_count, 0);
    ticks(w, 12);
    const struct job *job = job_of(w, "srt-1");
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
    apply(w, &(struct command){.kind = CMD_JOB_CREATE, .job = job});
    struct job *stopping = job_copy(job);
    stopping->state = JOB_STOPPING;
    stopping->stop_as = JOB_ABORTED;
    apply(w, &(struct command){.kind = CMD_JOB_UPDATE, .name = id, .job = stopping});
    job_unref(stopping);
    job_unref(job);
}

/* Ends of others, which wake the driver between its ticks, make no time pass. */
static void test_others_do_not_shorten_the_wait(void **state)
{
    struct world *w = *state;
    w->deaf[2] = true;
    spared = 1;
    add_job(w, "srt-1");
    set_node(w, "t3", NODE_UNREACHABLE);
    ticks(w, 1);
    for (int i = 2; i < 9; i++) {
        const char id[] = {'s', 'r', 't', '-', (char)('0' + i), '\0'};
        add_ending_job(w, id);
    }
    ticks(w, 2);
    for (size_t i = 1; i < w->state->jobs.count; i++)
        assert_int_equal(w->state->jobs.jobs[i]->state, JOB_ABORTED);
    assert_int_equal(job_of(w, "srt-1")->without_count, 0);
    ticks(w, 1);
    assert_int_equal(job_of(w, "srt-1")->without_count, 1);
}

/* Two at once are more than it can do without: it waits, and goes on when one is back. */
static void test_a_sort_does_not_go_on_without_too_many(void **state)
{
    struct world *w = *state;
    spared = 1;
    for (size_t i = 1; i < 3; i++)
        w->deaf[i] = true;
    set_node(w, "t2", NODE_UNREACHABLE);
    set_node(w, "t3", NODE_UNREACHABLE);
    add_job(w, "srt-1");
    ticks(w, 20);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_QUEUED);
    assert_int_equal(job_of(w, "srt-1")->without_count, 0);
    w->deaf[1] = false;
    set_node(w, "t2", NODE_ACTIVE);
    ticks(w, 16);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_FINISHED);
    assert_string_equal(job_of(w, "srt-1")->without[0], "t3");
}

/* t2 restarts while all run: another attempt, to the end. */
static void test_a_sort_begins_again(void **state)
{
    struct world *w = *state;
    add_job(w, "srt-1");
    for (int i = 0; w->targets[1] != XACTION_RUNNING; i++) {
        assert_true(i < 8);
        ticks(w, 1);
    }
    w->targets[1] = XACTION_NONE;
    for (int i = 0; job_of(w, "srt-1")->attempt == 0; i++) {
        assert_true(i < 8);
        ticks(w, 1);
    }
    ticks(w, 12);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_FINISHED);
    assert_int_equal(job_of(w, "srt-1")->attempt, 1);
}

static void test_after_the_decision_the_job_waits(void **state)
{
    struct world *w = *state;
    add_job(w, "srt-1");
    w->commits_slowly = true;
    ticks(w, 6);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_COMMITTING);
    w->deaf[0] = true;
    set_node(w, "t1", NODE_UNREACHABLE);
    ticks(w, 5);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_COMMITTING);
    w->deaf[0] = w->commits_slowly = false;
    set_node(w, "t1", NODE_ACTIVE);
    ticks(w, 5);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_FINISHED);
}

/* It keeps its part: it is not one that the job goes on without. */
static void test_after_the_decision_it_does_not_wait_for_who_is_spared(void **state)
{
    struct world *w = *state;
    spared = 1;
    add_job(w, "srt-1");
    w->commits_slowly = true;
    ticks(w, 6);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_COMMITTING);
    w->deaf[0] = true;
    set_node(w, "t1", NODE_UNREACHABLE);
    ticks(w, 8);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_COMMITTING);
    w->commits_slowly = false;
    ticks(w, 5);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_FINISHED);
    assert_int_equal(job_of(w, "srt-1")->without_count, 0);
}

static void test_new_target_fails_the_job(void **state)
{
    struct world *w = *state;
    w->deaf[0] = true;
    add_job(w, "srt-1");
    ticks(w, 2);
    add_target(w, TARGETS);
    w->deaf[0] = false;
    ticks(w, 6);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_FAILED);
    assert_string_equal(job_of(w, "srt-1")->error_code, "stale_map");
}

/* So many run at once; one that waits for a target after the decision is not one of them. */
static void test_jobs_wait_for_their_turn(void **state)
{
    struct world *w = *state;
    w->deaf[0] = true;
    add_job(w, "srt-1");
    add_job(w, "srt-2");
    add_job(w, "srt-3");
    ticks(w, 3);
    for (int i = 1; i <= 3; i++) {
        const char id[] = {'s', 'r', 't', '-', (char)('0' + i), '\0'};
        _cleanup_json_ json_t *reports = jobs_driver_reports(w->driver, id);
        assert_int_equal(json_object_size(reports), i < 3 ? 2 : 0);
    }
    w->deaf[0] = false;
    w->commits_slowly = true;
    ticks(w, 8);
    assert_int_equal(job_of(w, "srt-1")->state, JOB_COMMITTING);
    assert_int_not_equal(job_of(w, "srt-3")->state, JOB_QUEUED);
}

/* A sort's targets may wait for the repair. */
static void test_a_repair_waits_for_no_turn(void **state)
{
    struct world *w = *state;
    w->deaf[0] = true;
    add_job(w, "srt-1");
    add_job(w, "srt-2");
    struct job *job = job_copy(job_of(w, "srt-1"));
    free(job->id);
    free(job->kind);
    job->id = xstrdup("rpr-1");
    job->kind = xstrdup("repair");
    json_decref(job->spec);
    job->spec = json_object();
    job->state = JOB_QUEUED;
    apply(w, &(struct command){.kind = CMD_JOB_CREATE, .job = job});
    job_unref(job);
    ticks(w, 3);
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
        add_job(w, id);
        ticks(w, 8);
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
        add_job(w, id);
        ticks(w, 8);
    }
    assert_null(jobs_find(&w->state->jobs, "srt-0"));
    assert_null(jobs_find(&w->state->jobs, "srt-1"));
    assert_non_null(jobs_find(&w->state->jobs, "srt-2"));
    assert_non_null(jobs_find(&w->state->jobs, "srt-3"));
    w->now_ms += 20000;
    ticks(w, 3);
    assert_int_equal(w->state->jobs.count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_runs_to_the_end),
        TEST(test_news_need_no_tick),
        TEST(test_news_that_cross_an_answer_ask_again),
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
