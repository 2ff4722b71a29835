/* The driver of jobs through seeded schedules: messages and commits that are late, lost or refused,
 * targets that restart and vanish from the map, users who abort, a primary that starts anew; in
 * every other schedule the job can do without one target, and the last one stays away once it has
 * gone.  A failing schedule prints its seed. */
#include "proxy/jobs/jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"

enum { TARGETS = 3, MESSAGES_MAX = 64, STEPS_WILD = 120, STEPS_MAX = 3000, SEEDS = 4000 };

struct target {
    enum xaction_state state;
    uint64_t attempt;
    uint64_t made_in; /* this attempt */
    bool up;
    bool made;    /* outputs lie on its disks, hidden */
    bool visible; /* and not hidden any more */
};

/* An order or a question on its way there, then its answer on the way back; or a commit. */
struct message {
    bool used;
    bool answered;
    size_t to;
    enum controller_order order;
    enum job_state job_state; /* when it was sent */
    uint64_t attempt;         /* then */
    jobs_answer_fn *done;
    json_t *report;
    void (*committed)(void *arg, const struct error *err);
    struct command *cmd;
    void *arg;
};

struct sim {
    struct rng rng;
    uint64_t seed;
    bool spares; /* the job can do without one target, and the last one stays away where none is
                    left out */
    bool calm;   /* no new trouble: the job must come to its end */
    const struct cluster_state *state;
    struct jobs_driver *driver;
    struct target targets[TARGETS];
    struct message messages[MESSAGES_MAX];
};

static bool chance(struct sim *s, uint64_t one_in)
{
    return rng_below(&s->rng, one_in) == 0;
}

static const struct job *job_of(const struct sim *s)
{
    return jobs_find(&s->state->jobs, "srt-1");
}

static int apply(struct sim *s, const struct command *cmd, struct error *err)
{
    const struct cluster_state *next = NULL;
    int code = command_apply(s->state, cmd, &next, err);
    if (code != 0)
        return code;
    state_unref(s->state);
    s->state = next;
    return 0;
}

/* --- the driver's world ----------------------------------------------------------------------- */

static struct message *message_new(struct sim *s)
{
    for (size_t i = 0; i < MESSAGES_MAX; i++) {
        if (!s->messages[i].used) {
            s->messages[i] = (struct message){.used = true};
            return &s->messages[i];
        }
    }
    fail_msg("seed %llu: more messages than pairs of job and target", (unsigned long long)s->seed);
    return NULL;
}

static const struct cluster_state *sim_state(void *ctx)
{
    const struct sim *s = ctx;
    return state_ref(s->state);
}

static int64_t sim_wall(void *ctx)
{
    (void)ctx;
    return 1;
}

static int sim_fits(const struct job *job, const struct cluster_state *state, struct error *err)
{
    (void)job, (void)state, (void)err;
    return 0;
}

static size_t sim_spares(const struct job *job, const struct cluster_state *state)
{
    (void)job, (void)state;
    return 1;
}

static void sim_commit(void *ctx, const struct command *cmd,
                       void (*done)(void *arg, const struct error *err), void *arg)
{
    struct message *m = message_new(ctx);
    m->cmd = command_copy(cmd);
    m->committed = done;
    m->arg = arg;
}

static void sim_send(void *ctx, const struct node *target, enum controller_order order,
                     const struct job *job, jobs_answer_fn *done, void *arg)
{
    struct message *m = message_new(ctx);
    m->to = (size_t)(target->id[1] - '1');
    m->order = order;
    m->job_state = job->state;
    m->attempt = job->attempt;
    m->done = done;
    m->arg = arg;
}

static void driver_start(struct sim *s)
{
    const struct jobs_env env = {.ctx = s,
                                 .state = sim_state,
                                 .commit = sim_commit,
                                 .send = sim_send,
                                 .fits = sim_fits,
                                 .spares = s->spares ? sim_spares : NULL,
                                 .wall_ms = sim_wall};
    const struct jobs_limits limits = {.keep_ms = 1000000,
                                       .keep_max = 10,
                                       .keep_bytes = 1 << 20,
                                       .running_max = 1,
                                       .attempts_max = 3,
                                       .away_ticks = 2};
    s->driver = jobs_driver_new(&env, &limits);
}

/* --- targets ---------------------------------------------------------------------------------- */

static bool is_left_out(const struct sim *s, const struct target *t)
{
    const char id[] = {'t', (char)('1' + (t - s->targets)), '\0'};
    return job_leaves_out(job_of(s), id);
}

/* As in target/http/xaction_routes.c and xaction/course.c: a late order does not begin a job anew,
 * and a later attempt begins from wherever the one before has come to. */
static void target_prepare(struct sim *s, struct target *t, uint64_t attempt)
{
    const struct job *job = job_of(s);
    bool late = job->state != JOB_QUEUED || job->attempt != attempt;
    bool ends = t->state == XACTION_STOPPING || t->state == XACTION_STOPPED;
    if (late || ends || (t->state != XACTION_NONE && attempt <= t->attempt))
        return;
    t->state = XACTION_PREPARING;
    t->attempt = attempt;
}

static void target_order(struct sim *s, struct target *t, enum controller_order order,
                         uint64_t attempt)
{
    switch (order) {
    case CONTROLLER_NOTHING:
        break;
    case CONTROLLER_PREPARE:
        target_prepare(s, t, attempt);
        break;
    case CONTROLLER_RUN:
        if (t->state == XACTION_READY && t->attempt == attempt)
            t->state = XACTION_RUNNING;
        break;
    case CONTROLLER_COMMIT:
        assert_int_equal(job_of(s)->state, JOB_COMMITTING);
        if (t->state == XACTION_PREPARED || t->state == XACTION_NONE)
            t->state = XACTION_COMMITTING;
        break;
    case CONTROLLER_STOP:
        assert_true(job_of(s)->state == JOB_STOPPING || job_ended(job_of(s)->state));
        if (t->state != XACTION_STOPPED)
            t->state = XACTION_STOPPING;
        break;
    }
}

static void target_work(struct sim *s, struct target *t)
{
    if (t->state == XACTION_PREPARING) {
        t->state = s->calm || !chance(s, 40) ? XACTION_READY : XACTION_FAILED;
    } else if (t->state == XACTION_RUNNING) {
        t->made = true;
        t->made_in = t->attempt;
        t->state = s->calm || !chance(s, 40) ? XACTION_PREPARED : XACTION_FAILED;
    } else if (t->state == XACTION_COMMITTING) {
        assert_true(t->made);
        assert_int_equal(t->made_in, job_of(s)->attempt);
        t->visible = true;
        t->state = XACTION_COMMITTED;
    } else if (t->state == XACTION_STOPPING) {
        assert_false(t->visible);
        t->made = false;
        t->state = XACTION_STOPPED;
    }
}

static json_t *target_report(struct sim *s, const struct target *t)
{
    json_t *report = json_pack("{s:s}", "state", xaction_state_name(t->state));
    if (t->state != XACTION_NONE && t->attempt > 0)
        json_object_set_new(report, "attempt", json_integer((json_int_t)t->attempt));
    if (t->state == XACTION_FAILED)
        json_object_set_new(report, "error",
                            json_pack("{s:s, s:s}", "code",
                                      chance(s, 3) ? "network_error" : "io_error", "message",
                                      "disk"));
    return report;
}

/* As target/disk/job_files.c settles when the documents come. */
static void target_settle(const struct sim *s, struct target *t)
{
    if (t->up && is_left_out(s, t))
        t->made = false;
    if (t->up && t->made && job_of(s)->state == JOB_FINISHED)
        t->visible = true;
    if (t->up && t->made && job_ended(job_of(s)->state) && job_of(s)->state != JOB_FINISHED)
        t->made = false;
}

/* --- trouble ---------------------------------------------------------------------------------- */

static void set_node(struct sim *s, size_t i, enum node_state state)
{
    const char id[] = {'t', (char)('1' + i), '\0'};
    apply(s, &(struct command){.kind = CMD_NODE_STATE, .name = id, .node_state = state}, NULL);
}

static void target_trouble(struct sim *s, size_t i)
{
    struct target *t = &s->targets[i];
    bool other = job_of(s)->without_count > 0 && !is_left_out(s, t);
    bool stays_away = s->spares && i == TARGETS - 1 && !other;
    if (!t->up && !stays_away && (s->calm || chance(s, 6))) {
        t->up = true;
        t->state = XACTION_NONE; /* the memory is gone, the disks stay */
        set_node(s, i, NODE_ACTIVE);
    } else if (t->up && !s->calm && chance(s, 120)) {
        t->up = false;
    } else if (!t->up && chance(s, 3)) {
        set_node(s, i, NODE_UNREACHABLE);
    }
}

/* What the abort's route does. */
static void user_aborts(struct sim *s)
{
    struct job *stopping = job_copy(job_of(s));
    stopping->state = JOB_STOPPING;
    stopping->stop_as = JOB_ABORTED;
    apply(s, &(struct command){.kind = CMD_JOB_UPDATE, .name = "srt-1", .job = stopping}, NULL);
    job_unref(stopping);
}

/* All that is under way is lost with it. */
static void primary_restarts(struct sim *s)
{
    for (size_t i = 0; i < MESSAGES_MAX; i++) {
        struct message *m = &s->messages[i];
        if (!m->used)
            continue;
        m->used = false;
        struct error err;
        error_set(&err, E_CANCELLED, "this node is stopping");
        if (m->committed != NULL)
            m->committed(m->arg, &err);
        else
            m->done(m->arg, NULL, &err);
        command_free(m->cmd);
        json_decref(m->report);
    }
    jobs_driver_free(s->driver);
    driver_start(s);
}

/* --- messages --------------------------------------------------------------------------------- */

static void message_commit(struct sim *s, struct message m)
{
    struct error err = ERROR_INIT;
    if (!s->calm && chance(s, 6))
        error_set(&err, E_NO_SPACE, "the metastore's disk is full");
    else
        apply(s, m.cmd, &err);
    m.committed(m.arg, err.code != 0 ? &err : NULL);
    command_free(m.cmd);
}

static void message_answer(struct sim *s, struct message m)
{
    struct error err;
    error_set(&err, E_TIMEOUT, "no answer");
    bool lost = m.report == NULL || (!s->calm && chance(s, 8));
    m.done(m.arg, lost ? NULL : m.report, lost ? &err : NULL);
    json_decref(m.report);
}

static void message_arrive(struct sim *s, struct message *m)
{
    struct target *t = &s->targets[m->to];
    m->answered = true;
    assert_true(m->order != CONTROLLER_COMMIT || m->job_state == JOB_COMMITTING);
    if (!t->up || (!s->calm && chance(s, 8)))
        return;
    target_order(s, t, m->order, m->attempt);
    m->report = target_report(s, t);
}

/* One message gets one step further; which, is a matter of chance. */
static void deliver_one(struct sim *s)
{
    size_t at = rng_below(&s->rng, MESSAGES_MAX);
    for (size_t i = 0; i < MESSAGES_MAX; i++) {
        struct message *m = &s->messages[(at + i) % MESSAGES_MAX];
        if (!m->used)
            continue;
        if (m->committed == NULL && !m->answered) {
            message_arrive(s, m);
            return;
        }
        struct message moved = *m; /* its place may be taken while it is told */
        m->used = false;
        if (moved.committed != NULL)
            message_commit(s, moved);
        else
            message_answer(s, moved);
        return;
    }
}

/* --- runs ------------------------------------------------------------------------------------- */

static void add_targets(struct sim *s)
{
    for (size_t i = 0; i < TARGETS; i++) {
        const char id[] = {'t', (char)('1' + i), '\0'};
        const struct node n = {.id = id,
                               .role = NODE_TARGET,
                               .public_url = "http://127.0.0.1:1",
                               .control_url = "http://127.0.0.1:2",
                               .data_url = "http://127.0.0.1:3",
                               .weight = 1024,
                               .boot = "b"};
        assert_int_equal(apply(s, &(struct command){.kind = CMD_NODE_JOIN, .node = &n}, NULL), 0);
        s->targets[i].up = true;
    }
}

static void add_job(struct sim *s)
{
    struct job *job = job_new("srt-1", "sort");
    job->spec = json_object();
    job->plan = json_object();
    job->participant_count = TARGETS;
    job->participants = xcalloc(TARGETS, sizeof *job->participants);
    for (size_t i = 0; i < TARGETS; i++)
        job->participants[i] = xprintf("t%zu", i + 1);
    assert_int_equal(apply(s, &(struct command){.kind = CMD_JOB_CREATE, .job = job}, NULL), 0);
    job_unref(job);
}

static void sim_step(struct sim *s)
{
    if (chance(s, 4))
        jobs_driver_tick(s->driver);
    deliver_one(s);
    for (size_t i = 0; i < TARGETS; i++) {
        target_trouble(s, i);
        if (s->targets[i].up && chance(s, 3))
            target_work(s, &s->targets[i]);
        target_settle(s, &s->targets[i]);
    }
    if (!s->calm && chance(s, 150))
        user_aborts(s);
    if (!s->calm && chance(s, 150))
        primary_restarts(s);
}

static void assert_outcome(const struct sim *s)
{
    bool finished = job_of(s)->state == JOB_FINISHED;
    for (size_t i = 0; i < TARGETS; i++) {
        const struct target *t = &s->targets[i];
        bool stands = finished && !is_left_out(s, t);
        if (t->visible != stands || t->made != stands)
            fail_msg("seed %llu: the job is %s, at t%zu its output is %s",
                     (unsigned long long)s->seed, job_state_name(job_of(s)->state), i + 1,
                     t->visible ? "visible"
                     : t->made  ? "left over"
                                : "not there");
    }
}

static void sim_run(uint64_t seed, unsigned outcomes[static 5])
{
    struct sim s = {.seed = seed, .spares = seed % 2 == 0, .state = state_new("c-sim")};
    rng_seed(&s.rng, seed);
    add_targets(&s);
    add_job(&s);
    driver_start(&s);
    for (int step = 0; step < STEPS_WILD || !job_ended(job_of(&s)->state); step++) {
        if (step == STEPS_MAX)
            fail_msg("seed %llu: the job never ends; it is %s", (unsigned long long)seed,
                     job_state_name(job_of(&s)->state));
        s.calm = step >= STEPS_WILD;
        sim_step(&s);
    }
    for (size_t i = 0; i < TARGETS; i++) {
        if (!s.targets[i].up)
            s.targets[i].state = XACTION_NONE;
        s.targets[i].up = true;
        target_settle(&s, &s.targets[i]);
    }
    assert_outcome(&s);
    enum job_state end = job_of(&s)->state;
    outcomes[end == JOB_FINISHED ? 0 : end == JOB_FAILED ? 1 : 2]++;
    outcomes[3] += end == JOB_FINISHED && job_of(&s)->attempt > 0;
    outcomes[4] += end == JOB_FINISHED && job_of(&s)->without_count > 0;
    s.calm = true;
    primary_restarts(&s);
    jobs_driver_free(s.driver);
    state_unref(s.state);
}

static void test_schedules(void **state)
{
    (void)state;
    unsigned outcomes[5] = {0};
    log_set_level(LOG_OFF);
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        sim_run(seed, outcomes);
    /* The schedules must reach all ends, at a further attempt too, or they prove little. */
    for (int i = 0; i < 5; i++)
        assert_true(outcomes[i] > SEEDS / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
