#include "proxy/jobs/rebalance_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/testing/test_state.h"

enum { DELAY_MS = 10000, WALL_MS = 1000000 };

static const struct cluster_state *s;

static void apply(struct command cmd)
{
    test_state_apply(&s, &cmd);
}

static void join(const char *id)
{
    test_state_join(&s, id, "b", false);
}

static void set(const char *id, enum node_state state)
{
    apply((struct command){.kind = CMD_NODE_STATE, .name = id, .node_state = state});
}

static int setup(void **unused)
{
    (void)unused;
    const struct bucket_props props = BUCKET_PROPS_DEFAULT;
    s = state_new("c");
    join("t1");
    join("t2");
    apply((struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props});
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    state_unref(s);
    return 0;
}

/* What is next, done; false where nothing is. */
static bool step(uint64_t stood_ms, int64_t wall_ms, enum command_kind *kind)
{
    struct command cmd;
    if (!rebalance_kind.next(s, &(struct standing_now){.stood_ms = stood_ms, .wall_ms = wall_ms},
                             &cmd))
        return false;
    *kind = cmd.kind;
    apply(cmd);
    job_unref((struct job *)cmd.job);
    return true;
}

static void assert_next(uint64_t stood_ms, int64_t wall_ms, enum command_kind want)
{
    enum command_kind kind = 0;
    assert_true(step(stood_ms, wall_ms, &kind));
    assert_int_equal(kind, want);
}

static void assert_nothing(uint64_t stood_ms, int64_t wall_ms)
{
    enum command_kind kind = 0;
    assert_false(step(stood_ms, wall_ms, &kind));
}

static const struct job *last_job(void)
{
    return s->jobs.jobs[s->jobs.count - 1];
}

static void move_job(enum job_state state)
{
    struct job *next = job_copy(last_job());
    next->state = state;
    next->stop_as = JOB_FAILED;
    next->ended_ms = WALL_MS;
    apply((struct command){.kind = CMD_JOB_UPDATE, .job = next});
    job_unref(next);
}

static void finish_job(void)
{
    move_job(JOB_RUNNING);
    move_job(JOB_COMMITTING);
    move_job(JOB_FINISHED);
}

static void a_map_that_stands_is_followed(void **unused)
{
    (void)unused;
    assert_nothing(DELAY_MS, WALL_MS);
    join("t3");
    assert_nothing(DELAY_MS - 1, WALL_MS);
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
    assert_int_equal(last_job()->participant_count, 3);
    assert_nothing(DELAY_MS, WALL_MS); /* it is under way */
    finish_job();
    assert_next(DELAY_MS, WALL_MS, CMD_MOVES_DONE);
    assert_int_equal(s->smap.earlier_count, 0);
    assert_nothing(DELAY_MS, WALL_MS);
}

static void another_map_ends_a_job_for_the_last_one(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    join("t3");
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
    assert_int_equal(rebalance_kind.fits(last_job(), s, NULL), 0);
    set("t3", NODE_UNREACHABLE);
    assert_int_equal(rebalance_kind.fits(last_job(), s, NULL), 0); /* it is waited for */
    set("t3", NODE_ACTIVE);
    join("t4");
    assert_int_equal(rebalance_kind.fits(last_job(), s, &err), E_ABORTED);
    assert_nothing(DELAY_MS, WALL_MS); /* one at a time */
    move_job(JOB_STOPPING);
    move_job(JOB_FAILED);
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
    assert_int_equal(last_job()->participant_count, 4);
}

static void a_failed_one_is_repeated_after_a_while(void **unused)
{
    (void)unused;
    join("t3");
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
    move_job(JOB_STOPPING);
    move_job(JOB_FAILED);
    assert_nothing(DELAY_MS, WALL_MS + REBALANCE_RETRY_MS - 1);
    assert_next(DELAY_MS, WALL_MS + REBALANCE_RETRY_MS, CMD_JOB_CREATE);
}

/* It ended by the clock of a primary that was an hour ahead. */
static void a_failed_one_is_repeated_though_it_ended_later_than_now(void **unused)
{
    (void)unused;
    join("t3");
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
    move_job(JOB_STOPPING);
    move_job(JOB_FAILED);
    assert_next(DELAY_MS, WALL_MS - 3600000, CMD_JOB_CREATE);
}

static void who_is_away_is_waited_for(void **unused)
{
    (void)unused;
    struct job *job;
    struct error err = ERROR_INIT;
    join("t3");
    set("t1", NODE_UNREACHABLE);
    assert_nothing(DELAY_MS, WALL_MS);
    assert_int_equal(rebalance_kind.make(s, WALL_MS, &job, &err), E_NODE_UNREACHABLE);
    assert_non_null(strstr(err.message, "'t1'"));
    set("t1", NODE_ACTIVE);
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
    assert_int_equal(rebalance_kind.make(s, WALL_MS, &job, &err), E_JOB_STATE);
}

static void it_can_be_switched_off(void **unused)
{
    (void)unused;
    struct job *job;
    apply((struct command){.kind = CMD_CONFIG_SET, .name = "rebalance", .text = "off"});
    join("t3");
    assert_nothing(100 * DELAY_MS, WALL_MS);
    assert_int_equal(rebalance_kind.make(s, WALL_MS, &job, NULL), 0); /* by hand */
    job_unref(job);
}

static void who_leaves_goes_when_it_has_nothing(void **unused)
{
    (void)unused;
    set("t2", NODE_DECOMMISSIONING);
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
    assert_int_equal(last_job()->participant_count, 2); /* it has what is to be moved */
    assert_non_null(smap_node(&s->smap, "t2"));
    finish_job();
    assert_next(DELAY_MS, WALL_MS, CMD_MOVES_DONE);
    assert_next(DELAY_MS, WALL_MS, CMD_NODE_REMOVE);
    assert_null(smap_node(&s->smap, "t2"));
    assert_nothing(DELAY_MS, WALL_MS);
}

static void who_is_removed_by_hand_is_left_out(void **unused)
{
    (void)unused;
    struct error err = ERROR_INIT;
    set("t2", NODE_DECOMMISSIONING);
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
    apply((struct command){.kind = CMD_NODE_REMOVE, .name = "t2"});
    assert_int_equal(rebalance_kind.fits(last_job(), s, &err), E_STALE_MAP);
}

#define rebalance_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        rebalance_test(a_map_that_stands_is_followed),
        rebalance_test(another_map_ends_a_job_for_the_last_one),
        rebalance_test(a_failed_one_is_repeated_after_a_while),
        rebalance_test(a_failed_one_is_repeated_though_it_ended_later_than_now),
        rebalance_test(who_is_away_is_waited_for),
        rebalance_test(it_can_be_switched_off),
        rebalance_test(who_leaves_goes_when_it_has_nothing),
        rebalance_test(who_is_removed_by_hand_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
