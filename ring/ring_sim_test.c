/* Keepers, lanes and a head, under messages that are late or lost, targets that restart or are
 * away, damage that a restart finds, and keepers that are deposed in the middle of a swap.
 * Asserted at every step:
 *
 *   - a generation has exactly cap samples, and begins in each lane where the last one ended
 *   - it has only acknowledged samples; what it passes over is damaged
 *   - of several that one head adds, each is in that head, and stays in the next one
 *   - nothing is released that a reader of a kept generation needs
 *   - what is dropped was asked for by its lane, and is in no generation
 *   - a paused ring has no new generation
 *   - no generation follows one that a group has not acknowledged, if the group calls often enough
 *   - with `consumed` none follows one that no group has acknowledged, whoever calls
 *
 * In the end every acknowledged sample has been in one generation, was dropped, or is damaged. */
#include "ring/keeper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/rng.h"

enum {
    NODES = 4,
    LANES = 100,
    MESSAGES = 64,
    STEPS = 1500,
    LATE_MS = 30000,
    FRESH_MS = 3000,
    GROUPS = 2,
    LEASE_MS = 1200
};

struct sim_lane {
    char name[RING_LANE_MAX];
    int node;
    uint64_t first, count, sealed, released;
    uint64_t drop_to; /* the greatest that it has asked for */
    bool closed, removed;
    size_t holes_count;
    struct ring_range holes[RING_HOLES_MAX];
};

struct sim_message { /* a report on its way, or a head */
    bool is_put;
    uint64_t due_ms, version;
    int from, to;
    size_t count;
    struct ring_report *reports;
    struct ring_head next;
};

struct sim_group {
    char name[RING_GROUP_MAX];
    uint64_t called_ms, steady_ms; /* its last call; since when there was none too late */
};

struct sim {
    struct rng rng;
    uint64_t now_ms, version; /* of the stored head */
    struct ring_head head;
    struct ring_rules rules;
    bool up[NODES];
    struct ring_keeper *keepers[NODES];
    uint64_t loaded_version[NODES];
    int leader;
    size_t lanes_count, messages_count;
    struct sim_lane lanes[LANES];
    struct sim_group groups[GROUPS];
    uint64_t awaited; /* swaps that came when each group had acknowledged the last one */
    uint64_t done;    /* the last generation that a group has acknowledged */
    uint64_t consumed_swaps;
    struct sim_message messages[MESSAGES];
    uint64_t swaps, several, acknowledged, passed, dropped; /* several: heads with more than one */
    bool is_partial_ok, is_settling, drops, has_groups;
};

static bool chance(struct sim *s, uint64_t one_in)
{
    return rng_below(&s->rng, one_in) == 0;
}

static struct sim_lane *lane_of(struct sim *s, const char *name)
{
    for (size_t i = 0; i < s->lanes_count; i++) {
        if (strcmp(s->lanes[i].name, name) == 0)
            return &s->lanes[i];
    }
    fail_msg("no lane %s", name);
    return NULL;
}

/* --- the store -------------------------------------------------------------------------------- */

static uint64_t holes_within(const struct sim_lane *l, uint64_t from, uint64_t to)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < l->holes_count; i++) {
        const uint64_t a = l->holes[i].from > from ? l->holes[i].from : from;
        const uint64_t b = l->holes[i].to < to ? l->holes[i].to : to;
        sum += a < b ? b - a : 0;
    }
    return sum;
}

/* What is in no generation, and could be. */
static uint64_t left(const struct sim *s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->lanes_count; i++) {
        const struct sim_lane *l = &s->lanes[i];
        sum += l->count - l->sealed - holes_within(l, l->sealed, l->count);
    }
    return sum;
}

static void check_generation(struct sim *s, const struct ring_generation *g)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < g->count; i++) {
        struct sim_lane *l = lane_of(s, g->cuts[i].lane);
        const uint64_t passed = g->cuts[i].from - l->sealed;
        assert_true(g->cuts[i].from >= l->sealed);
        assert_int_equal(holes_within(l, l->sealed, g->cuts[i].from), passed);
        s->passed += passed;
        assert_true(g->cuts[i].to <= l->count);
        l->sealed = g->cuts[i].to;
        sum += g->cuts[i].to - g->cuts[i].from;
    }
    assert_true(sum == s->rules.cap || (s->is_partial_ok && sum < s->rules.cap));
}

/* What is dropped was asked for by its lane, and in no generation. */
static void check_dropped(struct sim *s, const struct ring_head *next)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < next->lanes_count; i++) {
        struct sim_lane *l = lane_of(s, next->lanes[i].lane);
        const uint64_t taken = next->lanes[i].taken;
        if (taken <= l->sealed)
            continue;
        assert_true(s->drops);
        assert_true(taken <= l->drop_to);
        const uint64_t passed = holes_within(l, l->sealed, taken);
        sum += taken - l->sealed - passed;
        s->passed += passed;
        l->sealed = taken;
    }
    s->dropped += sum;
}

/* With the old head: groups that call often enough have acknowledged its generation. */
static void check_groups(struct sim *s)
{
    for (size_t i = 0; i < s->head.groups_count; i++) {
        const struct ring_group *g = &s->head.groups[i];
        const struct sim_group *known = &s->groups[g->name[0] - 'a'];
        const bool is_steady = s->now_ms - known->called_ms <= LEASE_MS / 2 &&
                               s->now_ms - known->steady_ms >= LEASE_MS;
        assert_true(!is_steady || g->done == s->head.generation || s->head.generations_count == 0 ||
                    s->is_partial_ok);
        s->awaited += is_steady && g->done == s->head.generation;
    }
}

/* Each new generation is in the head, and will be in the next one. */
static void check_swaps(struct sim *s, const struct ring_head *next)
{
    const uint64_t swaps = next->generation - s->head.generation;
    assert_true(next->generation > s->head.generation && swaps <= next->generations_count);
    assert_true(swaps == 1 || 2 * swaps <= s->rules.keep + 1);
    assert_true(swaps == 1 || !s->rules.consumed);
    for (size_t i = next->generations_count - (size_t)swaps; i < next->generations_count; i++) {
        assert_int_equal(next->generations[i].number,
                         next->generation + i + 1 - next->generations_count);
        check_generation(s, &next->generations[i]);
    }
    s->swaps += swaps;
    s->several += swaps > 1;
}

/* A conditional PUT. */
static bool put(struct sim *s, uint64_t version, const struct ring_head *next)
{
    if (version != s->version)
        return false;
    assert_true(next->generations_count <= s->rules.keep + 1);
    if (next->generation == s->head.generation) {
        check_dropped(s, next);
    } else {
        check_swaps(s, next);
        check_groups(s);
        assert_true(!s->rules.consumed || s->done == s->head.generation || s->is_partial_ok ||
                    s->head.generations_count == 0);
        s->consumed_swaps += s->rules.consumed && !s->is_partial_ok;
    }
    ring_head_done(&s->head);
    ring_head_copy(next, &s->head);
    s->version++;
    return true;
}

/* --- lanes ------------------------------------------------------------------------------------ */

static struct sim_lane *open_lane(struct sim *s, int node)
{
    for (size_t i = 0; i < s->lanes_count; i++) {
        if (s->lanes[i].node == node && !s->lanes[i].closed)
            return &s->lanes[i];
    }
    if (s->lanes_count == LANES)
        return NULL;
    struct sim_lane *l = &s->lanes[s->lanes_count];
    *l = (struct sim_lane){.node = node};
    snprintf(l->name, sizeof l->name, "t%d.%zu", node, s->lanes_count++);
    return l;
}

static void push(struct sim *s, int node)
{
    struct sim_lane *l = s->up[node] ? open_lane(s, node) : NULL;
    const uint64_t count = 1 + rng_below(&s->rng, 8);
    if (l == NULL)
        return;
    l->count += count;
    s->acknowledged += count;
}

/* A start finds the damage; it does not count what is damaged at the end. */
static void damage(struct sim *s, struct sim_lane *l)
{
    const uint64_t least = l->holes_count > 0 ? l->holes[l->holes_count - 1].to : l->first;
    if (l->count <= least || l->holes_count == RING_HOLES_MAX || !chance(s, 3))
        return;
    const uint64_t from = least + rng_below(&s->rng, l->count - least);
    const uint64_t to = from + 1 + rng_below(&s->rng, 5);
    if (to < l->count)
        l->holes[l->holes_count++] = (struct ring_range){.from = from, .to = to};
}

static void restart(struct sim *s, int node)
{
    for (size_t i = 0; i < s->lanes_count; i++) {
        if (s->lanes[i].node == node)
            damage(s, &s->lanes[i]);
        s->lanes[i].closed = s->lanes[i].closed || s->lanes[i].node == node;
    }
    ring_keeper_free(s->keepers[node]);
    s->keepers[node] = ring_keeper_new();
}

static void apply(struct sim *s, struct sim_lane *l, const struct ring_answer *a)
{
    assert_true(a->release <= ring_head_release(&s->head, l->name) || a->release <= l->first);
    for (size_t i = 0; i < s->head.generations_count;
         i++) { /* nothing of [sealed, taken) is kept */
        const struct ring_generation *g = &s->head.generations[i];
        for (size_t j = 0; j < g->count; j++)
            assert_true(strcmp(g->cuts[j].lane, l->name) != 0 || g->cuts[j].to <= a->sealed ||
                        g->cuts[j].from >= a->taken);
    }
    assert_true(a->taken <= l->sealed);
    if (a->release > l->released)
        l->released = a->release;
    if (l->closed && l->released >= l->count)
        l->first = l->count; /* its files go */
    if (a->forget) {
        assert_int_equal(l->sealed, l->count);
        l->removed = true;
    }
}

static void send_report(struct sim *s, int node)
{
    struct sim_message *m;
    if (!s->up[node] || s->messages_count == MESSAGES)
        return;
    m = &s->messages[s->messages_count++];
    *m = (struct sim_message){.from = node,
                              .to = s->leader,
                              .due_ms = s->now_ms + (chance(s, 10) ? rng_below(&s->rng, LATE_MS)
                                                                   : rng_below(&s->rng, 20)),
                              .reports = calloc(s->lanes_count + 1, sizeof *m->reports)};
    for (size_t i = 0; i < s->lanes_count; i++) {
        struct sim_lane *l = &s->lanes[i];
        if (l->node != node || l->removed)
            continue;
        struct ring_report *r = &m->reports[m->count++];
        *r = (struct ring_report){.first = l->first,
                                  .count = l->count,
                                  .closed = l->closed,
                                  .drained = l->closed && l->first == l->count};
        if (s->drops && !s->is_settling && chance(s, 20)) {
            r->drop_to = l->sealed + rng_below(&s->rng, l->count - l->sealed + 1);
            l->drop_to = r->drop_to > l->drop_to ? r->drop_to : l->drop_to;
        }
        snprintf(r->lane, sizeof r->lane, "%s", l->name);
        for (size_t j = 0; j < l->holes_count; j++) {
            if (l->holes[j].to > l->released)
                r->holes[r->holes_count++] = l->holes[j];
        }
    }
}

/* --- keepers ---------------------------------------------------------------------------------- */

static void take_report(struct sim *s, const struct sim_message *m)
{
    struct ring_keeper *k = s->keepers[m->to];
    if (!s->up[m->to])
        return;
    char node[8];
    snprintf(node, sizeof node, "t%d", m->from);
    ring_keeper_report(k, node, m->reports, m->count, s->now_ms);
    if (chance(s, 5)) /* the answer is lost */
        return;
    for (size_t i = 0; i < m->count; i++) {
        const struct ring_answer a = ring_keeper_answer(k, &m->reports[i]);
        apply(s, lane_of(s, m->reports[i].lane), &a);
    }
}

static void keep(struct sim *s, int node, enum ring_wish wish)
{
    struct ring_keeper *k = s->keepers[node];
    struct ring_head next;
    if (!s->up[node])
        return;
    if (!ring_keeper_is_loaded(k)) {
        ring_keeper_load(k, s->version > 0 ? &s->head : NULL);
        s->loaded_version[node] = s->version;
    }
    if (!ring_keeper_plan(k, &s->rules, wish, s->now_ms, 1, &next))
        return;
    assert_false(wish == RING_WHEN_FULL && next.generation > ring_keeper_head(k)->generation &&
                 ring_keeper_head(k)->is_paused);
    if (chance(s, 6) && s->messages_count < MESSAGES) { /* nobody knows what becomes of it */
        s->messages[s->messages_count++] =
            (struct sim_message){.is_put = true,
                                 .due_ms = s->now_ms + rng_below(&s->rng, LATE_MS),
                                 .version = s->loaded_version[node],
                                 .next = next};
        ring_keeper_unload(k);
    } else if (put(s, s->loaded_version[node], &next)) {
        s->loaded_version[node] = s->version;
        ring_keeper_stored(k, &next);
    } else {
        ring_head_done(&next);
        ring_keeper_unload(k);
    }
}

static void deliver(struct sim *s)
{
    for (size_t i = 0; i < s->messages_count;) {
        struct sim_message m = s->messages[i];
        if (m.due_ms > s->now_ms) {
            i++;
            continue;
        }
        s->messages[i] = s->messages[--s->messages_count];
        if (m.is_put)
            (void)put(s, m.version, &m.next);
        else if (!chance(s, 10))
            take_report(s, &m);
        ring_head_done(&m.next);
        free(m.reports);
    }
}

static void call_group(struct sim *s)
{
    struct sim_group *g = &s->groups[rng_below(&s->rng, GROUPS)];
    struct ring_keeper *k = s->keepers[s->leader];
    struct ring_group_call call = {.lease_ms = LEASE_MS, .leaves = chance(s, 100)};
    struct ring_head next;
    if (!s->up[s->leader] || s->is_settling || chance(s, 8))
        return;
    snprintf(call.name, sizeof call.name, "%c", (char)('a' + (g - s->groups)));
    const struct ring_group *old = ring_head_group(&s->head, call.name);
    call.done = chance(s, 3) ? s->head.generation : old != NULL ? old->done : 0;
    if (!ring_keeper_is_loaded(k)) {
        ring_keeper_load(k, s->version > 0 ? &s->head : NULL);
        s->loaded_version[s->leader] = s->version;
    }
    if (s->loaded_version[s->leader] != s->version) /* it finds that out by a PUT */
        return;
    const enum ring_group_reply reply = ring_keeper_group(k, &call, s->now_ms, &next);
    assert_true(reply <= RING_GROUP_STORES);
    if (!call.leaves && call.done > s->done)
        s->done = call.done;
    if (reply != RING_GROUP_KNOWN) {
        assert_true(put(s, s->version, &next));
        s->loaded_version[s->leader] = s->version;
        ring_keeper_stored(k, &next);
    }
    if (old == NULL || call.leaves || s->now_ms - g->called_ms > LEASE_MS / 2)
        g->steady_ms = s->now_ms;
    g->called_ms = s->now_ms;
}

/* --- a run ------------------------------------------------------------------------------------ */

static void step(struct sim *s)
{
    const int node = (int)rng_below(&s->rng, NODES);
    s->now_ms += rng_below(&s->rng, chance(s, 50) ? 60000 : 100);
    deliver(s);
    push(s, (int)rng_below(&s->rng, NODES));
    send_report(s, node);
    if (s->has_groups)
        call_group(s);
    if (chance(s, 40))
        s->leader = (int)rng_below(&s->rng, NODES);
    if (chance(s, 60))
        restart(s, node);
    if (chance(s, 30))
        s->up[node] = !s->up[node];
    keep(s, chance(s, 5) ? node : s->leader,
         !chance(s, 50) ? RING_WHEN_FULL
         : chance(s, 4) ? RING_PAUSE
                        : RING_RESUME);
}

/* All is well again: what was acknowledged comes into generations, to the last sample. */
static void settle(struct sim *s)
{
    for (int i = 0; i < NODES; i++)
        s->up[i] = true;
    s->is_settling = true;
    s->rules.consumed = false; /* no group calls any more */
    for (int round = 0; round < 2000 && left(s) > 0; round++) {
        s->now_ms += 200;
        deliver(s);
        for (int i = 0; i < NODES; i++)
            send_report(s, i);
        s->is_partial_ok = round > 1000;
        if (s->head.is_paused)
            keep(s, s->leader, RING_RESUME);
        for (int i = 0; i < 20; i++)
            keep(s, s->leader, s->is_partial_ok ? RING_SWAP : RING_WHEN_FULL);
    }
    assert_true(s->head.dropped_total >= s->dropped); /* a late report does not know of damage */
    assert_int_equal(s->head.samples_total + s->passed + s->dropped, s->acknowledged);
    for (size_t i = 0; i < s->lanes_count; i++)
        assert_int_equal(s->lanes[i].sealed, s->lanes[i].count);
}

struct tally {
    uint64_t swaps, several, awaited, consumed;
};

static void run(uint64_t seed, struct tally *tally)
{
    static struct sim sim;
    struct sim *s = &sim;
    *s = (struct sim){.rules = {.fresh_ms = FRESH_MS}};
    rng_seed(&s->rng, seed);
    s->rules.cap = 1 + rng_below(&s->rng, 30);
    s->rules.keep = (unsigned)rng_below(&s->rng, 6);
    s->drops = chance(s, 2);
    s->has_groups = chance(s, 3);
    s->rules.consumed = s->has_groups && chance(s, 2);
    for (int i = 0; i < NODES; i++) {
        s->up[i] = true;
        s->keepers[i] = ring_keeper_new();
    }
    for (int i = 0; i < STEPS; i++)
        step(s);
    settle(s);
    for (int i = 0; i < NODES; i++)
        ring_keeper_free(s->keepers[i]);
    for (size_t i = 0; i < s->messages_count; i++) {
        ring_head_done(&s->messages[i].next);
        free(s->messages[i].reports);
    }
    ring_head_done(&s->head);
    tally->swaps += s->swaps;
    tally->several += s->several;
    tally->awaited += s->awaited;
    tally->consumed += s->consumed_swaps;
}

static void test_schedules(void **state)
{
    (void)state;
    struct tally tally = {.swaps = 0};
    for (uint64_t seed = 1; seed <= 100; seed++)
        run(seed, &tally);
    assert_true(tally.swaps > 5000); /* something has happened */
    assert_true(tally.several > 500);
    assert_true(tally.awaited > 50);
    assert_true(tally.consumed > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
