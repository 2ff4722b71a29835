#include "proxy/testing/jobs_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/jsonx.h"
#include "common/log.h"
#include "common/mem.h"

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

void world_apply(struct world *w, const struct command *cmd)
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
    world_apply(w, cmd);
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

const char *world_unfit;

size_t world_spared;
unsigned world_steps;

static size_t world_spares(const struct job *job, const struct cluster_state *s)
{
    (void)job, (void)s;
    return world_spared;
}

static int world_fits(const struct job *job, const struct cluster_state *s, struct error *err)
{
    (void)job, (void)s;
    world_steps++;
    return world_unfit != NULL ? error_set(err, E_BUCKET_NOT_FOUND, "%s", world_unfit) : 0;
}

void world_deliver(struct world *w)
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

void world_add_target(struct world *w, size_t i)
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
    world_apply(w, &(struct command){.kind = CMD_NODE_JOIN, .node = &n});
}

void world_set_node(struct world *w, const char *id, enum node_state state)
{
    world_apply(w, &(struct command){.kind = CMD_NODE_STATE, .name = id, .node_state = state});
}

void world_add_job(struct world *w, const char *id)
{
    struct job *job = job_new(id, "sort");
    _cleanup_free_ char *names = xprintf("%s-%%d", id);
    job->spec = json_pack("{s:s}", "output_format", names);
    job->plan = json_object();
    job->participant_count = TARGETS;
    job->participants = xcalloc(TARGETS, sizeof *job->participants);
    for (size_t i = 0; i < TARGETS; i++)
        job->participants[i] = xprintf("t%zu", i + 1);
    world_apply(w, &(struct command){.kind = CMD_JOB_CREATE, .job = job});
    job_unref(job);
}

int world_setup(void **state)
{
    struct world *w = xcalloc(1, sizeof *w);
    world_unfit = NULL;
    world_spared = 0;
    world_steps = 0;
    log_set_level(LOG_OFF);
    w->state = state_new("c-test");
    w->now_ms = 1000;
    for (size_t i = 0; i < TARGETS; i++)
        world_add_target(w, i);
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

int world_teardown(void **state)
{
    struct world *w = *state;
    world_deliver(w);
    jobs_driver_free(w->driver);
    state_unref(w->state);
    free(w);
    return 0;
}

void world_ticks(struct world *w, int n)
{
    for (int i = 0; i < n; i++) {
        jobs_driver_tick(w->driver);
        world_deliver(w);
    }
}

const struct job *world_job(const struct world *w, const char *id)
{
    const struct job *job = jobs_find(&w->state->jobs, id);
    assert_non_null(job);
    return job;
}
