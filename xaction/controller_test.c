/* What the controller decides from a job and the reports of its targets. */
#include "xaction/controller.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
