/* The controller against simulated targets: seeded schedules of lost messages, restarts, failures,
 * unreachable nodes and aborts.  A failing schedule prints its seed. */
#include "xaction/controller.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"

#define PEERS_MAX 7
#define STEPS_MAX 4000

struct sim_target {
    enum xaction_state state;
    uint64_t attempt;
    bool durable;        /* prepared once: what a restart leaves on disk */
    uint64_t durable_in; /* this attempt */
    bool visible;
    bool up;
};

struct sim {
    struct rng rng;
    struct job job;
    size_t n;
    struct sim_target targets[PEERS_MAX];
    struct controller_peer peers[PEERS_MAX];
    char ids[PEERS_MAX][24];
    bool map_changed;
    bool calm; /* no new trouble: the job must come to its end */
};

static bool chance(struct sim *s, uint64_t one_in)
{
    return rng_below(&s->rng, one_in) == 0;
}

static void target_order(struct sim_target *t, enum controller_order order, uint64_t attempt)
{
    switch (order) {
    case CONTROLLER_NOTHING:
        break;
    case CONTROLLER_PREPARE:
        if (t->state == XACTION_NONE || attempt > t->attempt) {
            t->state = XACTION_PREPARING;
            t->attempt = attempt;
        }
        break;
    case CONTROLLER_RUN:
        if (t->state == XACTION_READY && t->attempt == attempt)
            t->state = XACTION_RUNNING;
        break;
    case CONTROLLER_COMMIT:
        if (t->state == XACTION_PREPARED || t->state == XACTION_NONE)
            t->state = XACTION_COMMITTING;
        break;
    case CONTROLLER_STOP:
        if (t->state != XACTION_STOPPED)
            t->state = XACTION_STOPPING;
        break;
    }
}

static void target_advance(struct sim *s, struct sim_target *t)
{
    if (!t->up)
        return;
    if (t->state == XACTION_PREPARING) {
        t->state = s->calm || !chance(s, 80) ? XACTION_READY : XACTION_FAILED;
    } else if (t->state == XACTION_RUNNING) {
        bool fails = !s->calm && chance(s, 60);
        t->state = fails ? XACTION_FAILED : XACTION_PREPARED;
        t->durable = !fails;
        t->durable_in = t->attempt;
    } else if (t->state == XACTION_COMMITTING) {
        assert_true(t->durable);
        assert_int_equal(t->durable_in, s->job.attempt);
        t->visible = true;
        t->state = XACTION_COMMITTED;
    } else if (t->state == XACTION_STOPPING) {
        assert_false(t->visible);
        t->durable = false;
        t->state = XACTION_STOPPED;
    }
}

static void make_trouble(struct sim *s, size_t i)
{
    struct sim_target *t = &s->targets[i];
    if (!t->up) {
        if (s->calm || chance(s, 5))
            t->up = true;
    } else if (!s->calm && chance(s, 150)) {
        t->up = false;
        t->state = XACTION_NONE; /* memory is gone, disks stay */
    }
    /* The map follows what is, late. */
    if (s->calm || chance(s, 4))
        s->peers[i].reachable = t->up;
}

static void exchange(struct sim *s, size_t i, enum controller_order order)
{
    struct sim_target *t = &s->targets[i];
    bool lost = !s->calm && chance(s, 5);
    if (!t->up || lost)
        return;
    target_order(t, order, s->job.attempt);
    if (!s->calm && chance(s, 5))
        return; /* the answer is lost */
    /* As the driver has it: what tells of an attempt that is over is not heard. */
    if (t->state != XACTION_NONE && t->attempt != s->job.attempt &&
        (s->job.state == JOB_QUEUED || s->job.state == JOB_RUNNING))
        return;
    s->peers[i].heard = true;
    s->peers[i].state = t->state;
    s->peers[i].error_code = t->state != XACTION_FAILED ? 0 : chance(s, 2) ? E_NET : E_IO;
    s->peers[i].error_message = "disk";
}

static void assert_outcome(const struct sim *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct sim_target *t = &s->targets[i];
        if (s->job.state == JOB_FINISHED)
            assert_true(t->visible);
        else
            assert_false(t->visible);
    }
}

static void sim_init(struct sim *s, uint64_t seed)
{
    static char resuming[] = "delete", again[] = "sort";
    char *const kinds[] = {NULL, resuming, again};
    *s = (struct sim){.job = {.state = JOB_QUEUED, .kind = kinds[seed % 3]}};
    rng_seed(&s->rng, seed);
    s->n = 1 + rng_below(&s->rng, PEERS_MAX);
    for (size_t i = 0; i < s->n; i++) {
        snprintf(s->ids[i], sizeof s->ids[i], "t%zu", i + 1);
        s->targets[i].up = true;
        s->peers[i] = (struct controller_peer){.id = s->ids[i], .reachable = true};
    }
}

static bool may_begin_again(const struct job *job)
{
    return job->kind != NULL && strcmp(job->kind, "sort") == 0 && job->attempt < 3;
}

static void sim_step(struct sim *s)
{
    struct error stale;
    error_set(&stale, E_STALE_MAP, "the map changed");
    enum controller_order orders[PEERS_MAX];
    struct controller_verdict v;
    controller_step(&s->job, s->peers, s->n, s->map_changed ? &stale : NULL,
                    rng_below(&s->rng, 2) == 0, may_begin_again(&s->job), &v, orders);
    if (v.next != s->job.state) {
        assert_true(s->job.state != JOB_COMMITTING || v.next == JOB_FINISHED);
        s->job.attempt += v.next == JOB_QUEUED;
        s->job.state = v.next;
        s->job.stop_as = v.stop_as;
        for (size_t i = 0; i < s->n; i++)
            s->peers[i].heard = false;
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        assert_true(orders[i] != CONTROLLER_COMMIT || s->job.state == JOB_COMMITTING);
        exchange(s, i, orders[i]);
        target_advance(s, &s->targets[i]);
        make_trouble(s, i);
    }
}

static bool job_is_over(const struct sim *s)
{
    return s->job.state == JOB_FINISHED || s->job.state == JOB_FAILED ||
           s->job.state == JOB_ABORTED;
}

/* What the abort's route does: a move like any other, where the state allows it. */
static void sim_abort(struct sim *s)
{
    if (s->job.state != JOB_QUEUED && s->job.state != JOB_RUNNING)
        return;
    s->job.state = JOB_STOPPING;
    s->job.stop_as = JOB_ABORTED;
    for (size_t i = 0; i < s->n; i++)
        s->peers[i].heard = false;
}

static void sim_run(uint64_t seed, unsigned outcomes[static 4])
{
    struct sim s;
    sim_init(&s, seed);
    for (int step = 0; !job_is_over(&s); step++) {
        if (step == STEPS_MAX)
            fail_msg("seed %llu: the job never ends", (unsigned long long)seed);
        s.calm = step > 60;
        if (!s.calm && chance(&s, 200))
            s.map_changed = true;
        if (!s.calm && chance(&s, 80))
            sim_abort(&s);
        sim_step(&s);
    }
    assert_outcome(&s);
    outcomes[s.job.state == JOB_FINISHED ? 0 : s.job.state == JOB_FAILED ? 1 : 2]++;
    outcomes[3] += s.job.state == JOB_FINISHED && s.job.attempt > 0;
}

static void test_schedules(void **state)
{
    (void)state;
    unsigned outcomes[4] = {0};
    for (uint64_t seed = 1; seed <= 20000; seed++)
        sim_run(seed, outcomes);
    /* The schedules must reach all ends, at a further attempt too, or they prove little. */
    assert_true(outcomes[0] > 1000);
    assert_true(outcomes[1] > 1000);
    assert_true(outcomes[2] > 1000);
    assert_true(outcomes[3] > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
