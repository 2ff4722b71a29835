#include "xaction/course.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/command/command.h"

enum { STATES = XACTION_STOPPED + 1, ORDERS = XACTION_STOP + 1 };

static bool is_ending(enum xaction_state s)
{
    return s == XACTION_STOPPING || s == XACTION_STOPPED;
}

static bool is_committed(enum xaction_state s)
{
    return s == XACTION_COMMITTING || s == XACTION_COMMITTED;
}

/* In which there is no state of the kind's own: it could not be opened, or is over. */
static bool may_be_closed(enum xaction_state s)
{
    return s == XACTION_NONE || s == XACTION_FAILED || s == XACTION_STOPPED ||
           s == XACTION_COMMITTED;
}

/* All that there is of orders, states and the rest. */
static void no_order_leads_where_the_picture_does_not(void **unused)
{
    (void)unused;
    for (unsigned i = 0; i < STATES * ORDERS * 8; i++) {
        struct xaction_life l = {.state = (enum xaction_state)(i % STATES),
                                 .opened = (i / STATES / ORDERS & 1) != 0,
                                 .busy = (i / STATES / ORDERS & 2) != 0,
                                 .stop_wanted = (i / STATES / ORDERS & 4) != 0};
        enum xaction_order order = (enum xaction_order)(i / STATES % ORDERS);
        if (!l.opened && !may_be_closed(l.state))
            continue;
        struct xaction_turn t = xaction_ordered(&l, order, 0);
        if (t.effect == XACTION_MOVES || t.effect == XACTION_BEGINS)
            assert_true(xaction_may_move(l.state, t.to));
        if (t.effect == XACTION_BEGINS)
            assert_true(l.opened);
        if (order == XACTION_STOP && is_committed(l.state))
            assert_int_equal(t.effect, XACTION_REFUSES); /* never undone once made visible */
        if (order == XACTION_COMMIT && is_ending(l.state))
            assert_int_equal(t.effect, XACTION_REFUSES); /* nor the other way */
        if (order == XACTION_COMMIT && l.stop_wanted && !is_committed(l.state))
            assert_int_equal(t.effect, XACTION_REFUSES);
        if (order == XACTION_STOP && l.busy && l.state == XACTION_RUNNING && l.opened)
            assert_int_equal(t.effect, XACTION_STOPS);
    }
}

static void orders_are_idempotent(void **unused)
{
    (void)unused;
    for (unsigned i = 0; i < STATES * ORDERS; i++) {
        struct xaction_life l = {.state = (enum xaction_state)(i % STATES), .opened = true};
        enum xaction_order order = (enum xaction_order)(i / STATES);
        struct xaction_turn t = xaction_ordered(&l, order, 0);
        if (t.effect != XACTION_BEGINS)
            continue;
        l.state = t.to;
        l.busy = true;
        assert_int_equal(xaction_ordered(&l, order, 0).effect, XACTION_KEEPS);
    }
}

static void a_step_ends_in_the_next_state(void **unused)
{
    (void)unused;
    static const struct {
        enum xaction_state state;
        bool stop_wanted, success;
        enum xaction_state next;
    } rows[] = {
        {XACTION_PREPARING, false, true, XACTION_READY},
        {XACTION_PREPARING, false, false, XACTION_FAILED},
        {XACTION_PREPARING, true, true, XACTION_STOPPING},
        {XACTION_RUNNING, false, true, XACTION_PREPARED},
        {XACTION_RUNNING, false, false, XACTION_FAILED},
        {XACTION_RUNNING, true, false, XACTION_STOPPING},
        {XACTION_COMMITTING, false, false, XACTION_COMMITTING},
        {XACTION_COMMITTING, false, true, XACTION_COMMITTED},
        {XACTION_STOPPING, true, false, XACTION_STOPPING},
        {XACTION_STOPPING, true, true, XACTION_STOPPED},
        {XACTION_READY, false, true, XACTION_READY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct xaction_life l = {
            .state = rows[i].state, .opened = true, .stop_wanted = rows[i].stop_wanted};
        assert_int_equal(xaction_step_ended(&l, rows[i].success), rows[i].next);
    }
}

/* The documents with one job in this state. */
static const struct cluster_state *documents(const char *kind, enum job_state job_state)
{
    struct job *job = job_new("j-1", kind);
    struct cluster_state *empty = state_new("c");
    const struct cluster_state *s;
    job->spec = json_object();
    job->plan = json_object();
    assert_int_equal(
        command_apply(empty, &(struct command){.kind = CMD_JOB_CREATE, .job = job}, &s, NULL), 0);
    state_unref(empty);
    job_unref(job);
    s->jobs.jobs[0]->state = job_state; /* nobody else has it */
    return s;
}

static void a_job_begins_and_ends_as_the_documents_say(void **unused)
{
    (void)unused;
    static const struct {
        const char *kind;
        enum job_state state;
        int may_begin;
        bool settles;
        enum xaction_order order;
    } rows[] = {
        {"sort", JOB_QUEUED, 0, false, XACTION_STOP},
        {"sort", JOB_RUNNING, E_JOB_STATE, false, XACTION_STOP},
        {"copy", JOB_RUNNING, 0, false, XACTION_STOP}, /* it resumes */
        {"copy", JOB_COMMITTING, E_JOB_STATE, false, XACTION_STOP},
        {"sort", JOB_COMMITTING, E_JOB_STATE, false, XACTION_STOP},
        {"sort", JOB_STOPPING, E_JOB_STATE, false, XACTION_STOP},
        {"sort", JOB_FINISHED, E_JOB_STATE, true, XACTION_COMMIT},
        {"sort", JOB_FAILED, E_JOB_STATE, true, XACTION_STOP},
        {"sort", JOB_ABORTED, E_JOB_STATE, true, XACTION_STOP},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_state_ const struct cluster_state *s = documents(rows[i].kind, rows[i].state);
        const struct job *job = s->jobs.jobs[0];
        enum xaction_order order = XACTION_STOP;
        assert_int_equal(xaction_may_begin(&s->jobs, job, NULL), rows[i].may_begin);
        assert_int_equal(xaction_settles(job, "t1", &order), rows[i].settles);
        assert_int_equal(order, rows[i].order);
    }
}

/* Whatever becomes of the job: nobody else's part of it is touched. */
static void a_job_that_goes_on_without_this_node_is_stopped(void **unused)
{
    (void)unused;
    for (int state = JOB_QUEUED; state <= JOB_ABORTED; state++) {
        struct job *job = job_new("j-1", "sort");
        enum xaction_order order = XACTION_COMMIT;
        job->state = (enum job_state)state;
        job_leave_out(job, "t1");
        assert_true(xaction_settles(job, "t1", &order));
        assert_int_equal(order, XACTION_STOP);
        assert_int_equal(xaction_settles(job, "t2", &order), job_ended(job->state));
        job_unref(job);
    }
}

static void a_job_that_the_documents_do_not_know_is_stopped(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *empty = state_new("c");
    struct job *job = job_new("j-1", "sort");
    enum xaction_order order = XACTION_COMMIT;
    assert_int_equal(xaction_may_begin(&empty->jobs, job, NULL), E_NOT_READY);
    assert_true(xaction_settles(NULL, "t1", &order));
    assert_int_equal(order, XACTION_STOP);
    job_unref(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_order_leads_where_the_picture_does_not),
        cmocka_unit_test(orders_are_idempotent),
        cmocka_unit_test(a_step_ends_in_the_next_state),
        cmocka_unit_test(a_job_begins_and_ends_as_the_documents_say),
        cmocka_unit_test(a_job_that_goes_on_without_this_node_is_stopped),
        cmocka_unit_test(a_job_that_the_documents_do_not_know_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
