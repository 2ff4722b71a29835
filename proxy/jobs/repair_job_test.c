#include "proxy/jobs/repair_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/testing/test_state.h"
#include "common/jsonx.h"

enum { DELAY_MS = 10000, WALL_MS = 1000000 };

static const struct cluster_state *s;

static void apply(struct command cmd)
{
    test_state_apply(&s, &cmd);
}

static void join(const char *id, const char *boot)
{
    test_state_join(&s, id, boot, false);
}

static void set(const char *id, enum node_state state)
{
    apply((struct command){.kind = CMD_NODE_STATE, .name = id, .node_state = state});
}

static void create(const char *name, uint32_t copies)
{
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    props.copies = copies;
    apply((struct command){.kind = CMD_BUCKET_CREATE, .name = name, .props = &props});
}

static int setup(void **unused)
{
    (void)unused;
    s = state_new("c");
    join("t1", "a");
    join("t2", "a");
    join("t3", "a");
    create("b", 2);
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
    if (!repair_kind.next(s, &(struct standing_now){.stood_ms = stood_ms, .wall_ms = wall_ms},
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

static const struct job *last(void)
{
    return s->jobs.jobs[s->jobs.count - 1];
}

static void update(enum job_state state, int64_t ended_ms)
{
    struct job *j = job_copy(last());
    j->state = state;
    j->stop_as = JOB_FAILED;
    j->ended_ms = ended_ms;
    apply((struct command){.kind = CMD_JOB_UPDATE, .job = j});
    job_unref(j);
}

static void finish(void)
{
    update(JOB_RUNNING, 0);
    update(JOB_COMMITTING, 0);
    update(JOB_FINISHED, WALL_MS);
}

static enum node_lag lag_of(const char *id)
{
    return smap_node(&s->smap, id)->lag;
}

static void nothing_lags_nothing_is_done(void **unused)
{
    (void)unused;
    assert_nothing(DELAY_MS, WALL_MS);
}

static void a_lag_is_repaired_after_a_while(void **unused)
{
    (void)unused;
    join("t1", "b");
    assert_nothing(DELAY_MS - 1, WALL_MS);
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
    assert_int_equal(last()->participant_count, 3);
    assert_nothing(DELAY_MS, WALL_MS);
    assert_int_equal(lag_of("t1"), LAG_RESTARTED);
    finish();
    assert_next(0, WALL_MS, CMD_LAG_DONE);
    assert_int_equal(lag_of("t1"), LAG_NONE);
    assert_nothing(DELAY_MS, WALL_MS);
}

/* Nobody could be compared with it; what the others have is as it should be. */
static void who_is_away_is_not_repaired(void **unused)
{
    (void)unused;
    set("t1", NODE_UNREACHABLE);
    assert_nothing(DELAY_MS, WALL_MS);
    join("t2", "b");
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
    assert_int_equal(last()->participant_count, 2);
    finish();
    assert_next(0, WALL_MS, CMD_LAG_DONE);
    assert_int_equal(lag_of("t1"), LAG_MISSED);
    assert_int_equal(lag_of("t2"), LAG_NONE);
    assert_nothing(DELAY_MS, WALL_MS);
    set("t1", NODE_ACTIVE);
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
    finish();
    assert_next(0, WALL_MS, CMD_LAG_DONE);
    assert_int_equal(lag_of("t1"), LAG_NONE);
}

static void a_job_for_another_map_ends(void **unused)
{
    (void)unused;
    join("t1", "b");
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
    assert_int_equal(repair_kind.fits(last(), s, NULL), 0);
    join("t2", "b");
    assert_int_equal(repair_kind.fits(last(), s, NULL), E_ABORTED);
    assert_nothing(DELAY_MS, WALL_MS); /* not before that one has ended */
    finish();
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE); /* it says nothing of t2 */
}

static void raised_copies_are_filled(void **unused)
{
    (void)unused;
    _cleanup_json_ json_t *patch = json_pack("{s:i}", "copies", 3);
    apply((struct command){.kind = CMD_BUCKET_PROPS, .name = "b", .patch = patch});
    assert_int_equal(bmd_bucket(&s->bmd, "b")->filled, 2);
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
    finish();
    assert_next(0, WALL_MS, CMD_COPIES_FILLED);
    assert_int_equal(bmd_bucket(&s->bmd, "b")->filled, 3);
    assert_nothing(DELAY_MS, WALL_MS);
}

static void a_failed_one_is_tried_again_an_aborted_one_not(void **unused)
{
    (void)unused;
    join("t1", "b");
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
    update(JOB_STOPPING, 0);
    update(JOB_FAILED, WALL_MS);
    assert_nothing(DELAY_MS, WALL_MS + REPAIR_RETRY_MS - 1);
    assert_next(DELAY_MS, WALL_MS + REPAIR_RETRY_MS, CMD_JOB_CREATE);
    struct job *j = job_copy(last());
    j->state = JOB_STOPPING;
    j->stop_as = JOB_ABORTED;
    apply((struct command){.kind = CMD_JOB_UPDATE, .job = j});
    j->state = JOB_ABORTED;
    apply((struct command){.kind = CMD_JOB_UPDATE, .job = j});
    job_unref(j);
    assert_nothing(DELAY_MS, WALL_MS + 10 * REPAIR_RETRY_MS);
    struct job *by_hand;
    assert_int_equal(repair_kind.make(s, WALL_MS, &by_hand, NULL), 0);
    job_unref(by_hand);
}

static void it_waits_for_moves(void **unused)
{
    (void)unused;
    join("t1", "b");
    join("t4", "a");
    assert_nothing(DELAY_MS, WALL_MS);
    apply((struct command){.kind = CMD_MOVES_DONE, .placed = s->smap.placed});
    assert_next(DELAY_MS, WALL_MS, CMD_JOB_CREATE);
}

static void without_copies_a_lag_is_just_forgotten(void **unused)
{
    (void)unused;
    join("t1", "b");
    apply((struct command){.kind = CMD_BUCKET_DESTROY, .name = "b"});
    assert_next(0, WALL_MS, CMD_LAG_DONE);
    assert_int_equal(lag_of("t1"), LAG_NONE);
    assert_nothing(DELAY_MS, WALL_MS);
    struct job *none;
    assert_int_equal(repair_kind.make(s, WALL_MS, &none, NULL), E_INVALID);
}

static void off_means_off(void **unused)
{
    (void)unused;
    apply((struct command){.kind = CMD_CONFIG_SET, .name = "repair", .text = "false"});
    join("t1", "b");
    assert_nothing(DELAY_MS, WALL_MS);
}

#define repair_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        repair_test(nothing_lags_nothing_is_done),
        repair_test(a_lag_is_repaired_after_a_while),
        repair_test(who_is_away_is_not_repaired),
        repair_test(a_job_for_another_map_ends),
        repair_test(raised_copies_are_filled),
        repair_test(a_failed_one_is_tried_again_an_aborted_one_not),
        repair_test(it_waits_for_moves),
        repair_test(without_copies_a_lag_is_just_forgotten),
        repair_test(off_means_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
