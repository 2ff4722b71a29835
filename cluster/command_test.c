#include "cluster/command.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/random_command.h"
#include "common/jsonx.h"
#include "common/mem.h"

/* Applies a command that must succeed; `*s` becomes its result. */
static void apply(const struct cluster_state **s, struct command cmd)
{
    const struct cluster_state *next;
    struct error err = ERROR_INIT;
    if (command_apply(*s, &cmd, &next, &err) != 0)
        fail_msg("%s", err.message);
    state_unref(*s);
    *s = next;
}

static void assert_refused(const struct cluster_state *s, struct command cmd, int code)
{
    const struct cluster_state *next = NULL;
    struct error err = ERROR_INIT;
    assert_int_equal(command_apply(s, &cmd, &next, &err), code);
    assert_int_equal(err.code, code);
    assert_true(err.message[0] != '\0');
    assert_null(next);
}

static void assert_unchanged(const struct cluster_state *s, struct command cmd)
{
    const struct cluster_state *next = NULL;
    assert_int_equal(command_apply(s, &cmd, &next, NULL), 0);
    assert_ptr_equal(next, s);
    state_unref(next);
}

static const struct node t1 = {
    .id = "t1",
    .role = NODE_TARGET,
    .public_url = "http://h:1",
    .control_url = "http://h:2",
    .data_url = "http://h:3",
    .weight = 1024,
    .boot = "b1",
};
static const struct node p1 = {
    .id = "p1",
    .role = NODE_PROXY,
    .public_url = "http://h:4",
    .control_url = "http://h:5",
    .data_url = "",
    .boot = "b1",
};
static const struct bucket_props props = BUCKET_PROPS_DEFAULT;

static const struct cluster_state *cluster(void)
{
    const struct cluster_state *s = state_new("c-test");
    apply(&s, (struct command){.kind = CMD_TERM_BEGIN, .node = &p1, .term = 1, .wall_ms = 100});
    apply(&s, (struct command){.kind = CMD_NODE_JOIN, .node = &t1, .wall_ms = 200});
    return s;
}

static void a_term_begins_with_its_primary(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    assert_int_equal(s->term, 1);
    assert_string_equal(s->primary, "p1");
    assert_int_equal(smap_node(&s->smap, "p1")->since_ms, 100);
    assert_unchanged(s, (struct command){.kind = CMD_TERM_BEGIN, .node = &p1, .term = 1});
    struct node other = p1;
    other.id = "p2";
    assert_refused(s, (struct command){.kind = CMD_TERM_BEGIN, .node = &other, .term = 1},
                   E_STALE_MAP);
    assert_refused(s, (struct command){.kind = CMD_TERM_BEGIN, .node = &t1, .term = 2}, E_INVALID);
    apply(&s, (struct command){.kind = CMD_TERM_BEGIN, .node = &other, .term = 2});
    assert_int_equal(s->term, 2);
    assert_int_equal(s->version, 3);
    assert_string_equal(s->primary, "p2");
    assert_int_equal(s->term_version, 3);
}

static void a_node_joins_once_and_may_come_back(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    const struct command join = {.kind = CMD_NODE_JOIN, .node = &t1, .wall_ms = 900};
    assert_unchanged(s, join);
    apply(&s, (struct command){.kind = CMD_NODE_STATE,
                               .name = "t1",
                               .node_state = NODE_UNREACHABLE,
                               .wall_ms = 300});
    assert_int_equal(smap_node(&s->smap, "t1")->since_ms, 300);
    apply(&s, join);
    assert_int_equal(smap_node(&s->smap, "t1")->state, NODE_ACTIVE);
    assert_int_equal(smap_node(&s->smap, "t1")->since_ms, 900);
    struct node proxy = t1;
    proxy.role = NODE_PROXY;
    assert_refused(s, (struct command){.kind = CMD_NODE_JOIN, .node = &proxy}, E_EXISTS);
}

/* What one holds that was removed may have been written anew, or deleted, since. */
static void a_new_target_comes_with_nothing(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    struct node t2 = t1;
    t2.id = "t2";
    struct node p2 = p1;
    p2.id = "p2";
    struct command join = {.kind = CMD_NODE_JOIN, .node = &t2};
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props});
    assert_refused(s, join, E_MOUNTPATH);
    apply(&s, (struct command){.kind = CMD_NODE_JOIN, .node = &p2});
    apply(&s, (struct command){.kind = CMD_NODE_JOIN, .node = &t1});
    assert_int_equal(s->smap.earlier_count, 0);
    join.fresh = true;
    apply(&s, join);
    assert_non_null(smap_node(&s->smap, "t2"));
    assert_int_equal(s->smap.earlier_count, 1);
}

/* From the command that changes who owns until the moves by that very set are said to be done. */
static void earlier_owners_are_remembered(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    struct node t2 = t1;
    t2.id = "t2";
    const struct command join = {.kind = CMD_NODE_JOIN, .node = &t2, .fresh = true};
    struct command state = {.kind = CMD_NODE_STATE, .name = "t2"};
    apply(&s, join);
    assert_int_equal(s->smap.earlier_count, 0); /* there are no buckets */
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props});
    uint64_t placed = s->smap.placed;
    state.node_state = NODE_UNREACHABLE;
    apply(&s, state);
    state.node_state = NODE_ACTIVE;
    apply(&s, state);
    assert_int_equal(s->smap.placed, placed); /* who comes and goes owns all the time */
    state.node_state = NODE_UNREACHABLE;
    apply(&s, state);
    state.node_state = NODE_MAINTENANCE;
    assert_refused(s, state, E_NODE_STATE); /* it could not send what it has */
    state.node_state = NODE_ACTIVE;
    apply(&s, state);
    state.node_state = NODE_MAINTENANCE;
    apply(&s, state);
    assert_refused(
        s,
        (struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_DECOMMISSIONING},
        E_NODE_STATE); /* nobody could take what it has */
    assert_int_equal(s->smap.placed, s->smap.version);
    assert_int_equal(s->smap.earlier_count, 1);
    assert_int_equal(s->smap.earlier[0].number, placed);
    assert_int_equal(s->smap.earlier[0].count, 2);
    assert_string_equal(s->smap.earlier[0].members[1].id, "t2");
    struct command done = {.kind = CMD_MOVES_DONE, .placed = placed};
    assert_refused(s, done, E_STALE_MAP);
    state.node_state = NODE_DECOMMISSIONING;
    apply(&s, state);
    assert_int_equal(s->smap.earlier_count, 1); /* it owned nothing before, either */
    done.placed = s->smap.placed;
    apply(&s, done);
    assert_int_equal(s->smap.earlier_count, 0);
    assert_unchanged(s, done);
    apply(&s, (struct command){.kind = CMD_NODE_REMOVE, .name = "t2"});
    assert_int_equal(s->smap.earlier_count, 0);
}

/* Directories that nothing is mounted on, for instance: its objects would seem not to exist. */
static void a_target_that_knows_nothing_any_more_is_not_let_in(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    struct node again = t1;
    again.boot = "another";
    const struct command join = {.kind = CMD_NODE_JOIN, .node = &again, .fresh = true};
    apply(&s, join); /* there are no objects yet that could be missing */
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props});
    assert_unchanged(s, join); /* the same process repeats its call */
    again.boot = "a third";
    assert_refused(s, join, E_MOUNTPATH);
    apply(&s, (struct command){.kind = CMD_NODE_JOIN, .node = &again});
}

static void maintenance_outlasts_a_join(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    apply(&s,
          (struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_MAINTENANCE});
    struct node again = t1;
    again.boot = "b2";
    apply(&s, (struct command){.kind = CMD_NODE_JOIN, .node = &again});
    assert_int_equal(smap_node(&s->smap, "t1")->state, NODE_MAINTENANCE);
    assert_string_equal(smap_node(&s->smap, "t1")->boot, "b2");
    assert_refused(
        s, (struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_UNREACHABLE},
        E_NODE_STATE);
}

static void the_primary_stays(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    struct command down = {.kind = CMD_NODE_STATE, .name = "p1", .node_state = NODE_UNREACHABLE};
    assert_refused(s, down, E_NODE_STATE);
    assert_refused(s, (struct command){.kind = CMD_NODE_REMOVE, .name = "p1"}, E_NODE_STATE);
}

static void a_node_is_removed_only_when_it_is_away(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    const struct command leave = {.kind = CMD_NODE_REMOVE, .name = "t1"};
    assert_refused(s, leave, E_NODE_STATE);
    apply(&s,
          (struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_UNREACHABLE});
    apply(&s, leave);
    assert_null(smap_node(&s->smap, "t1"));
    assert_refused(s, leave, E_NODE_NOT_FOUND);
}

static void a_limit_holds_for_nodes(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    apply(&s, (struct command){.kind = CMD_CONFIG_SET, .name = "nodes_max", .text = "2"});
    struct node more = t1;
    more.id = "t2";
    assert_refused(s, (struct command){.kind = CMD_NODE_JOIN, .node = &more}, E_OVERLOAD);
    struct node again = t1;
    again.boot = "b9";
    apply(&s, (struct command){.kind = CMD_NODE_JOIN, .node = &again});
}

static void bucket_ids_are_never_used_twice(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    const struct command create = {
        .kind = CMD_BUCKET_CREATE, .name = "b", .props = &props, .wall_ms = 5};
    apply(&s, create);
    assert_int_equal(bmd_bucket(&s->bmd, "b")->id, 1);
    assert_int_equal(bmd_bucket(&s->bmd, "b")->created_ms, 5);
    assert_refused(s, create, E_BUCKET_EXISTS);
    apply(&s, (struct command){.kind = CMD_BUCKET_DESTROY, .name = "b"});
    assert_refused(s, (struct command){.kind = CMD_BUCKET_DESTROY, .name = "b"},
                   E_BUCKET_NOT_FOUND);
    apply(&s, create);
    assert_int_equal(bmd_bucket(&s->bmd, "b")->id, 2);
    assert_null(bmd_bucket_by_id(&s->bmd, 1));
    assert_string_equal(bmd_bucket_by_id(&s->bmd, 2)->name, "b");
}

static void bucket_props_are_checked(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    struct bucket_props p = props;
    struct command cmd = {.kind = CMD_BUCKET_CREATE, .name = "b", .props = &p};
    p.copies = COPIES_MAX + 1;
    assert_refused(s, cmd, E_INVALID);
    p.copies = 0;
    assert_refused(s, cmd, E_INVALID);
    p = props;
    p.backend = "http://h";
    p.write_policy = WRITE_POLICY_THROUGH;
    assert_refused(s, cmd, E_UNSUPPORTED);
    p = props;
    p.ec_data = 2;
    p.ec_parity = 1;
    p.copies = 2;
    p.write_quorum = WRITE_MAJORITY;
    assert_refused(s, cmd, E_UNSUPPORTED);
    p.write_quorum = WRITE_ALL;
    p.backend = "s3://b";
    assert_refused(s, cmd, E_UNSUPPORTED);
    p = props;
    cmd.name = "-b";
    assert_refused(s, cmd, E_NAME);
    cmd.name = "b";
    apply(&s, cmd);
}

static void a_patch_changes_only_what_it_names(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props});
    static const struct {
        const char *patch;
        int code;
    } rows[] = {
        {"{\"durability\": \"async\"}", 0},
        {"{\"verify_on_read\": true}", 0},
        {"{\"copies\": 99}", E_INVALID},
        {"{\"copies\": 0}", E_INVALID},
        {"{\"copies\": \"1\"}", E_JSON},
        {"{\"backend\": \"s3://x\"}", E_INVALID},
        {"{\"durability\": \"x\"}", E_INVALID},
        {"{\"ec\": {\"data\": 2, \"parity\": 1}}", E_INVALID}, /* it has its objects whole */
        {"{\"ec\": {\"data\": 0, \"parity\": 1}}", E_INVALID},
        {"{\"ec\": {\"data\": 2, \"parity\": 1}, \"copies\": 3}", E_INVALID},
        {"{\"ec\": {\"data\": 2}}", E_JSON},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        _cleanup_json_ json_t *patch = NULL;
        assert_int_equal(json_parse(rows[i].patch, strlen(rows[i].patch), &patch, NULL), 0);
        struct command cmd = {.kind = CMD_BUCKET_PROPS, .name = "b", .patch = patch};
        if (rows[i].code != 0) {
            assert_refused(s, cmd, rows[i].code);
            continue;
        }
        apply(&s, cmd);
        assert_unchanged(s, cmd);
        cmd.name = "none";
        assert_refused(s, cmd, E_BUCKET_NOT_FOUND);
    }
    const struct bucket_props *now = &bmd_bucket(&s->bmd, "b")->props;
    assert_int_equal(now->durability, DURABILITY_ASYNC);
    assert_true(now->verify_on_read);
    assert_int_equal(now->checksum, CHECKSUM_XXH3);
}

static void settings_are_checked_and_go_back(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = cluster();
    struct command set = {.kind = CMD_CONFIG_SET, .name = "buckets_max", .text = "1"};
    apply(&s, set);
    assert_string_equal(config_get(&s->config, "buckets_max"), "1");
    assert_unchanged(s, set);
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE, .name = "a", .props = &props});
    assert_refused(s, (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props},
                   E_OVERLOAD);
    set.text = "none";
    assert_refused(s, set, E_INVALID);
    set.text = "0";
    assert_refused(s, set, E_INVALID);
    set.text = NULL;
    apply(&s, set);
    assert_null(config_get(&s->config, "buckets_max"));
    assert_unchanged(s, set);
    assert_refused(s, (struct command){.kind = CMD_CONFIG_SET, .name = "nothing", .text = "1"},
                   E_NOT_FOUND);
}

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

/* --- every command, in every kind of state --------------------------------------------------- */

static uint64_t parts_changed(const struct cluster_state *a, const struct cluster_state *b)
{
    return (b->smap.version - a->smap.version) + (b->bmd.version - a->bmd.version) +
           (b->config.version - a->config.version) + (b->jobs.version - a->jobs.version);
}

static char *text_of(const struct cluster_state *s)
{
    _cleanup_json_ json_t *doc = state_to_json(s);
    return json_text(doc);
}

static void check_one(const struct cluster_state **s, const struct command *cmd, uint64_t seed)
{
    _cleanup_free_ char *before = text_of(*s);
    _cleanup_state_ const struct cluster_state *next = NULL;
    int r = command_apply(*s, cmd, &next, NULL);
    _cleanup_free_ char *after = text_of(*s);
    if (strcmp(before, after) != 0)
        fail_msg("seed %" PRIu64 ": a command of kind %d changed its input", seed, cmd->kind);
    if (r != 0 || next == *s)
        return;
    if (next->version != (*s)->version + 1 || parts_changed(*s, next) != 1)
        fail_msg("seed %" PRIu64 ": kind %d took version %" PRIu64 " to %" PRIu64, seed, cmd->kind,
                 (*s)->version, next->version);
    _cleanup_state_ const struct cluster_state *again = NULL;
    if (command_apply(next, cmd, &again, NULL) == 0 && again != next)
        fail_msg("seed %" PRIu64 ": kind %d is not idempotent", seed, cmd->kind);
    state_unref(*s);
    *s = steal(next);
}

static void commands_are_pure_idempotent_and_count(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        _cleanup_state_ const struct cluster_state *s = state_new("c-random");
        for (unsigned step = 0; step < 150; step++) {
            struct arena *a = arena_new(512);
            struct command cmd = random_command(&rng, s, a);
            struct command *copy = command_copy(&cmd);
            job_unref(cmd.job);
            json_decref(cmd.patch);
            arena_free(a);
            check_one(&s, copy, seed); /* the copy stands alone */
            command_free(copy);
        }
        assert_true(s->version > 20);
    }
}

static struct command rename_to(const char *name, const char *to)
{
    return (struct command){.kind = CMD_BUCKET_RENAME, .name = name, .text = to};
}

static void test_bucket_rename_keeps_all_but_the_name(void **state)
{
    (void)state;
    const struct cluster_state *s = cluster();
    static const char *const names[] = {"m", "a", "z"};
    for (size_t i = 0; i < 3; i++)
        apply(&s, (struct command){
                      .kind = CMD_BUCKET_CREATE, .name = names[i], .props = &props, .wall_ms = 7});
    const struct bucket before = *bmd_bucket(&s->bmd, "m");
    uint64_t version = s->version;
    uint64_t bmd_version = s->bmd.version;
    static const char *const turns[] = {"m", "zz", "b", "0", "m"};
    for (size_t i = 1; i < 5; i++) {
        apply(&s, rename_to(turns[i - 1], turns[i]));
        assert_null(bmd_bucket(&s->bmd, turns[i - 1]));
        const struct bucket *b = bmd_bucket(&s->bmd, turns[i]);
        assert_int_equal(b->id, before.id);
        assert_int_equal(b->created_ms, before.created_ms);
        assert_int_equal(s->version, version + i);
        assert_int_equal(s->bmd.version, bmd_version + i);
        assert_int_equal(s->bmd.count, 3);
        assert_non_null(bmd_bucket(&s->bmd, "a"));
        assert_non_null(bmd_bucket(&s->bmd, "z"));
    }
    assert_unchanged(s, rename_to("m", "m"));
    assert_refused(s, rename_to("m", "a"), E_BUCKET_EXISTS);
    assert_refused(s, rename_to("none", "b"), E_BUCKET_NOT_FOUND);
    assert_refused(s, rename_to("m", "-no"), E_NAME);
    state_unref(s);
}

static void test_a_bucket_in_use_is_not_renamed(void **state)
{
    (void)state;
    const struct cluster_state *s = cluster();
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE, .name = "a", .props = &props});
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props});
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE, .name = "c", .props = &props});
    struct job *job = job_new("cpy-1", "copy");
    job->plan = json_pack("{s:I, s:I}", "input_bucket_id", (json_int_t)bmd_bucket(&s->bmd, "a")->id,
                          "output_bucket_id", (json_int_t)bmd_bucket(&s->bmd, "b")->id);
    apply(&s, (struct command){.kind = CMD_JOB_CREATE, .job = job});
    assert_refused(s, rename_to("a", "x"), E_JOB_STATE);
    assert_refused(s, rename_to("b", "x"), E_JOB_STATE);
    apply(&s, rename_to("c", "x"));
    static const enum job_state moves[] = {JOB_STOPPING, JOB_FAILED};
    for (size_t i = 0; i < 2; i++) {
        struct job *next = job_copy(job);
        next->state = moves[i];
        apply(&s, (struct command){.kind = CMD_JOB_UPDATE, .job = next});
        job_unref(next);
    }
    apply(&s, rename_to("a", "y"));
    job_unref(job);
    state_unref(s);
}

static void a_restore_replaces_buckets_and_settings(void **unused)
{
    (void)unused;
    const struct cluster_state *s = cluster();
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE, .name = "kept", .props = &props});
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE, .name = "lost", .props = &props});
    apply(&s, (struct command){.kind = CMD_CONFIG_SET, .name = "jobs_max", .text = "7"});
    _cleanup_state_ const struct cluster_state *then = state_ref(s);
    apply(&s, (struct command){.kind = CMD_BUCKET_DESTROY, .name = "lost"});
    apply(&s, (struct command){.kind = CMD_BUCKET_CREATE, .name = "later", .props = &props});
    apply(&s, (struct command){.kind = CMD_CONFIG_SET, .name = "jobs_max", .text = NULL});
    struct command restore = {.kind = CMD_RESTORE,
                              .restored = then,
                              .term = 5,
                              .seen_bmd = s->bmd.version,
                              .seen_config = s->config.version};
    struct command late = restore;
    late.seen_bmd--;
    assert_refused(s, late, E_PRECONDITION);
    late = restore;
    late.seen_config++;
    assert_refused(s, late, E_PRECONDITION);
    _cleanup_state_ const struct cluster_state *before = state_ref(s);
    struct command *copy = command_copy(&restore);
    apply(&s, *copy);
    command_free(copy);
    assert_non_null(bmd_bucket(&s->bmd, "kept"));
    assert_int_equal(bmd_bucket(&s->bmd, "lost")->id, bmd_bucket(&then->bmd, "lost")->id);
    assert_null(bmd_bucket(&s->bmd, "later"));
    assert_string_equal(config_get(&s->config, "jobs_max"), "7");
    assert_int_equal(s->version, before->version + 1);
    assert_int_equal(s->bmd.version, before->bmd.version + 1);
    assert_int_equal(s->smap.version, before->smap.version);
    assert_int_equal(s->next_bucket_id, before->next_bucket_id); /* ids never repeat */
    /* A new epoch: whoever has seen something later follows all the same. */
    assert_true(s->term > before->term);
    assert_int_equal(state_check_history(s, before->term, before->version + 100, NULL), 0);
    struct cluster_state *other = state_new("c-other");
    restore.restored = other;
    restore.seen_bmd = s->bmd.version;
    restore.seen_config = s->config.version;
    assert_refused(s, restore, E_WRONG_CLUSTER);
    state_unref(other);
    state_unref(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_term_begins_with_its_primary),
        cmocka_unit_test(a_node_joins_once_and_may_come_back),
        cmocka_unit_test(a_new_target_comes_with_nothing),
        cmocka_unit_test(earlier_owners_are_remembered),
        cmocka_unit_test(a_target_that_knows_nothing_any_more_is_not_let_in),
        cmocka_unit_test(maintenance_outlasts_a_join),
        cmocka_unit_test(the_primary_stays),
        cmocka_unit_test(a_node_is_removed_only_when_it_is_away),
        cmocka_unit_test(a_limit_holds_for_nodes),
        cmocka_unit_test(bucket_ids_are_never_used_twice),
        cmocka_unit_test(bucket_props_are_checked),
        cmocka_unit_test(a_patch_changes_only_what_it_names),
        cmocka_unit_test(settings_are_checked_and_go_back),
        cmocka_unit_test(a_job_goes_its_way),
        cmocka_unit_test(a_job_goes_on_without_targets),
        cmocka_unit_test(nobody_misses_what_a_dry_run_makes),
        cmocka_unit_test(the_oldest_ended_job_makes_room),
        cmocka_unit_test(commands_are_pure_idempotent_and_count),
        cmocka_unit_test(test_bucket_rename_keeps_all_but_the_name),
        cmocka_unit_test(test_a_bucket_in_use_is_not_renamed),
        cmocka_unit_test(a_restore_replaces_buckets_and_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
