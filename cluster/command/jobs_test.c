#include "cluster/testing/command_fixture.h"

static const struct job *with_state(const struct job *j, enum job_state state,
                                    enum job_state stop_as)
{
    struct job *copy = job_copy(j);
    copy->state = state;
    copy->stop_as = stop_as;
    return copy;
}

static void a_job_goes_its_way(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    const struct job *queued = job_new("srt-1", "sort");
    const struct job *running = with_state(queued, JOB_RUNNING, JOB_FAILED);
    const struct job *stopping = with_state(queued, JOB_STOPPING, JOB_ABORTED);
    const struct job *failed = with_state(queued, JOB_FAILED, JOB_ABORTED);
    const struct job *aborted = with_state(queued, JOB_ABORTED, JOB_ABORTED);
    assert_refused(s, (struct command){.kind = CMD_JOB_UPDATE, .job = queued}, E_JOB_NOT_FOUND);
    assert_refused(s, (struct command){.kind = CMD_JOB_CREATE, .job = running}, E_JOB_STATE);
    apply(&s, (struct command){.kind = CMD_JOB_CREATE, .job = queued});
    assert_unchanged(s, (struct command){.kind = CMD_JOB_CREATE, .job = queued});
    apply(&s, (struct command){.kind = CMD_JOB_UPDATE, .job = running});
    assert_refused(s, (struct command){.kind = CMD_JOB_CREATE, .job = queued}, E_EXISTS);
    assert_refused(s, (struct command){.kind = CMD_JOB_UPDATE, .job = queued}, E_JOB_STATE);
    assert_refused(s, (struct command){.kind = CMD_JOB_UPDATE, .job = aborted}, E_JOB_STATE);
    assert_refused(s, (struct command){.kind = CMD_JOB_FORGET, .name = "srt-1"}, E_JOB_STATE);
    apply(&s, (struct command){.kind = CMD_JOB_UPDATE, .job = stopping});
    /* It was decided that it ends as aborted. */
    assert_refused(s, (struct command){.kind = CMD_JOB_UPDATE, .job = failed}, E_JOB_STATE);
    apply(&s, (struct command){.kind = CMD_JOB_UPDATE, .job = aborted});
    apply(&s, (struct command){.kind = CMD_JOB_FORGET, .name = "srt-1"});
    assert_refused(s, (struct command){.kind = CMD_JOB_FORGET, .name = "srt-1"}, E_JOB_NOT_FOUND);
    job_unref(queued);
    job_unref(running);
    job_unref(stopping);
    job_unref(failed);
    job_unref(aborted);
}

static void join_target(const struct cluster_state **s, const char *id)
{
    struct node n = {.id = id,
                     .role = NODE_TARGET,
                     .public_url = "http://127.0.0.1:1",
                     .control_url = "http://127.0.0.1:2",
                     .data_url = "http://127.0.0.1:3",
                     .weight = 1024,
                     .boot = "b"};
    apply(s, (struct command){.kind = CMD_NODE_JOIN, .node = &n, .fresh = true});
}

static struct job *moved(const struct cluster_state *s, enum job_state state, uint64_t attempt,
                         const char *without)
{
    struct job *j = job_copy(s->jobs.jobs[0]);
    j->state = state;
    j->attempt = attempt;
    if (without != NULL)
        job_leave_out(j, without);
    return j;
}

static void move_to(const struct cluster_state **s, enum job_state state, uint64_t attempt,
                    const char *without)
{
    struct job *j = moved(*s, state, attempt, without);
    apply(s, (struct command){.kind = CMD_JOB_UPDATE, .job = j});
    job_unref(j);
}

static void refuse_move_to(const struct cluster_state *s, enum job_state state, uint64_t attempt,
                           const char *without)
{
    struct job *j = moved(s, state, attempt, without);
    assert_refused(s, (struct command){.kind = CMD_JOB_UPDATE, .job = j}, E_JOB_STATE);
    job_unref(j);
}

/* Where it waits for targets, and nowhere else; for ever; by another attempt where there can be
 * one.  Who was left out has missed what the decision shows, should it be back. */
static void a_job_goes_on_without_targets(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    join_target(&s, "left");
    join_target(&s, "later");
    struct job *j = job_new("srt-1", "sort");
    j->participant_count = 2;
    j->participants = xcalloc(2, sizeof *j->participants);
    j->participants[0] = xstrdup("left");
    j->participants[1] = xstrdup("later");
    apply(&s, (struct command){.kind = CMD_JOB_CREATE, .job = j});
    refuse_move_to(s, JOB_QUEUED, 0, "left");
    refuse_move_to(s, JOB_RUNNING, 0, "left");
    move_to(&s, JOB_QUEUED, 1, "left");
    job_unref(j);
    j = job_copy(s->jobs.jobs[0]);
    free(j->without[0]);
    j->without[0] = xstrdup("later");
    assert_refused(s, (struct command){.kind = CMD_JOB_UPDATE, .job = j}, E_JOB_STATE);
    move_to(&s, JOB_RUNNING, 1, NULL);
    refuse_move_to(s, JOB_QUEUED, 2, "later");
    refuse_move_to(s, JOB_RUNNING, 2, "later");
    assert_int_equal(smap_node(&s->smap, "left")->lag, LAG_NONE);
    uint64_t version = s->smap.version;
    move_to(&s, JOB_COMMITTING, 1, NULL);
    assert_int_equal(smap_node(&s->smap, "left")->lag, LAG_MISSED);
    assert_int_equal(smap_node(&s->smap, "left")->missed_since, s->version);
    assert_int_equal(smap_node(&s->smap, "later")->lag, LAG_NONE);
    assert_int_equal(s->smap.lagged, s->version);
    assert_int_equal(s->smap.version, version + 1);
    refuse_move_to(s, JOB_COMMITTING, 1, "later");
    refuse_move_to(s, JOB_FINISHED, 1, "later");
    move_to(&s, JOB_FINISHED, 1, NULL);
    job_unref(j);
}

/* Who aborts may have looked at the job before its last move. */
static void an_end_is_that_of_the_job_as_it_stands(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    join_target(&s, "left");
    struct job *j = job_new("srt-1", "sort");
    j->participant_count = 1;
    j->participants = xcalloc(1, sizeof *j->participants);
    j->participants[0] = xstrdup("left");
    apply(&s, (struct command){.kind = CMD_JOB_CREATE, .job = j});
    struct job *abort = moved(s, JOB_STOPPING, 0, NULL);
    abort->stop_as = JOB_ABORTED;
    abort->error_code = xstrdup("aborted");
    move_to(&s, JOB_QUEUED, 1, "left");
    apply(&s, (struct command){.kind = CMD_JOB_UPDATE, .job = abort});
    const struct job *stands = s->jobs.jobs[0];
    assert_int_equal(stands->state, JOB_STOPPING);
    assert_int_equal(stands->stop_as, JOB_ABORTED);
    assert_string_equal(stands->error_code, "aborted");
    assert_int_equal(stands->attempt, 1);
    assert_int_equal(stands->without_count, 1);
    /* Twice is once, and the first reason stands. */
    assert_unchanged(s, (struct command){.kind = CMD_JOB_UPDATE, .job = abort});
    struct job *fail = job_copy(stands);
    fail->stop_as = JOB_FAILED;
    assert_refused(s, (struct command){.kind = CMD_JOB_UPDATE, .job = fail}, E_JOB_STATE);
    job_unref(fail);
    job_unref(abort);
    job_unref(j);
}

/* It shows nothing. */
static void nobody_misses_what_a_dry_run_makes(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    join_target(&s, "left");
    struct job *j = job_new("srt-1", "sort");
    j->spec = json_pack("{s:b}", "dry_run", 1);
    j->participant_count = 1;
    j->participants = xcalloc(1, sizeof *j->participants);
    j->participants[0] = xstrdup("left");
    apply(&s, (struct command){.kind = CMD_JOB_CREATE, .job = j});
    job_unref(j);
    move_to(&s, JOB_QUEUED, 1, "left");
    move_to(&s, JOB_RUNNING, 1, NULL);
    move_to(&s, JOB_COMMITTING, 1, NULL);
    assert_int_equal(smap_node(&s->smap, "left")->lag, LAG_NONE);
}

static void create_jobs(const struct cluster_state **s, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        char id[16];
        snprintf(id, sizeof id, "srt-%u", i);
        struct job *j = job_new(id, "sort");
        apply(s, (struct command){.kind = CMD_JOB_CREATE, .job = j});
        job_unref(j);
    }
}

static void the_oldest_ended_job_makes_room(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    apply(&s, (struct command){.kind = CMD_CONFIG_SET, .name = "jobs_max", .text = "3"});
    create_jobs(&s, 0, 3);
    struct job *fourth = job_new("srt-3", "sort");
    const struct command create = {.kind = CMD_JOB_CREATE, .job = fourth};
    assert_refused(s, create, E_OVERLOAD);
    const struct job *stopping = with_state(s->jobs.jobs[1], JOB_STOPPING, JOB_FAILED);
    const struct job *failed = with_state(s->jobs.jobs[1], JOB_FAILED, JOB_FAILED);
    apply(&s, (struct command){.kind = CMD_JOB_UPDATE, .job = stopping});
    apply(&s, (struct command){.kind = CMD_JOB_UPDATE, .job = failed});
    uint64_t version = s->jobs.version;
    apply(&s, create);
    assert_int_equal(s->jobs.version, version + 1);
    assert_int_equal(s->jobs.count, 3);
    assert_null(jobs_find(&s->jobs, "srt-1"));
    assert_string_equal(s->jobs.jobs[2]->id, "srt-3");
    job_unref(fourth);
    job_unref(stopping);
    job_unref(failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_goes_its_way),
        cmocka_unit_test(a_job_goes_on_without_targets),
        cmocka_unit_test(an_end_is_that_of_the_job_as_it_stands),
        cmocka_unit_test(nobody_misses_what_a_dry_run_makes),
        cmocka_unit_test(the_oldest_ended_job_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
