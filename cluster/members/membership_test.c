#include "cluster/members/membership.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/command/command.h"
#include "cluster/members/lease.h"

enum { TIMEOUT = 5000 };

static const struct membership_rules rules = {.self = "p1", .timeout_ms = TIMEOUT};

static struct node target(const char *boot, const char *url)
{
    return (struct node){
        .id = "t1",
        .role = NODE_TARGET,
        .public_url = url,
        .control_url = url,
        .data_url = url,
        .boot = boot,
    };
}

/* The map after this command; the one before is released. */
static void commit(const struct cluster_state **s, const struct command *cmd)
{
    const struct cluster_state *next;
    assert_int_equal(command_apply(*s, cmd, &next, NULL), 0);
    state_unref(*s);
    *s = next;
}

static void joins(const struct cluster_state **s, const struct node *n)
{
    commit(s, &(struct command){.kind = CMD_NODE_JOIN, .node = n});
}

static int keepalive(struct membership *m, const struct cluster_state *s, const char *boot,
                     uint64_t now)
{
    const struct keepalive k = {.id = "t1", .boot = boot};
    return membership_keepalive(m, &s->smap, &k, now, NULL);
}

static enum node_state verdict(struct membership *m, const struct cluster_state *s, uint64_t now)
{
    struct verdict out[8];
    size_t count = membership_tick(m, &s->smap, now, out);
    if (count == 0)
        return smap_node(&s->smap, "t1")->state;
    assert_int_equal(count, 1);
    assert_string_equal(out[0].id, "t1");
    return out[0].state;
}

/* Ticks in between, so that the primary has not paused. */
static enum node_state ticks_until(struct membership *m, const struct cluster_state *s,
                                   uint64_t from, uint64_t to)
{
    for (uint64_t now = from; now < to; now += TIMEOUT / 10)
        verdict(m, s, now);
    return verdict(m, s, to);
}

static void silence_is_given_up_and_life_taken_back(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct membership *m = membership_new(&rules, 0);
    struct node t = target("a", "http://h:1");
    assert_int_equal(membership_register(m, &s->smap, &t, 100, NULL), 0);
    joins(&s, &t);
    assert_int_equal(keepalive(m, s, "a", 200), 0);
    assert_int_equal(ticks_until(m, s, 200, 200 + TIMEOUT), NODE_ACTIVE);
    assert_int_equal(verdict(m, s, 201 + TIMEOUT), NODE_UNREACHABLE);
    commit(&s,
           &(struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_UNREACHABLE});
    assert_int_equal(verdict(m, s, 300 + TIMEOUT), NODE_UNREACHABLE);
    assert_int_equal(keepalive(m, s, "a", 400 + TIMEOUT), 0);
    assert_int_equal(verdict(m, s, 400 + TIMEOUT), NODE_ACTIVE);
    membership_free(m);
}

static void a_primary_that_just_began_judges_nobody(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct node t = target("a", "http://h:1");
    joins(&s, &t);
    struct membership *m = membership_new(&rules, 1000000);
    assert_int_equal(ticks_until(m, s, 1000000, 1000000 + TIMEOUT), NODE_ACTIVE);
    assert_int_equal(verdict(m, s, 1000001 + TIMEOUT), NODE_UNREACHABLE);
    membership_free(m);
}

static void a_primary_that_paused_judges_nobody(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct node t = target("a", "http://h:1");
    joins(&s, &t);
    struct membership *m = membership_new(&rules, 0);
    assert_int_equal(keepalive(m, s, "a", 10), 0);
    verdict(m, s, 100);
    uint64_t woken = 100 + 10 * TIMEOUT;
    assert_int_equal(ticks_until(m, s, woken, woken + TIMEOUT), NODE_ACTIVE);
    assert_int_equal(verdict(m, s, woken + TIMEOUT + 1), NODE_UNREACHABLE);
    membership_free(m);
}

static void an_unreachable_node_is_not_taken_back_for_a_new_clock(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct node t = target("a", "http://h:1");
    joins(&s, &t);
    commit(&s,
           &(struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_UNREACHABLE});
    struct membership *m = membership_new(&rules, 50);
    /* Another process asks for the id: that is no life of the node itself. */
    struct node other = target("b", "http://h:2");
    assert_int_equal(membership_register(m, &s->smap, &other, 60, NULL), E_EXISTS);
    assert_int_equal(verdict(m, s, 70), NODE_UNREACHABLE);
    membership_free(m);
}

static void a_restarted_node_is_let_in_at_once(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct membership *m = membership_new(&rules, 0);
    struct node first = target("a", "http://h:1");
    struct node second = target("b", "http://h:1");
    assert_int_equal(membership_register(m, &s->smap, &first, 10, NULL), 0);
    joins(&s, &first);
    assert_int_equal(membership_register(m, &s->smap, &second, 20, NULL), 0);
    /* Its join is not committed yet: neither run can keep alive. */
    assert_int_equal(keepalive(m, s, "a", 21), E_NODE_NOT_FOUND);
    assert_int_equal(keepalive(m, s, "b", 21), E_NODE_NOT_FOUND);
    joins(&s, &second);
    assert_int_equal(keepalive(m, s, "b", 22), 0);
    /* A late message of the run before. */
    assert_int_equal(keepalive(m, s, "a", 23), E_NODE_NOT_FOUND);
    assert_int_equal(membership_register(m, &s->smap, &first, 24, NULL), E_EXISTS);
    assert_int_equal(keepalive(m, s, "b", 25), 0);
    membership_free(m);
}

static void a_second_node_with_the_id_is_refused_while_the_first_lives(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct membership *m = membership_new(&rules, 0);
    struct node first = target("a", "http://h:1");
    struct node second = target("b", "http://h:2");
    assert_int_equal(membership_register(m, &s->smap, &first, 10, NULL), 0);
    struct error err = ERROR_INIT;
    /* Also before the first one's join is committed. */
    assert_int_equal(membership_register(m, &s->smap, &second, 20, &err), E_EXISTS);
    assert_non_null(strstr(err.message, "http://h:1"));
    joins(&s, &first);
    assert_int_equal(membership_register(m, &s->smap, &second, 10 + TIMEOUT, NULL), E_EXISTS);
    assert_int_equal(membership_register(m, &s->smap, &second, 11 + TIMEOUT, NULL), 0);
    joins(&s, &second);
    assert_int_equal(keepalive(m, s, "b", 12 + TIMEOUT), 0);
    membership_free(m);
}

static void after_a_restart_of_the_primary_the_old_node_may_still_live(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct node first = target("a", "http://h:1");
    joins(&s, &first);
    struct membership *m = membership_new(&rules, 1000);
    struct node second = target("b", "http://h:2");
    assert_int_equal(membership_register(m, &s->smap, &second, 1100, NULL), E_EXISTS);
    assert_int_equal(keepalive(m, s, "a", 1200), 0);
    struct node again = target("c", "http://h:1");
    assert_int_equal(membership_register(m, &s->smap, &again, 1300, NULL), 0);
    membership_free(m);
}

static void the_primary_guards_its_own_id(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct membership *m = membership_new(&rules, 0);
    struct node n = target("a", "http://h:1");
    n.id = "p1";
    assert_int_equal(membership_register(m, &s->smap, &n, 99999, NULL), E_EXISTS);
    membership_free(m);
}

static void the_last_report_is_kept(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct membership *m = membership_new(&rules, 0);
    struct node t = target("a", "http://h:1");
    struct keepalive last;
    assert_int_equal(membership_register(m, &s->smap, &t, 10, NULL), 0);
    joins(&s, &t);
    assert_false(membership_last(m, "t1", &last));
    assert_int_equal(membership_silent_ms(m, "t1", 15), 0); /* nothing to be late with */
    const struct keepalive k = {.id = "t1", .boot = "a", .version = 7, .total_bytes = 9};
    assert_int_equal(membership_keepalive(m, &s->smap, &k, 20, NULL), 0);
    assert_true(membership_last(m, "t1", &last));
    assert_int_equal(last.version, 7);
    assert_int_equal(last.total_bytes, 9);
    assert_int_equal(membership_silent_ms(m, "t1", 20), 0);
    assert_int_equal(membership_silent_ms(m, "t1", 75), 55);
    assert_int_equal(membership_silent_ms(m, "t9", 75), 0);
    membership_free(m);
}

static void says(struct membership *m, const struct cluster_state *s, uint64_t missing,
                 uint64_t now)
{
    const struct keepalive k = {.id = "t1", .boot = "a", .mountpaths_missing = missing};
    assert_int_equal(membership_keepalive(m, &s->smap, &k, now, NULL), 0);
}

/* One verdict, committed. */
static void judged_absent(struct membership *m, const struct cluster_state **s, uint64_t now,
                          bool absent)
{
    struct verdict v;
    assert_int_equal(membership_tick(m, &(*s)->smap, now, &v), 1);
    assert_true(v.stays);
    assert_int_equal(v.absent, absent);
    assert_int_equal(membership_lease_ms(m, &(*s)->smap, "t1"), 0); /* it is on its way */
    const struct command cmd = verdict_command(&v, 0);
    commit(s, &cmd);
    if (verdict_gives_up(&v))
        membership_judged(m, &(*s)->smap, "t1", false);
    assert_int_equal(smap_node(&(*s)->smap, "t1")->absent_since != 0, absent);
}

static void who_lacks_mountpaths_is_absent(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct membership *m = membership_new(&rules, 0);
    struct node t = target("a", "http://h:1");
    assert_int_equal(membership_register(m, &s->smap, &t, 10, NULL), 0);
    joins(&s, &t);
    says(m, s, 0, 20);
    assert_true(membership_lease_ms(m, &s->smap, "t1") > 0);
    says(m, s, 1, 30);
    assert_int_equal(membership_lease_ms(m, &s->smap, "t1"), 0);
    judged_absent(m, &s, 40, true);
    says(m, s, 1, 50);
    assert_int_equal(verdict(m, s, 60), NODE_ACTIVE);
    says(m, s, 0, 70);
    judged_absent(m, &s, 80, false);
    says(m, s, 0, 90);
    assert_true(membership_lease_ms(m, &s->smap, "t1") > 0);
    membership_free(m);
}

static void who_leaves_and_is_silent_is_absent(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct membership *m = membership_new(&rules, 0);
    struct node t = target("a", "http://h:1");
    uint64_t now = 100;
    assert_int_equal(membership_register(m, &s->smap, &t, now, NULL), 0);
    joins(&s, &t);
    says(m, s, 0, now);
    commit(&s,
           &(struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_MAINTENANCE});
    assert_int_equal(ticks_until(m, s, now, now + TIMEOUT), NODE_MAINTENANCE);
    now += TIMEOUT + 1;
    judged_absent(m, &s, now, true);
    assert_int_equal(ticks_until(m, s, now, now + TIMEOUT), NODE_MAINTENANCE);
    now += TIMEOUT;
    says(m, s, 0, now);
    judged_absent(m, &s, now, false);
    membership_free(m);
}

static void a_lease_is_for_who_is_not_given_up(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct membership *m = membership_new(&rules, 0);
    struct node t = target("a", "http://h:1");
    assert_int_equal(membership_lease_ms(m, &s->smap, "t1"), 0);
    assert_int_equal(membership_register(m, &s->smap, &t, 100, NULL), 0);
    joins(&s, &t);
    assert_int_equal(keepalive(m, s, "a", 200), 0);
    uint64_t lease_ms = membership_lease_ms(m, &s->smap, "t1");
    assert_true(lease_ms > 0 && lease_ms < TIMEOUT);

    /* Heard again while the verdict is on its way; twice, for a tick gives it out again. */
    assert_int_equal(ticks_until(m, s, 200, 200 + TIMEOUT), NODE_ACTIVE);
    assert_int_equal(verdict(m, s, 201 + TIMEOUT), NODE_UNREACHABLE);
    assert_int_equal(verdict(m, s, 202 + TIMEOUT), NODE_UNREACHABLE);
    assert_int_equal(keepalive(m, s, "a", 203 + TIMEOUT), 0);
    assert_int_equal(membership_lease_ms(m, &s->smap, "t1"), 0);
    membership_judged(m, &s->smap, "t1", false);
    assert_int_equal(membership_lease_ms(m, &s->smap, "t1"), 0);
    commit(&s,
           &(struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_UNREACHABLE});
    membership_judged(m, &s->smap, "t1", false);
    assert_int_equal(membership_lease_ms(m, &s->smap, "t1"), 0);
    commit(&s, &(struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_ACTIVE});
    assert_int_equal(membership_lease_ms(m, &s->smap, "t1"), lease_ms);
    membership_free(m);
}

/* A write that failed may have been one: what it said may be found when the primary starts again.
 */
static void a_failed_verdict_is_doubted_until_the_map_changes(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct membership *m = membership_new(&rules, 0);
    struct node t = target("a", "http://h:1");
    assert_int_equal(membership_register(m, &s->smap, &t, 100, NULL), 0);
    joins(&s, &t);
    assert_int_equal(ticks_until(m, s, 200, 200 + TIMEOUT), NODE_UNREACHABLE);
    unsigned verdicts = 0;
    do {
        membership_judged(m, &s->smap, "t1", true);
    } while (++verdicts < 20);
    assert_int_equal(keepalive(m, s, "a", 300 + TIMEOUT), 0);
    assert_int_equal(membership_lease_ms(m, &s->smap, "t1"), 0);
    struct node other = target("a", "http://h:9");
    other.id = "t2";
    joins(&s, &other);
    assert_true(membership_lease_ms(m, &s->smap, "t1") > 0);
    membership_free(m);
}

/* Another run of the target, whose join is not in the map yet. */
static void a_lease_is_not_for_an_earlier_run(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct membership *m = membership_new(&rules, 0);
    struct node t = target("a", "http://h:1");
    assert_int_equal(membership_register(m, &s->smap, &t, 100, NULL), 0);
    joins(&s, &t);
    t = target("b", "http://h:1");
    assert_int_equal(membership_register(m, &s->smap, &t, 200, NULL), 0);
    assert_int_equal(membership_lease_ms(m, &s->smap, "t1"), 0);
    membership_free(m);
}

static struct node named(const char *id, const char *url)
{
    struct node n = target("a", url);
    n.id = id;
    return n;
}

static void gives_up(const struct cluster_state **s, const char *id)
{
    commit(s,
           &(struct command){.kind = CMD_NODE_STATE, .name = id, .node_state = NODE_UNREACHABLE});
}

static void an_address_is_taken_when_its_node_is_given_up(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct membership *m = membership_new(&rules, 0);
    struct node t1 = named("t1", "http://h:1"), t2 = named("t2", "http://h:2");
    struct node newcomer = named("t3", "http://h:3");
    struct error err = ERROR_INIT;
    joins(&s, &t1);
    joins(&s, &t2);
    assert_int_equal(membership_register(m, &s->smap, &t1, 100, NULL), 0);
    /* Any of its addresses. */
    newcomer.data_url = "http://h:1";
    assert_int_equal(membership_register(m, &s->smap, &newcomer, 2 * TIMEOUT, &err), E_EXISTS);
    assert_non_null(strstr(err.message, "belongs to node 't1'"));
    gives_up(&s, "t1");
    assert_int_equal(membership_register(m, &s->smap, &newcomer, 2 * TIMEOUT, NULL), 0);
    joins(&s, &newcomer);
    /* It is the newcomer's now: no sign of life of the other one counts, also a late one. */
    assert_int_equal(keepalive(m, s, "a", 2 * TIMEOUT), E_NODE_NOT_FOUND);
    assert_int_equal(membership_register(m, &s->smap, &t1, 2 * TIMEOUT, NULL), E_EXISTS);
    t1 = named("t1", "http://h:4");
    assert_int_equal(membership_register(m, &s->smap, &t1, 2 * TIMEOUT, NULL), 0);
    membership_free(m);
}

/* A node that leaves is not given up: silence tells that it is gone. */
static void an_address_of_a_node_that_leaves_is_taken_when_it_is_silent(void **unused)
{
    (void)unused;
    _cleanup_state_ const struct cluster_state *s = state_new("c");
    struct membership *m = membership_new(&rules, 0);
    struct node t1 = named("t1", "http://h:1"), t2 = named("t2", "http://h:1");
    assert_int_equal(membership_register(m, &s->smap, &t1, 100, NULL), 0);
    joins(&s, &t1);
    commit(&s,
           &(struct command){.kind = CMD_NODE_STATE, .name = "t1", .node_state = NODE_MAINTENANCE});
    assert_int_equal(membership_register(m, &s->smap, &t2, 100 + TIMEOUT, NULL), E_EXISTS);
    assert_int_equal(membership_register(m, &s->smap, &t2, 101 + TIMEOUT, NULL), 0);
    joins(&s, &t2);
    membership_free(m);
    /* A primary that has just begun heard neither: who is active by the map stays. */
    m = membership_new(&rules, 1000000);
    const struct keepalive k = {.id = "t2", .boot = "a"};
    assert_int_equal(membership_keepalive(m, &s->smap, &k, 1000001, NULL), 0);
    t2.boot = "b";
    assert_int_equal(membership_register(m, &s->smap, &t2, 1000002, NULL), 0);
    membership_free(m);
}

static void a_lease_counts_from_when_it_was_asked_for(void **unused)
{
    (void)unused;
    struct lease l = {0};
    assert_false(lease_holds(&l, 0));
    lease_grant(&l, 1000, lease_for(4000));
    assert_true(lease_holds(&l, 3999));
    assert_false(lease_holds(&l, 4000));
    lease_grant(&l, 500, lease_for(4000)); /* an answer that comes late */
    lease_grant(&l, 1500, 0);
    assert_true(lease_holds(&l, 3999));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_given_up_and_life_taken_back),
        cmocka_unit_test(a_primary_that_just_began_judges_nobody),
        cmocka_unit_test(a_primary_that_paused_judges_nobody),
        cmocka_unit_test(an_unreachable_node_is_not_taken_back_for_a_new_clock),
        cmocka_unit_test(a_restarted_node_is_let_in_at_once),
        cmocka_unit_test(a_second_node_with_the_id_is_refused_while_the_first_lives),
        cmocka_unit_test(after_a_restart_of_the_primary_the_old_node_may_still_live),
        cmocka_unit_test(the_primary_guards_its_own_id),
        cmocka_unit_test(the_last_report_is_kept),
        cmocka_unit_test(who_lacks_mountpaths_is_absent),
        cmocka_unit_test(who_leaves_and_is_silent_is_absent),
        cmocka_unit_test(a_lease_is_for_who_is_not_given_up),
        cmocka_unit_test(a_failed_verdict_is_doubted_until_the_map_changes),
        cmocka_unit_test(a_lease_is_not_for_an_earlier_run),
        cmocka_unit_test(an_address_is_taken_when_its_node_is_given_up),
        cmocka_unit_test(an_address_of_a_node_that_leaves_is_taken_when_it_is_silent),
        cmocka_unit_test(a_lease_counts_from_when_it_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
