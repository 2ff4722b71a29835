#include "proxy/push/push.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/command/command.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/rng.h"

/* A world of a few nodes, whose answers come when the test says so. */
struct message {
    char id[8];
    uint64_t from; /* version with which a difference begins; 0: whole */
    uint64_t term, version;
    void (*done)(void *arg, const struct push_reply *r, const struct error *err);
    void *arg;
};

struct world {
    const struct cluster_state *state;
    struct message messages[32];
    size_t count;
    unsigned sent;
    unsigned settled;
    bool deltas; /* the nodes read differences */
};

static const struct cluster_state *world_state(void *ctx)
{
    const struct world *w = ctx;
    return state_ref(w->state);
}

static void world_send(void *ctx, const struct node *n, const struct cluster_state *from,
                       const struct cluster_state *s,
                       void (*done)(void *arg, const struct push_reply *r, const struct error *err),
                       void *arg)
{
    struct world *w = ctx;
    struct message *m = &w->messages[w->count++];
    *m = (struct message){.from = from != NULL ? from->version : 0,
                          .term = s->term,
                          .version = s->version,
                          .done = done,
                          .arg = arg};
    snprintf(m->id, sizeof m->id, "%s", n->id);
    w->sent++;
}

static void apply(struct world *w, const struct command *cmd)
{
    const struct cluster_state *next;
    assert_int_equal(command_apply(w->state, cmd, &next, NULL), 0);
    state_unref(w->state);
    w->state = next;
}

static void join_as(struct world *w, const char *id, const char *boot)
{
    const struct node n = {
        .id = id,
        .role = id[0] == 'p' ? NODE_PROXY : NODE_TARGET,
        .public_url = "http://h:1",
        .control_url = "http://h:2",
        .data_url = "http://h:3",
        .boot = boot,
    };
    apply(w, &(struct command){.kind = CMD_NODE_JOIN, .node = &n});
}

static void set_state(struct world *w, const char *id, enum node_state state)
{
    apply(w, &(struct command){.kind = CMD_NODE_STATE, .name = id, .node_state = state});
}

static struct pusher *pusher_in(struct world *w)
{
    const struct pusher_env env = {.ctx = w, .state = world_state, .send = world_send};
    w->state = state_new("c");
    log_set_level(LOG_OFF);
    join_as(w, "p1", "a");
    return pusher_new(&env, "p1", NULL);
}

static void reply(const struct world *w, const struct message *m, uint64_t version,
                  const struct error *err)
{
    const struct push_reply r = {.term = m->term, .version = version, .deltas = w->deltas};
    m->done(m->arg, &r, err);
}

/* The message to `id`, which must be under way, is answered. */
static void answer_code(struct world *w, const char *id, int code)
{
    for (size_t i = 0; i < w->count; i++) {
        struct message m = w->messages[i];
        if (strcmp(m.id, id) != 0)
            continue;
        w->messages[i] = w->messages[--w->count];
        struct error err;
        error_set(&err, code, "no");
        reply(w, &m, m.version, code == 0 ? NULL : &err);
        return;
    }
    fail_msg("nothing is under way to %s", id);
}

static void answer(struct world *w, const char *id, bool success)
{
    answer_code(w, id, success ? 0 : E_NET);
}

static void count_settled(void *arg)
{
    ++*(unsigned *)arg;
}

static void leave(struct world *w, struct pusher *ps)
{
    pusher_close(ps);
    unsigned sent = w->sent;
    while (w->count > 0) {
        struct message m = w->messages[--w->count];
        reply(w, &m, m.version, NULL);
    }
    assert_int_equal(w->sent, sent); /* closed is closed */
    pusher_free(ps);
    state_unref(w->state);
}

static void every_node_is_told_once(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_in(&w);
    join_as(&w, "t1", "a");
    join_as(&w, "t2", "a");
    pusher_publish(ps, 1000);
    assert_int_equal(w.sent, 2);
    pusher_publish(ps, 1000);
    pusher_tick(ps, 1050);
    assert_int_equal(w.sent, 2); /* one at a time */
    answer(&w, "t1", true);
    answer(&w, "t2", true);
    pusher_tick(ps, 1100);
    assert_int_equal(w.sent, 2);
    leave(&w, ps);
}

static void what_changes_meanwhile_goes_with_the_next(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_in(&w);
    join_as(&w, "t1", "a");
    pusher_publish(ps, 1000);
    for (int i = 0; i < 5; i++) {
        join_as(&w, "t1", i % 2 ? "a" : "b");
        pusher_publish(ps, 1000);
    }
    assert_int_equal(w.sent, 1);
    answer(&w, "t1", true);
    assert_int_equal(w.sent, 2);
    assert_int_equal(w.messages[0].version, w.state->version);
    answer(&w, "t1", true);
    assert_int_equal(w.sent, 2);
    leave(&w, ps);
}

static void failures_are_repeated_ever_later(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_in(&w);
    join_as(&w, "t1", "a");
    uint64_t now = 1000;
    pusher_publish(ps, now);
    for (uint64_t wait = 100; wait < 40000; wait *= 2) {
        uint64_t real = wait < 5000 ? wait : 5000;
        answer(&w, "t1", false);
        unsigned sent = w.sent;
        pusher_tick(ps, now + real - 1);
        assert_int_equal(w.sent, sent);
        pusher_tick(ps, now += real);
        assert_int_equal(w.sent, sent + 1);
    }
    /* A new run is not made to wait for what its predecessor did. */
    answer(&w, "t1", false);
    unsigned sent = w.sent;
    join_as(&w, "t1", "b");
    pusher_publish(ps, now + 1);
    assert_int_equal(w.sent, sent + 1);
    answer(&w, "t1", true);
    leave(&w, ps);
}

static void a_node_that_stays_behind_does_not_spin(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_in(&w);
    join_as(&w, "t1", "a");
    pusher_publish(ps, 1000);
    struct message m = w.messages[--w.count];
    reply(&w, &m, 0, NULL);
    assert_int_equal(w.sent, 1);
    pusher_tick(ps, 1100);
    assert_int_equal(w.sent, 2);
    leave(&w, ps);
}

static void a_node_that_left_is_forgotten(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_in(&w);
    join_as(&w, "t1", "a");
    pusher_publish(ps, 1000);
    set_state(&w, "t1", NODE_UNREACHABLE);
    apply(&w, &(struct command){.kind = CMD_NODE_REMOVE, .name = "t1"});
    pusher_publish(ps, 1001);
    answer(&w, "t1", true);
    assert_int_equal(w.count, 0);
    join_as(&w, "t1", "a");
    pusher_publish(ps, 1002);
    assert_int_equal(w.count, 1); /* as one that knows nothing */
    leave(&w, ps);
}

static void settled_is_when_every_active_proxy_has_it(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_in(&w);
    pusher_settle(ps, w.state, SETTLE_PROXIES, 9000, count_settled, &w.settled);
    assert_int_equal(w.settled, 1); /* alone: at once */
    join_as(&w, "p2", "a");
    join_as(&w, "p3", "a");
    join_as(&w, "t1", "a");
    set_state(&w, "p3", NODE_UNREACHABLE);
    pusher_publish(ps, 1000);
    pusher_settle(ps, w.state, SETTLE_PROXIES, 9000, count_settled, &w.settled);
    answer(&w, "t1", true);
    assert_int_equal(w.settled, 1);
    answer(&w, "p2", true);
    assert_int_equal(w.settled, 2);
    set_state(&w, "p3", NODE_ACTIVE);
    pusher_publish(ps, 1001);
    answer(&w, "p2", true);
    pusher_settle(ps, w.state, SETTLE_PROXIES, 9000, count_settled, &w.settled);
    assert_int_equal(w.settled, 2);
    answer(&w, "p3", false); /* it is not waited for until it answers again */
    assert_int_equal(w.settled, 3);
    leave(&w, ps);
}

static void a_wider_scope_waits_for_active_targets(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_in(&w);
    join_as(&w, "p2", "a");
    join_as(&w, "t1", "a");
    join_as(&w, "t2", "a");
    set_state(&w, "t2", NODE_UNREACHABLE);
    pusher_publish(ps, 1000);
    pusher_settle(ps, w.state, SETTLE_NODES, 9000, count_settled, &w.settled);
    answer(&w, "p2", true);
    assert_int_equal(w.settled, 0);
    answer(&w, "t1", true);
    assert_int_equal(w.settled, 1);
    leave(&w, ps);
}

static void settling_ends_at_its_deadline(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_in(&w);
    join_as(&w, "p2", "a");
    pusher_publish(ps, 1000);
    pusher_settle(ps, w.state, SETTLE_PROXIES, 2000, count_settled, &w.settled);
    pusher_tick(ps, 1999);
    assert_int_equal(w.settled, 0);
    pusher_tick(ps, 2000);
    assert_int_equal(w.settled, 1);
    pusher_settle(ps, w.state, SETTLE_PROXIES, 9000, count_settled, &w.settled);
    leave(&w, ps);
    assert_int_equal(w.settled, 2); /* nobody is left waiting */
}

static void change(struct world *w, struct pusher *ps)
{
    apply(w, &(struct command){.kind = CMD_CONFIG_SET,
                               .name = "rebalance",
                               .text = config_get(&w->state->config, "rebalance") ? NULL : "off"});
    pusher_publish(ps, 1000);
}

/* A node of the release before says nothing of differences. */
static void a_node_that_reads_differences_gets_them(void **unused)
{
    (void)unused;
    for (int deltas = 0; deltas < 2; deltas++) {
        struct world w = {.deltas = deltas};
        struct pusher *ps = pusher_in(&w);
        join_as(&w, "t1", "a");
        pusher_publish(ps, 1000);
        assert_int_equal(w.messages[0].from, 0); /* nothing is known of it */
        uint64_t first = w.messages[0].version;
        change(&w, ps);
        change(&w, ps);
        answer(&w, "t1", true);
        assert_int_equal(w.messages[0].version, first + 2);
        assert_int_equal(w.messages[0].from, deltas ? first : 0);
        answer(&w, "t1", true);
        join_as(&w, "t1", "b"); /* another run, perhaps of another release */
        pusher_publish(ps, 1000);
        assert_int_equal(w.messages[0].from, 0);
        leave(&w, ps);
    }
}

/* t1 reads differences, and has just been sent its first one. */
static struct pusher *pusher_with_a_difference(struct world *w)
{
    w->deltas = true;
    struct pusher *ps = pusher_in(w);
    join_as(w, "t1", "a");
    pusher_publish(ps, 1000);
    answer(w, "t1", true);
    change(w, ps);
    return ps;
}

/* A difference was taken, and its reply was lost; meanwhile there is another state. */
static void a_node_goes_on_from_what_it_says_that_it_holds(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_with_a_difference(&w);
    uint64_t taken = w.state->version;
    answer_code(&w, "t1", E_TIMEOUT);
    change(&w, ps);
    pusher_tick(ps, 2000);
    struct message m = w.messages[--w.count];
    assert_int_equal(m.from, taken - 1);
    reply(&w, &m, taken, NULL);
    assert_int_equal(w.messages[0].from, taken);
    m = w.messages[--w.count];
    reply(&w, &m, taken, NULL); /* the same again: it gets the whole */
    assert_int_equal(w.messages[0].from, 0);
    leave(&w, ps);
}

static void a_node_that_holds_another_state_gets_the_whole_at_once(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_with_a_difference(&w);
    struct message m = w.messages[--w.count];
    assert_true(m.from > 0);
    reply(&w, &m, m.from - 1, NULL);
    assert_int_equal(w.count, 1);
    assert_int_equal(w.messages[0].from, 0);
    answer(&w, "t1", true);
    change(&w, ps);
    assert_true(w.messages[0].from > 0);
    leave(&w, ps);
}

/* The whole is larger: where the network is what fails, it would fail all the more. */
static void a_difference_without_a_reply_is_repeated(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_with_a_difference(&w);
    for (uint64_t now = 2000; now < 60000; now += 10000) {
        answer_code(&w, "t1", now < 30000 ? E_NET : E_TIMEOUT);
        pusher_tick(ps, now);
        assert_true(w.messages[0].from > 0);
    }
    leave(&w, ps);
}

static void a_difference_that_is_refused_is_followed_by_the_whole(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_with_a_difference(&w);
    answer_code(&w, "t1", E_IO);
    pusher_tick(ps, 2000);
    assert_int_equal(w.messages[0].from, 0);
    leave(&w, ps);
}

/* It is no failure: who waits for the node waits for the whole. */
static void a_difference_that_does_not_fit_is_followed_by_the_whole_at_once(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_with_a_difference(&w);
    pusher_settle(ps, w.state, SETTLE_NODES, 9000, count_settled, &w.settled);
    answer_code(&w, "t1", E_INVALID);
    assert_int_equal(w.settled, 0);
    assert_int_equal(w.messages[0].from, 0);
    answer(&w, "t1", true);
    assert_int_equal(w.settled, 1);
    change(&w, ps);
    assert_true(w.messages[0].from > 0); /* the next one may fit */
    pusher_settle(ps, w.state, SETTLE_NODES, 9000, count_settled, &w.settled);
    for (int i = 0; i < 2; i++) /* the whole does not fit either: this is one */
        answer_code(&w, "t1", E_UNSUPPORTED);
    assert_int_equal(w.settled, 2);
    leave(&w, ps);
}

/* Its replies change between two states, as those of two processes under one address would. */
static void a_node_whose_word_does_not_hold_gets_the_whole(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_with_a_difference(&w);
    uint64_t first = w.state->version;
    change(&w, ps);
    change(&w, ps);
    answer(&w, "t1", true);
    const uint64_t begins_with[] = {first, first + 1, 0};
    const uint64_t holds[] = {first + 1, first, first + 2};
    for (size_t i = 0; i < 3; i++) {
        struct message m = w.messages[--w.count];
        assert_int_equal(m.from, begins_with[i]);
        reply(&w, &m, holds[i], NULL);
    }
    leave(&w, ps);
}

/* It has not failed: it is waited for, and asked again. */
static void a_node_that_is_busy_is_still_awaited(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_with_a_difference(&w);
    pusher_settle(ps, w.state, SETTLE_NODES, 90000, count_settled, &w.settled);
    answer_code(&w, "t1", E_OVERLOAD);
    assert_int_equal(w.settled, 0);
    pusher_tick(ps, 2000);
    assert_true(w.messages[0].from > 0);
    answer(&w, "t1", true);
    assert_int_equal(w.settled, 1);
    leave(&w, ps);
}

/* The reply of the run before says nothing of what the new one has. */
static void a_late_reply_of_an_earlier_run_is_not_believed(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_with_a_difference(&w);
    join_as(&w, "t1", "b");
    pusher_publish(ps, 1000);
    pusher_settle(ps, w.state, SETTLE_NODES, 90000, count_settled, &w.settled);
    struct message late = w.messages[--w.count];
    reply(&w, &late, w.state->version, NULL);
    assert_int_equal(w.settled, 0);
    assert_int_equal(w.count, 1);
    assert_int_equal(w.messages[0].from, 0);
    answer(&w, "t1", true);
    assert_int_equal(w.settled, 1);
    leave(&w, ps);
}

/* A new primary begins with the difference from what the last one has left, which the runs that
 * were in the map then most likely have. */
static void another_primary_sends_differences(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_with_a_difference(&w);
    answer(&w, "t1", true);
    pusher_close(ps);
    pusher_free(ps);
    const struct pusher_env env = {.ctx = &w, .state = world_state, .send = world_send};
    uint64_t left = w.state->version;
    ps = pusher_new(&env, "p1", w.state);
    join_as(&w, "t2", "a"); /* joins with the first change of the new term */
    join_as(&w, "t3", "a");
    pusher_publish(ps, 1000);
    assert_int_equal(w.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(w.messages[i].from, strcmp(w.messages[i].id, "t1") == 0 ? left : 0);
    struct message m = w.messages[0];
    w.messages[0] = w.messages[--w.count];
    assert_string_equal(m.id, "t1");
    reply(&w, &m, left - 1, NULL); /* it was behind */
    assert_int_equal(w.messages[2].from, 0);
    leave(&w, ps);
}

static void states_are_kept_while_a_message_may_begin_with_them(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct pusher *ps = pusher_with_a_difference(&w);
    uint64_t sent = w.state->version;
    for (int i = 0; i < 3; i++)
        change(&w, ps);
    assert_int_equal(pusher_kept(ps), 5); /* what it has, what was sent, and three since */
    answer(&w, "t1", true);
    assert_int_equal(w.messages[0].from, sent);
    answer(&w, "t1", true);
    change(&w, ps);
    assert_int_equal(pusher_kept(ps), 2);
    leave(&w, ps);
}

static void a_node_far_behind_gets_the_whole(void **unused)
{
    (void)unused;
    for (int changes = PUSH_HISTORY - 1; changes <= PUSH_HISTORY; changes++) {
        struct world w = {.deltas = true};
        struct pusher *ps = pusher_in(&w);
        join_as(&w, "t1", "a");
        pusher_publish(ps, 1000);
        for (int i = 0; i < changes; i++)
            change(&w, ps);
        answer(&w, "t1", true);
        assert_true((w.messages[0].from > 0) == (changes < PUSH_HISTORY));
        leave(&w, ps);
    }
}

/* However answers fail and come late, in the end all have the last state. */
static void all_have_it_in_the_end(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        struct world w = {.deltas = seed % 2};
        struct pusher *ps = pusher_in(&w);
        uint64_t now = 1000;
        for (int step = 0; step < 400; step++) {
            now += rng_below(&rng, 60);
            if (step < 300 && rng_below(&rng, 5) == 0) {
                char id[8];
                snprintf(id, sizeof id, "t%u", (unsigned)rng_below(&rng, 5));
                join_as(&w, id, rng_below(&rng, 2) ? "a" : "b");
                pusher_publish(ps, now);
            }
            if (w.count > 0 && rng_below(&rng, 2))
                answer(&w, w.messages[rng_below(&rng, w.count)].id,
                       step >= 300 || rng_below(&rng, 2));
            pusher_tick(ps, now);
        }
        for (now += 5000; w.count > 0;)
            answer(&w, w.messages[0].id, true);
        pusher_tick(ps, now);
        while (w.count > 0)
            answer(&w, w.messages[0].id, true);
        unsigned sent = w.sent;
        pusher_tick(ps, now + 10000);
        if (w.sent != sent)
            fail_msg("seed %" PRIu64 ": somebody does not have the last state", seed);
        leave(&w, ps);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_node_is_told_once),
        cmocka_unit_test(what_changes_meanwhile_goes_with_the_next),
        cmocka_unit_test(a_node_that_reads_differences_gets_them),
        cmocka_unit_test(a_node_goes_on_from_what_it_says_that_it_holds),
        cmocka_unit_test(a_node_that_holds_another_state_gets_the_whole_at_once),
        cmocka_unit_test(a_difference_without_a_reply_is_repeated),
        cmocka_unit_test(a_difference_that_is_refused_is_followed_by_the_whole),
        cmocka_unit_test(a_difference_that_does_not_fit_is_followed_by_the_whole_at_once),
        cmocka_unit_test(a_node_whose_word_does_not_hold_gets_the_whole),
        cmocka_unit_test(a_node_that_is_busy_is_still_awaited),
        cmocka_unit_test(a_late_reply_of_an_earlier_run_is_not_believed),
        cmocka_unit_test(another_primary_sends_differences),
        cmocka_unit_test(states_are_kept_while_a_message_may_begin_with_them),
        cmocka_unit_test(a_node_far_behind_gets_the_whole),
        cmocka_unit_test(failures_are_repeated_ever_later),
        cmocka_unit_test(a_node_that_stays_behind_does_not_spin),
        cmocka_unit_test(a_node_that_left_is_forgotten),
        cmocka_unit_test(settled_is_when_every_active_proxy_has_it),
        cmocka_unit_test(a_wider_scope_waits_for_active_targets),
        cmocka_unit_test(settling_ends_at_its_deadline),
        cmocka_unit_test(all_have_it_in_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
