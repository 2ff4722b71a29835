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

static void assert_single(enum job_state state, enum xaction_state peer, enum controller_order want)
{
    struct job job = {.state = state, .stop_as = JOB_FAILED};
    struct controller_peer p = {.id = "t1", .heard = true, .reachable = true, .state = peer};
    struct controller_verdict v;
    enum controller_order order;
    controller_step(&job, &p, 1, NULL, false, false, &v, &order);
    assert_int_equal(v.next, state);
    assert_int_equal(order, want);
}

static void test_orders(void **state)
{
    (void)state;
    assert_single(JOB_QUEUED, XACTION_NONE, CONTROLLER_PREPARE);
    assert_single(JOB_QUEUED, XACTION_PREPARING, CONTROLLER_NOTHING);
    assert_single(JOB_RUNNING, XACTION_READY, CONTROLLER_RUN);
    assert_single(JOB_RUNNING, XACTION_RUNNING, CONTROLLER_NOTHING);
    assert_single(JOB_COMMITTING, XACTION_PREPARED, CONTROLLER_COMMIT);
    assert_single(JOB_COMMITTING, XACTION_NONE, CONTROLLER_COMMIT);
    assert_single(JOB_COMMITTING, XACTION_COMMITTING, CONTROLLER_NOTHING);
    assert_single(JOB_STOPPING, XACTION_RUNNING, CONTROLLER_STOP);
    assert_single(JOB_STOPPING, XACTION_STOPPING, CONTROLLER_NOTHING);
}

static void test_unheard_peer_gets_the_order(void **state)
{
    (void)state;
    struct job job = {.state = JOB_RUNNING};
    struct controller_peer p = {
        .id = "t1", .heard = false, .reachable = true, .state = XACTION_PREPARED};
    struct controller_verdict v;
    enum controller_order order;
    controller_step(&job, &p, 1, NULL, false, false, &v, &order);
    assert_int_equal(v.next, JOB_RUNNING);
    assert_int_equal(order, CONTROLLER_RUN);
}

/* The target whose disk failed is named, not the ones that lost their streams because of it. */
static void test_cause_is_the_original_failure(void **state)
{
    (void)state;
    struct job job = {.state = JOB_RUNNING};
    struct controller_peer p[] = {
        {.id = "t1",
         .heard = true,
         .reachable = true,
         .state = XACTION_FAILED,
         .error_code = E_NET,
         .error_message = "t2 cut the stream"},
        {.id = "t2",
         .heard = true,
         .reachable = true,
         .state = XACTION_FAILED,
         .error_code = E_SHARD_CORRUPT,
         .error_message = "shard 'a': bad checksum"},
        {.id = "t3", .heard = true, .reachable = true, .state = XACTION_RUNNING},
    };
    struct controller_verdict v;
    enum controller_order orders[3];
    controller_step(&job, p, 3, NULL, false, false, &v, orders);
    assert_int_equal(v.next, JOB_STOPPING);
    assert_int_equal(v.stop_as, JOB_FAILED);
    assert_int_equal(v.cause.code, E_SHARD_CORRUPT);
    assert_string_equal(v.cause.message, "t2: shard 'a': bad checksum");
}

/* Only the driver's patience keeps a job whose cause is not known yet, and only while it may come.
 */
static void test_an_echo_waits_for_its_cause(void **state)
{
    (void)state;
    struct job job = {.state = JOB_RUNNING};
    struct controller_peer p[] = {
        {.id = "t1",
         .heard = true,
         .reachable = true,
         .state = XACTION_FAILED,
         .error_code = E_CANCELLED,
         .error_message = "t2 cut the stream"},
        {.id = "t2", .heard = true, .reachable = true, .state = XACTION_RUNNING},
        {.id = "t3",
         .heard = true,
         .reachable = true,
         .state = XACTION_FAILED,
         .error_code = E_JOB_NOT_FOUND,
         .error_message = "t2 does not run the job"},
    };
    struct controller_verdict v;
    enum controller_order orders[3];
    controller_step(&job, p, 3, NULL, true, false, &v, orders);
    assert_int_equal(v.next, JOB_RUNNING);
    controller_step(&job, p, 3, NULL, false, false, &v, orders);
    assert_int_equal(v.next, JOB_STOPPING);
    assert_int_equal(v.cause.code, E_CANCELLED);
    p[1].silent = true;
    controller_step(&job, p, 3, NULL, false, false, &v, orders);
    assert_int_equal(v.cause.code, E_NODE_UNREACHABLE);
    assert_string_equal(v.cause.message, "t2: the target does not answer");
    p[1].silent = false;
    p[1].state = XACTION_PREPARED;
    controller_step(&job, p, 3, NULL, true, false, &v, orders);
    assert_int_equal(v.next, JOB_STOPPING);
    p[1].reachable = false;
    p[1].state = XACTION_RUNNING;
    controller_step(&job, p, 3, NULL, true, false, &v, orders);
    assert_int_equal(v.cause.code, E_NODE_UNREACHABLE);
}

static void test_restarted_target_fails_the_job(void **state)
{
    (void)state;
    struct job job = {.state = JOB_RUNNING};
    struct controller_peer p = {
        .id = "t1", .heard = true, .reachable = true, .state = XACTION_NONE};
    struct controller_verdict v;
    enum controller_order order;
    controller_step(&job, &p, 1, NULL, false, false, &v, &order);
    assert_int_equal(v.next, JOB_STOPPING);
    assert_int_equal(v.cause.code, E_ABORTED);
}

/* A kind whose work may be done again waits for it, and sets it to work again. */
static void test_restarted_target_makes_all_begin_again(void **state)
{
    (void)state;
    char kind[] = "sort";
    struct job job = {.state = JOB_RUNNING, .kind = kind};
    struct controller_peer p[] = {
        {.id = "t1", .heard = true, .reachable = true, .state = XACTION_RUNNING},
        {.id = "t2", .heard = true, .reachable = true, .state = XACTION_NONE},
    };
    struct controller_verdict v;
    enum controller_order orders[2];
    controller_step(&job, p, 2, NULL, true, true, &v, orders);
    assert_int_equal(v.next, JOB_QUEUED);
    controller_step(&job, p, 2, NULL, true, false, &v, orders); /* it has done so too often */
    assert_int_equal(v.next, JOB_STOPPING);
    assert_int_equal(v.cause.code, E_ABORTED);
    p[1].state = XACTION_RUNNING;
    p[1].reachable = false;
    controller_step(&job, p, 2, NULL, true, true, &v, orders);
    assert_int_equal(v.next, JOB_QUEUED);
    p[0].state = XACTION_FAILED;
    p[0].error_code = E_SHARD_CORRUPT;
    p[0].error_message = "shard 'a'";
    controller_step(&job, p, 2, NULL, true, true, &v, orders); /* that would fail again */
    assert_int_equal(v.next, JOB_STOPPING);
    assert_int_equal(v.cause.code, E_SHARD_CORRUPT);
}

static void test_a_cut_stream_makes_all_begin_again(void **state)
{
    (void)state;
    char kind[] = "sort";
    struct job job = {.state = JOB_RUNNING, .kind = kind};
    struct controller_peer p[] = {
        {.id = "t1",
         .heard = true,
         .reachable = true,
         .state = XACTION_FAILED,
         .error_code = E_NET,
         .error_message = "t2 cut the stream"},
        {.id = "t2", .heard = true, .reachable = true, .state = XACTION_RUNNING},
    };
    struct controller_verdict v;
    enum controller_order orders[2];
    controller_step(&job, p, 2, NULL, true, true, &v, orders);
    assert_int_equal(v.next, JOB_RUNNING);
    controller_step(&job, p, 2, NULL, false, true, &v, orders);
    assert_int_equal(v.next, JOB_QUEUED);
}

/* Who is away is waited for; who is there makes ready. */
static void test_the_next_attempt_waits_for_all(void **state)
{
    (void)state;
    char kind[] = "sort";
    struct job job = {.state = JOB_QUEUED, .attempt = 1, .kind = kind};
    struct controller_peer p[] = {
        {.id = "t1", .heard = false, .reachable = true},
        {.id = "t2", .heard = false, .reachable = false},
    };
    struct controller_verdict v;
    enum controller_order orders[2];
    controller_step(&job, p, 2, NULL, true, true, &v, orders);
    assert_int_equal(v.next, JOB_QUEUED);
    assert_int_equal(orders[0], CONTROLLER_PREPARE);
    p[0].heard = true;
    p[0].state = XACTION_READY;
    controller_step(&job, p, 2, NULL, true, true, &v, orders);
    assert_int_equal(v.next, JOB_QUEUED);
    p[1] = (struct controller_peer){
        .id = "t2", .heard = true, .reachable = true, .state = XACTION_READY};
    controller_step(&job, p, 2, NULL, true, true, &v, orders);
    assert_int_equal(v.next, JOB_RUNNING);
}

static void test_restarted_target_resumes(void **state)
{
    (void)state;
    char kind[] = "delete";
    struct job job = {.state = JOB_RUNNING, .kind = kind};
    struct controller_peer p[] = {
        {.id = "t1", .heard = true, .reachable = true, .state = XACTION_PREPARED},
        {.id = "t2", .heard = true, .reachable = false, .state = XACTION_RUNNING},
    };
    struct controller_verdict v;
    enum controller_order orders[2];
    controller_step(&job, p, 2, NULL, false, false, &v, orders);
    assert_int_equal(v.next, JOB_RUNNING);
    assert_int_equal(orders[0], CONTROLLER_NOTHING);
    p[1].reachable = true;
    p[1].state = XACTION_NONE;
    controller_step(&job, p, 2, NULL, false, false, &v, orders);
    assert_int_equal(v.next, JOB_RUNNING);
    assert_int_equal(orders[1], CONTROLLER_PREPARE);
    p[1].state = XACTION_PREPARING;
    controller_step(&job, p, 2, NULL, false, false, &v, orders);
    assert_int_equal(orders[1], CONTROLLER_NOTHING);
    p[1].state = XACTION_READY;
    controller_step(&job, p, 2, NULL, false, false, &v, orders);
    assert_int_equal(orders[1], CONTROLLER_RUN);
    p[1].state = XACTION_PREPARED;
    controller_step(&job, p, 2, NULL, false, false, &v, orders);
    assert_int_equal(v.next, JOB_COMMITTING);
}

static void test_a_resuming_job_fails_by_its_work(void **state)
{
    (void)state;
    char kind[] = "copy";
    struct job job = {.state = JOB_RUNNING, .kind = kind};
    struct controller_peer p[] = {
        {.id = "t1",
         .heard = true,
         .reachable = true,
         .state = XACTION_FAILED,
         .error_code = E_NO_SPACE,
         .error_message = "full"},
        {.id = "t2", .heard = true, .reachable = false, .state = XACTION_RUNNING},
    };
    struct controller_verdict v;
    enum controller_order orders[2];
    controller_step(&job, p, 2, NULL, false, false, &v, orders);
    assert_int_equal(v.next, JOB_STOPPING);
    assert_int_equal(v.cause.code, E_NO_SPACE);
}

/* The others do what they can; nothing of it will be undone. */
static void test_a_failure_of_a_resuming_job_waits_for_the_others(void **state)
{
    (void)state;
    char kind[] = "copy";
    struct job job = {.state = JOB_RUNNING, .kind = kind};
    struct controller_peer p[] = {
        {.id = "t1",
         .heard = true,
         .reachable = true,
         .state = XACTION_FAILED,
         .error_code = E_CHECKSUM,
         .error_message = "damaged"},
        {.id = "t2", .heard = true, .reachable = true, .state = XACTION_RUNNING},
        {.id = "t3", .heard = true, .reachable = true, .state = XACTION_NONE},
    };
    struct controller_verdict v;
    enum controller_order orders[3];
    controller_step(&job, p, 3, NULL, false, false, &v, orders);
    assert_int_equal(v.next, JOB_RUNNING);
    assert_int_equal(orders[0], CONTROLLER_NOTHING);
    assert_int_equal(orders[1], CONTROLLER_NOTHING);
    assert_int_equal(orders[2], CONTROLLER_PREPARE);
    p[2].state = XACTION_PREPARED;
    controller_step(&job, p, 3, NULL, false, false, &v, orders);
    assert_int_equal(v.next, JOB_RUNNING);
    p[1].state = XACTION_PREPARED;
    controller_step(&job, p, 3, NULL, false, false, &v, orders);
    assert_int_equal(v.next, JOB_STOPPING);
    assert_int_equal(v.cause.code, E_CHECKSUM);
}

static void test_unreachable_does_not_hold_up_the_stop(void **state)
{
    (void)state;
    struct job job = {.state = JOB_STOPPING, .stop_as = JOB_ABORTED};
    struct controller_peer p[] = {
        {.id = "t1", .heard = true, .reachable = true, .state = XACTION_STOPPED},
        {.id = "t2", .heard = false, .reachable = false, .state = XACTION_RUNNING},
    };
    struct controller_verdict v;
    enum controller_order orders[2];
    controller_step(&job, p, 2, NULL, false, false, &v, orders);
    assert_int_equal(v.next, JOB_ABORTED);
}

static void test_after_the_decision_no_failure_counts(void **state)
{
    (void)state;
    struct job job = {.state = JOB_COMMITTING};
    struct controller_peer p[] = {
        {.id = "t1", .heard = true, .reachable = true, .state = XACTION_COMMITTED},
        {.id = "t2", .heard = true, .reachable = false, .state = XACTION_PREPARED},
    };
    struct controller_verdict v;
    enum controller_order orders[2];
    struct error unfit;
    error_set(&unfit, E_STALE_MAP, "the map changed");
    controller_step(&job, p, 2, &unfit, false, false, &v, orders);
    assert_int_equal(v.next, JOB_COMMITTING);
    assert_int_equal(orders[1], CONTROLLER_COMMIT);
    p[1].gone = true;
    controller_step(&job, p, 2, &unfit, false, false, &v, orders);
    assert_int_equal(v.next, JOB_FINISHED);
}

static void test_unfit_job_is_stopped(void **state)
{
    (void)state;
    static const enum job_state states[] = {JOB_QUEUED, JOB_RUNNING};
    for (size_t i = 0; i < 2; i++) {
        struct job job = {.state = states[i]};
        struct controller_peer p = {
            .id = "t1", .heard = true, .reachable = true, .state = XACTION_READY};
        struct controller_verdict v;
        enum controller_order order;
        struct error unfit;
        error_set(&unfit, E_BUCKET_NOT_FOUND, "the bucket is gone");
        controller_step(&job, &p, 1, &unfit, true, false, &v, &order);
        assert_int_equal(v.next, JOB_STOPPING);
        assert_int_equal(v.stop_as, JOB_FAILED);
        assert_int_equal(v.cause.code, E_BUCKET_NOT_FOUND);
    }
}

/* Nothing is done where nobody is left. */
static void test_nobody_is_never_all(void **state)
{
    (void)state;
    char kind[] = "sort";
    static const enum job_state states[] = {JOB_QUEUED, JOB_RUNNING, JOB_COMMITTING};
    for (size_t i = 0; i < 3; i++) {
        struct job job = {.state = states[i], .kind = kind};
        struct controller_verdict v;
        controller_step(&job, NULL, 0, NULL, true, true, &v, NULL);
        assert_int_equal(v.next, states[i]);
    }
}

/* Where it waits: before it runs by another attempt, and in the commit as if it were done.  A
 * failure that is nobody's absence comes first. */
static void test_it_goes_on_without_who_is_spared(void **state)
{
    (void)state;
    char kind[] = "sort";
    static const enum job_state states[] = {JOB_QUEUED, JOB_COMMITTING};
    for (size_t i = 0; i < 2; i++) {
        struct job job = {.state = states[i], .attempt = 1, .kind = kind};
        struct controller_peer p[] = {
            {.id = "t1",
             .heard = true,
             .reachable = true,
             .state = i == 0 ? XACTION_READY : XACTION_COMMITTED},
            {.id = "t2", .reachable = false},
        };
        struct controller_verdict v;
        enum controller_order orders[2];
        controller_step(&job, p, 2, NULL, true, true, &v, orders);
        assert_false(v.sheds);
        p[1].spared = true;
        controller_step(&job, p, 2, NULL, true, true, &v, orders);
        assert_int_equal(v.next, i == 0 ? JOB_QUEUED : JOB_FINISHED);
        assert_int_equal(v.sheds, i == 0);
        controller_step(&job, p, 1, NULL, true, true, &v, orders);
        assert_false(v.sheds);
        assert_int_equal(v.next, i == 0 ? JOB_RUNNING : JOB_FINISHED);
    }
    struct job job = {.state = JOB_QUEUED, .kind = kind};
    struct controller_peer p[] = {
        {.id = "t1",
         .heard = true,
         .reachable = true,
         .state = XACTION_FAILED,
         .error_code = E_NO_SPACE,
         .error_message = "full"},
        {.id = "t2", .reachable = false, .spared = true},
    };
    struct controller_verdict v;
    enum controller_order orders[2];
    controller_step(&job, p, 2, NULL, true, true, &v, orders);
    assert_int_equal(v.next, JOB_STOPPING);
    assert_false(v.sheds);
}

/* --- the simulated cluster -------------------------------------------------------------------- */

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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_unheard_peer_gets_the_order),
        cmocka_unit_test(test_cause_is_the_original_failure),
        cmocka_unit_test(test_an_echo_waits_for_its_cause),
        cmocka_unit_test(test_restarted_target_fails_the_job),
        cmocka_unit_test(test_restarted_target_makes_all_begin_again),
        cmocka_unit_test(test_a_cut_stream_makes_all_begin_again),
        cmocka_unit_test(test_the_next_attempt_waits_for_all),
        cmocka_unit_test(test_restarted_target_resumes),
        cmocka_unit_test(test_a_resuming_job_fails_by_its_work),
        cmocka_unit_test(test_a_failure_of_a_resuming_job_waits_for_the_others),
        cmocka_unit_test(test_unreachable_does_not_hold_up_the_stop),
        cmocka_unit_test(test_unfit_job_is_stopped),
        cmocka_unit_test(test_after_the_decision_no_failure_counts),
        cmocka_unit_test(test_nobody_is_never_all),
        cmocka_unit_test(test_it_goes_on_without_who_is_spared),
        cmocka_unit_test(test_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
