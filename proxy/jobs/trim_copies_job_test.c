#include "proxy/jobs/trim_copies_job.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/placement/copies_reduce.h"
#include "cluster/testing/test_state.h"
#include "common/jsonx.h"

enum { WALL_MS = 1000000 };

static const struct cluster_state *s;

static void apply(struct command cmd)
{
    test_state_apply(&s, &cmd);
}

static void join(const char *id, const char *boot)
{
    test_state_join(&s, id, boot, false);
}

static void lower(const char *name, int copies)
{
    _cleanup_json_ json_t *patch = json_pack("{s:i}", "copies", copies);
    apply((struct command){.kind = CMD_BUCKET_PROPS, .name = name, .patch = patch});
}

static void set_copies(int copies)
{
    lower("b", copies);
}

static void create(const char *name)
{
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    props.copies = 3;
    apply((struct command){.kind = CMD_BUCKET_CREATE, .name = name, .props = &props});
}

static int setup(void **unused)
{
    (void)unused;
    s = state_new("c");
    join("t1", "a");
    join("t2", "a");
    join("t3", "a");
    apply((struct command){.kind = CMD_MOVES_DONE, .placed = s->smap.placed});
    create("b");
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    state_unref(s);
    return 0;
}

/* What is next is done, and is this. */
static void assert_next(int64_t wall_ms, enum command_kind want)
{
    struct command cmd;
    assert_true(trim_copies_kind.next(s, &(struct standing_now){.wall_ms = wall_ms}, &cmd));
    assert_int_equal(cmd.kind, want);
    apply(cmd);
    job_unref((struct job *)cmd.job);
}

static void assert_nothing(int64_t wall_ms)
{
    struct command cmd;
    assert_false(trim_copies_kind.next(s, &(struct standing_now){.wall_ms = wall_ms}, &cmd));
}

static const struct job *last(void)
{
    return s->jobs.jobs[s->jobs.count - 1];
}

static void update(enum job_state state, enum job_state stop_as)
{
    struct job *j = job_copy(last());
    j->state = state;
    j->stop_as = stop_as;
    j->ended_ms = job_ended(state) ? WALL_MS : 0;
    apply((struct command){.kind = CMD_JOB_UPDATE, .job = j});
    job_unref(j);
}

static void finish(void)
{
    update(JOB_RUNNING, JOB_FAILED);
    update(JOB_COMMITTING, JOB_FAILED);
    update(JOB_FINISHED, JOB_FAILED);
}

static void stop(enum job_state as)
{
    update(JOB_STOPPING, as);
    update(as, as);
}

static bool is_open(void)
{
    return bucket_has_surplus(bmd_bucket(&s->bmd, "b"));
}

static void what_is_lowered_is_removed_and_forgotten(void **unused)
{
    (void)unused;
    assert_nothing(WALL_MS);
    set_copies(1);
    assert_next(WALL_MS, CMD_JOB_CREATE);
    assert_int_equal(last()->participant_count, 3);
    assert_nothing(WALL_MS);
    finish();
    assert_true(is_open());
    assert_next(WALL_MS, CMD_COPIES_LOWERED);
    assert_false(is_open());
    assert_nothing(WALL_MS);
}

static void it_waits_for_who_is_away(void **unused)
{
    struct job *job;
    (void)unused;
    set_copies(1);
    apply((struct command){.kind = CMD_NODE_STATE, .name = "t3", .node_state = NODE_UNREACHABLE});
    assert_nothing(WALL_MS);
    assert_int_equal(trim_copies_kind.make(s, WALL_MS, &job, NULL), E_NODE_STATE);
    join("t3", "b");
    assert_nothing(WALL_MS); /* it lags */
    apply(
        (struct command){.kind = CMD_LAG_DONE, .lagged = s->smap.lagged, .placed = s->smap.placed});
    assert_next(WALL_MS, CMD_JOB_CREATE);
}

/* Whoever came back meanwhile was not through. */
static void a_job_for_another_map_ends_nothing(void **unused)
{
    (void)unused;
    set_copies(1);
    assert_next(WALL_MS, CMD_JOB_CREATE);
    assert_int_equal(trim_copies_kind.fits(last(), s, NULL), 0);
    join("t2", "b");
    assert_int_equal(trim_copies_kind.fits(last(), s, NULL), E_ABORTED);
    finish();
    apply(
        (struct command){.kind = CMD_LAG_DONE, .lagged = s->smap.lagged, .placed = s->smap.placed});
    assert_next(WALL_MS, CMD_JOB_CREATE);
    assert_true(is_open());
}

static bool names_bucket(const struct job *job, const char *name)
{
    return strstr(job->description, name) != NULL;
}

/* The one that cannot be ended neither keeps the others nor is left out. */
static void each_bucket_ends_by_itself(void **unused)
{
    (void)unused;
    create("c");
    create("d");
    set_copies(1);
    lower("c", 1);
    lower("d", 2);
    assert_next(WALL_MS, CMD_JOB_CREATE);
    assert_true(names_bucket(last(), "'b'"));
    assert_nothing(WALL_MS); /* one at a time */
    stop(JOB_FAILED);
    assert_next(WALL_MS + TRIM_RETRY_MS, CMD_JOB_CREATE); /* those that were not tried go first */
    assert_true(names_bucket(last(), "'c'"));
    finish();
    assert_next(WALL_MS, CMD_COPIES_LOWERED);
    assert_false(bucket_has_surplus(bmd_bucket(&s->bmd, "c")));
    assert_true(is_open());
    assert_next(WALL_MS, CMD_JOB_CREATE);
    assert_true(names_bucket(last(), "'d'"));
    finish();
    assert_next(WALL_MS, CMD_COPIES_LOWERED);
    assert_nothing(WALL_MS);
    assert_true(is_open());
    assert_next(WALL_MS + TRIM_RETRY_MS, CMD_JOB_CREATE);
    assert_true(names_bucket(last(), "'b'"));
    finish();
    assert_next(WALL_MS, CMD_COPIES_LOWERED);
    assert_false(is_open());
}

static void what_happens_to_another_bucket_overtakes_no_job(void **unused)
{
    (void)unused;
    create("c");
    set_copies(1);
    assert_next(WALL_MS, CMD_JOB_CREATE);
    lower("c", 2);
    assert_int_equal(trim_copies_kind.fits(last(), s, NULL), 0);
    finish();
    assert_next(WALL_MS, CMD_COPIES_LOWERED);
    assert_false(is_open());
    assert_true(bucket_has_surplus(bmd_bucket(&s->bmd, "c")));
    assert_next(WALL_MS, CMD_JOB_CREATE);
    apply((struct command){.kind = CMD_BUCKET_DESTROY, .name = "c"});
    assert_int_equal(trim_copies_kind.fits(last(), s, NULL), E_ABORTED);
}

/* What it owns now it has got from whom nothing is to be removed before. */
static void one_that_joins_has_it_begin_anew(void **unused)
{
    (void)unused;
    set_copies(1);
    assert_next(WALL_MS, CMD_JOB_CREATE);
    join("t4", "a");
    assert_int_equal(trim_copies_kind.fits(last(), s, NULL), E_ABORTED);
    stop(JOB_ABORTED);
    assert_nothing(WALL_MS);
    apply((struct command){.kind = CMD_MOVES_DONE, .placed = s->smap.placed});
    assert_next(WALL_MS, CMD_JOB_CREATE);
    assert_int_equal(last()->participant_count, 4);
}

static void lowered_once_more_it_begins_anew(void **unused)
{
    (void)unused;
    set_copies(2);
    assert_next(WALL_MS, CMD_JOB_CREATE);
    set_copies(1);
    assert_int_equal(trim_copies_kind.fits(last(), s, NULL), E_ABORTED);
    assert_nothing(WALL_MS); /* not before that one has ended */
    stop(JOB_ABORTED);
    assert_next(WALL_MS, CMD_JOB_CREATE);
}

static void a_failed_one_is_tried_again_an_aborted_one_not(void **unused)
{
    struct job *by_hand;
    (void)unused;
    assert_int_equal(trim_copies_kind.make(s, WALL_MS, &by_hand, NULL), E_INVALID);
    set_copies(1);
    assert_next(WALL_MS, CMD_JOB_CREATE);
    assert_int_equal(trim_copies_kind.make(s, WALL_MS, &by_hand, NULL), E_JOB_STATE);
    stop(JOB_FAILED);
    assert_nothing(WALL_MS + TRIM_RETRY_MS - 1);
    assert_next(WALL_MS + TRIM_RETRY_MS, CMD_JOB_CREATE);
    stop(JOB_ABORTED);
    assert_nothing(WALL_MS + 10 * TRIM_RETRY_MS);
    assert_int_equal(trim_copies_kind.make(s, WALL_MS, &by_hand, NULL), 0);
    job_unref(by_hand);
}

#define trim_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        trim_test(what_is_lowered_is_removed_and_forgotten),
        trim_test(it_waits_for_who_is_away),
        trim_test(a_job_for_another_map_ends_nothing),
        trim_test(each_bucket_ends_by_itself),
        trim_test(what_happens_to_another_bucket_overtakes_no_job),
        trim_test(one_that_joins_has_it_begin_anew),
        trim_test(lowered_once_more_it_begins_anew),
        trim_test(a_failed_one_is_tried_again_an_aborted_one_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
