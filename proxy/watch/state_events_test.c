#include "proxy/watch/state_events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/members/membership.h"
#include "cluster/testing/test_state.h"
#include "common/buf.h"
#include "common/jsonx.h"
#include "proxy/watch/event_log.h"
#include "proxy/watch/node_events.h"

static struct event_log *events;
static struct event_cursor seen;

static int begin(void **state)
{
    events = event_log_new("r", 50);
    seen = (struct event_cursor){0};
    *state = (void *)state_new("c-1");
    return 0;
}

static int end(void **state)
{
    state_unref(*state);
    event_log_free(events);
    return 0;
}

/* The kinds of the events since the last call: "node_joined t1, node_active t1". */
static void told(const char *wanted)
{
    _cleanup_buf_ struct buf found = BUF_INIT;
    size_t i;
    json_t *e;
    _cleanup_json_ json_t *doc = event_log_page(events, seen, 50);
    json_array_foreach(json_object_get(doc, "events"), i, e)
    {
        static const char *const fields[] = {"node", "bucket", "job"};
        buf_printf(&found, "%s%s", i > 0 ? ", " : "",
                   json_string_value(json_object_get(e, "kind")));
        for (size_t k = 0; k < 3; k++) {
            const char *what = json_string_value(json_object_get(e, fields[k]));
            if (what != NULL)
                buf_printf(&found, " %s", what);
        }
    }
    seen.number = event_log_last(events);
    assert_string_equal(buf_str(&found), wanted);
}

static void apply(void **state, const struct command *cmd)
{
    const struct cluster_state *s = *state;
    _cleanup_state_ const struct cluster_state *before = state_ref(s);
    test_state_apply(&s, cmd);
    *state = (void *)s;
    state_events(before, s, 7, events);
}

static void join(void **state, const char *id, const char *boot)
{
    const struct cluster_state *s = *state;
    _cleanup_state_ const struct cluster_state *before = state_ref(s);
    test_state_join(&s, id, boot, false);
    *state = (void *)s;
    state_events(before, s, 7, events);
}

static void nodes_come_and_go(void **state)
{
    join(state, "t1", "boot-1");
    told("node_joined t1");
    apply(state,
          &(struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_UNREACHABLE});
    told("node_unreachable t1, node_behind t1");
    join(state, "t1", "boot-2");
    told("node_restarted t1, node_active t1, node_repaired t1");
    apply(state,
          &(struct command){
              .kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_MAINTENANCE, .force = true});
    told("node_maintenance t1");
    apply(state, &(struct command){.kind = CMD_NODE_REMOVE, .name = "t1"});
    told("node_left t1");
}

static void create(void **state, const char *name)
{
    apply(state, &(struct command){
                     .kind = CMD_BUCKET_CREATE, .name = name, .props = &bucket_props_default});
}

static void buckets_come_and_go(void **state)
{
    create(state, "b");
    told("bucket_created b");
    create(state, "a");
    told("bucket_created a");
    apply(state, &(struct command){.kind = CMD_BUCKET_RENAME, .name = "a", .text = "z"});
    told("bucket_renamed z");
    json_t *patch = json_pack("{s:b}", "verify_on_read", 1);
    apply(state, &(struct command){.kind = CMD_BUCKET_PROPS, .name = "b", .patch = patch});
    json_decref(patch);
    told("bucket_changed b");
    apply(state, &(struct command){.kind = CMD_BUCKET_DESTROY, .name = "b"});
    told("bucket_destroyed b");
    apply(state, &(struct command){.kind = CMD_BUCKET_DESTROY, .name = "z"});
    told("bucket_destroyed z");
}

/* Between two states that a proxy has seen, a name may have got another bucket. */
static void a_name_with_another_bucket_is_two_events(void **state)
{
    create(state, "b");
    told("bucket_created b");
    _cleanup_state_ const struct cluster_state *before = state_ref(*state);
    apply(state, &(struct command){.kind = CMD_BUCKET_DESTROY, .name = "b"});
    create(state, "b");
    seen.number = event_log_last(events);
    state_events(before, *state, 7, events);
    told("bucket_destroyed b, bucket_created b");
}

static void move(void **state, struct job *j, enum job_state to)
{
    j->state = to;
    j->ended_ms = job_ended(to) ? 2 : 0;
    apply(state, &(struct command){.kind = CMD_JOB_UPDATE, .job = j});
}

static void jobs_begin_and_end(void **state)
{
    struct job *j = job_new("scr-1", "scrub"), *k = job_new("scr-2", "scrub");
    apply(state, &(struct command){.kind = CMD_JOB_CREATE, .job = j});
    told("job_created scr-1");
    struct job *running = job_copy(j);
    move(state, running, JOB_RUNNING);
    told("");
    apply(state, &(struct command){.kind = CMD_JOB_CREATE, .job = k});
    told("job_created scr-2");
    struct job *committing = job_copy(running);
    move(state, committing, JOB_COMMITTING);
    told("");
    struct job *done = job_copy(committing);
    move(state, done, JOB_FINISHED);
    told("job_finished scr-1");
    struct job *stopping = job_copy(k), *aborted = job_copy(k);
    stopping->stop_as = aborted->stop_as = JOB_ABORTED;
    move(state, stopping, JOB_STOPPING);
    told("");
    move(state, aborted, JOB_ABORTED);
    told("job_aborted scr-2");
    apply(state, &(struct command){.kind = CMD_JOB_FORGET, .name = "scr-1"});
    told("");
    const struct job *const all[] = {j, k, running, committing, done, stopping, aborted};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        job_unref(all[i]);
}

static void settings_and_primaries(void **state)
{
    const struct node p = {.id = "p1",
                           .role = NODE_PROXY,
                           .public_url = "http://h:1",
                           .control_url = "http://h:2",
                           .data_url = "",
                           .boot = "x"};
    apply(state, &(struct command){.kind = CMD_TERM_BEGIN, .node = &p, .term = 5});
    told("primary p1, node_joined p1");
    apply(state, &(struct command){.kind = CMD_CONFIG_SET, .name = "nodes_max", .text = "20"});
    told("settings_changed");
}

static void keepalives_tell_of_disks(void **state)
{
    (void)state;
    const struct keepalive good = {.version = 1}, bad = {.mountpaths_missing = 1, .quarantined = 2},
                           worse = {.mountpaths_missing = 1, .quarantined = 1, .lost = 4};
    node_events("t1", &good, &good, 7, events);
    told("");
    node_events("t1", &good, &bad, 7, events);
    told("disk_missing t1, damage t1");
    node_events("t1", &bad, &worse, 7, events);
    told("lost t1");
    node_events("t1", &worse, &good, 7, events);
    told("disk_back t1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nodes_come_and_go, begin, end),
        cmocka_unit_test_setup_teardown(buckets_come_and_go, begin, end),
        cmocka_unit_test_setup_teardown(a_name_with_another_bucket_is_two_events, begin, end),
        cmocka_unit_test_setup_teardown(jobs_begin_and_end, begin, end),
        cmocka_unit_test_setup_teardown(settings_and_primaries, begin, end),
        cmocka_unit_test_setup_teardown(keepalives_tell_of_disks, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
