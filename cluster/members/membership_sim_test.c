/* Thousands of seeded schedules of a small cluster: messages are delayed, lost and reordered, nodes
 * die and come back with another boot id, second nodes claim an id that is taken, the primary
 * pauses and restarts, commits fail.  The time is simulated, the code under test is the real one.
 *
 * What must hold, always:
 *   - a node that was heard within the timeout is never given up, nor one whose message has come
 *     within the timeout but waits in a socket, because the primary was paused for an eighth of it
 *   - a tick that comes in time leaves no node active that was silent for longer than the timeout
 *   - a node that has said that it stops has no lease, and no late message brings it back
 *   - an id never goes to a process at another address while its owner is heard
 * and in the end, when the disturbances stop: the map says what is so, and no longer changes.
 *
 * A failure prints its seed; `membership_sim_test SEED` runs that one alone. */
#include "cluster/members/membership.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "cluster/command/command.h"
#include "common/parse.h"
#include "common/rng.h"

enum {
    STEP = 20,
    INTERVAL = 100,
    TICK = 60, /* not a divisor of anything else here */
    TIMEOUT = 1000,
    DISTURBED = 30000,
    CALM = 5000,
    STILL = 3000,
    SCHEDULES = 3000,
    IDS = 4,
    PROCESSES = 8, /* two for each id, at two addresses */
    FLYING_MAX = 512,
};

/* A process that wants to be node `id`. */
struct process {
    unsigned id;
    unsigned boot;    /* grows with each start */
    unsigned stopped; /* the boot that has said that it stops, … */
    bool is_known;    /* … to this primary */
    bool alive;
    bool registered; /* as far as it knows */
    uint64_t next_ms;
};

struct message {
    uint64_t due_ms;
    unsigned process;
    unsigned boot;
    bool is_register;
};

/* The last message for an id that the primary took. */
struct heard {
    uint64_t ms; /* 0: none since the primary began */
    unsigned process;
    unsigned boot;
};

struct sim {
    uint64_t seed;
    struct rng rng;
    uint64_t now;
    bool calm;
    const struct cluster_state *state;
    struct membership *primary;
    uint64_t awake_since; /* the primary ticks without a pause, and commits, since then */
    uint64_t asleep_until;
    uint64_t ticked;
    struct process processes[PROCESSES];
    struct message flying[FLYING_MAX];
    size_t flying_count;
    struct heard heard[IDS];
};

/* How often what is to be shown has happened at all. */
static struct {
    uint64_t given_up, taken_back, refused, paused, stopped;
} seen;

static uint64_t chance(struct sim *s, uint64_t of)
{
    return rng_below(&s->rng, of);
}

#define sim_fail(s, fmt, ...) \
    fail_msg("seed %" PRIu64 " at %" PRIu64 " ms: " fmt, (s)->seed, (s)->now, __VA_ARGS__)

/* --- names ----------------------------------------------------------------------------------- */

struct names {
    char id[8], boot[24], url[32];
};

static struct names names_of(const struct process *p, unsigned index, unsigned boot)
{
    struct names n;
    snprintf(n.id, sizeof n.id, "t%u", p->id);
    snprintf(n.boot, sizeof n.boot, "%u-%u", index, boot);
    snprintf(n.url, sizeof n.url, "http://h:%u", index + 1);
    return n;
}

static const struct node *in_map(const struct sim *s, unsigned id)
{
    char name[8];
    snprintf(name, sizeof name, "t%u", id);
    return smap_node(&s->state->smap, name);
}

/* Is this the process whose run the map has? */
static bool owns_id(const struct sim *s, unsigned index)
{
    const struct process *p = &s->processes[index];
    const struct names n = names_of(p, index, p->boot);
    const struct node *known = in_map(s, p->id);
    return known != NULL && strcmp(known->boot, n.boot) == 0;
}

/* --- the primary ----------------------------------------------------------------------------- */

static bool commit(struct sim *s, const struct command *cmd)
{
    if (!s->calm && chance(s, 20) == 0) {
        s->awake_since = s->now; /* the disk refused: nothing is promised from before this */
        return false;
    }
    const struct cluster_state *next;
    struct error err = ERROR_INIT;
    if (command_apply(s->state, cmd, &next, &err) != 0)
        sim_fail(s, "the command was refused: %s", err.message);
    state_unref(s->state);
    s->state = next;
    return true;
}

static bool heard_lately(const struct sim *s, unsigned id)
{
    return s->heard[id].ms != 0 && s->now - s->heard[id].ms <= TIMEOUT;
}

/* The membership has taken a message: what it may not have done, and what it knows now. */
static void note_heard(struct sim *s, const struct message *m)
{
    unsigned id = s->processes[m->process].id;
    if (heard_lately(s, id) && s->heard[id].process != m->process)
        sim_fail(s, "process %u took the id of process %u, heard %" PRIu64 " ms ago", m->process,
                 s->heard[id].process, s->now - s->heard[id].ms);
    s->heard[id] = (struct heard){s->now, m->process, m->boot};
}

static bool deliver_register(struct sim *s, const struct message *m)
{
    const struct process *p = &s->processes[m->process];
    struct names n = names_of(p, m->process, m->boot);
    const struct node spec = {
        .id = n.id,
        .role = NODE_TARGET,
        .public_url = n.url,
        .control_url = n.url,
        .data_url = n.url,
        .weight = 1,
        .boot = n.boot,
    };
    if (membership_register(s->primary, &s->state->smap, &spec, s->now, NULL) != 0) {
        seen.refused++;
        return false;
    }
    note_heard(s, m);
    const struct command join = {.kind = CMD_NODE_JOIN, .node = &spec, .wall_ms = (int64_t)s->now};
    return commit(s, &join);
}

static bool deliver_keepalive(struct sim *s, const struct message *m)
{
    const struct names n = names_of(&s->processes[m->process], m->process, m->boot);
    const struct keepalive k = {.id = n.id, .boot = n.boot};
    if (membership_keepalive(s->primary, &s->state->smap, &k, s->now, NULL) != 0)
        return false;
    note_heard(s, m);
    return true;
}

static void deliver(struct sim *s, const struct message *m)
{
    struct process *p = &s->processes[m->process];
    bool accepted = m->is_register ? deliver_register(s, m) : deliver_keepalive(s, m);
    bool answer_lost = !s->calm && chance(s, 10) == 0;
    if (m->boot == p->boot && p->alive && !answer_lost)
        p->registered = accepted;
}

static void check_given_up(const struct sim *s, unsigned id)
{
    const struct heard *h = &s->heard[id];
    const struct names n = names_of(&s->processes[h->process], h->process, h->boot);
    if (s->processes[h->process].stopped == h->boot)
        return;
    if (heard_lately(s, id) && strcmp(in_map(s, id)->boot, n.boot) == 0)
        sim_fail(s, "t%u was given up %" PRIu64 " ms after it was heard", id, s->now - h->ms);
    for (size_t i = 0; i < s->flying_count; i++) {
        const struct message *m = &s->flying[i];
        const struct names sender = names_of(&s->processes[m->process], m->process, m->boot);
        if (s->processes[m->process].stopped == m->boot)
            continue;
        if (m->due_ms + TIMEOUT / 8 < s->now && m->due_ms + TIMEOUT >= s->now &&
            s->processes[m->process].id == id && strcmp(in_map(s, id)->boot, sender.boot) == 0)
            sim_fail(s, "t%u was given up while its message waited for %" PRIu64 " ms", id,
                     s->now - m->due_ms);
    }
}

static void check_silent(const struct sim *s, unsigned id)
{
    const struct node *n = in_map(s, id);
    uint64_t heard = s->heard[id].ms;
    uint64_t from = heard > s->awake_since ? heard : s->awake_since;
    if (n != NULL && n->state == NODE_ACTIVE && s->now - from > TIMEOUT)
        sim_fail(s, "t%u is active and silent for %" PRIu64 " ms", id, s->now - from);
}

/* Its keepalives may come late, and change nothing. */
static void check_stopped(const struct sim *s, const struct verdict *v)
{
    const struct node *n = smap_node(&s->state->smap, v->id);
    for (unsigned i = 0; i < PROCESSES; i++) {
        const struct process *p = &s->processes[i];
        const struct names old = names_of(p, i, p->stopped);
        if (p->stopped > 0 && v->state == NODE_ACTIVE && strcmp(n->boot, old.boot) == 0 &&
            strcmp(n->id, old.id) == 0 && p->is_known)
            sim_fail(s, "%s was taken back after it had said that it stops", v->id);
    }
}

static void process_stop(struct sim *s, unsigned index)
{
    struct process *p = &s->processes[index];
    const struct names n = names_of(p, index, p->boot);
    if (!p->alive || s->now < s->asleep_until ||
        membership_stop(s->primary, &s->state->smap, n.id, n.boot, NULL) != 0)
        return;
    if (membership_lease_ms(s->primary, &s->state->smap, n.id) != 0)
        sim_fail(s, "%s gets a lease after it has said that it stops", n.id);
    p->alive = false;
    p->stopped = p->boot;
    p->is_known = true;
    seen.stopped++;
}

static void tick(struct sim *s)
{
    struct verdict verdicts[IDS];
    bool in_time = s->now - s->ticked <= TIMEOUT / 8;
    if (s->now - s->ticked > TIMEOUT / 2) {
        s->awake_since = s->now;
        seen.paused++;
    }
    s->ticked = s->now;
    size_t count = membership_tick(s->primary, &s->state->smap, s->now, verdicts);
    _cleanup_state_ const struct cluster_state *judged = state_ref(s->state);
    for (size_t i = 0; i < count; i++) {
        seen.given_up += verdicts[i].state == NODE_UNREACHABLE;
        seen.taken_back += verdicts[i].state == NODE_ACTIVE;
        if (verdicts[i].state == NODE_UNREACHABLE)
            check_given_up(s, (unsigned)(verdicts[i].id[1] - '0'));
        check_stopped(s, &verdicts[i]);
        const struct command cmd = {
            .kind = CMD_NODE_STATE,
            .name = verdicts[i].id,
            .node_state = verdicts[i].state,
            .wall_ms = (int64_t)s->now,
        };
        commit(s, &cmd);
    }
    for (unsigned id = 0; in_time && id < IDS; id++)
        check_silent(s, id);
}

static void primary_restart(struct sim *s)
{
    static const struct membership_rules rules = {.self = "p1", .timeout_ms = TIMEOUT};
    membership_free(s->primary);
    s->primary = membership_new(&rules, s->now);
    s->awake_since = s->now;
    s->ticked = s->now;
    /* What the dead one heard counts for nothing: the map alone survives. */
    memset(s->heard, 0, sizeof s->heard);
    for (unsigned i = 0; i < PROCESSES; i++)
        s->processes[i].is_known = false;
}

/* --- the nodes ------------------------------------------------------------------------------- */

static void send_message(struct sim *s, unsigned index)
{
    struct process *p = &s->processes[index];
    p->next_ms = s->now + INTERVAL;
    bool lost = !s->calm && chance(s, 8) == 0;
    if (lost || s->flying_count == FLYING_MAX)
        return;
    uint64_t delay = s->calm ? STEP : chance(s, 10) == 0 ? chance(s, 2 * TIMEOUT) : chance(s, 80);
    s->flying[s->flying_count++] = (struct message){
        .due_ms = s->now + delay,
        .process = index,
        .boot = p->boot,
        .is_register = !p->registered,
    };
}

static void process_start(struct sim *s, unsigned index)
{
    struct process *p = &s->processes[index];
    p->alive = true;
    p->registered = false;
    p->boot++;
    p->next_ms = s->now;
}

/* The second process of an id is the mistake: it lives rarely, and not in the calm. */
static void disturb(struct sim *s)
{
    unsigned index = (unsigned)chance(s, PROCESSES);
    bool second = index >= IDS;
    uint64_t what = chance(s, 400);
    if (what < 4)
        s->processes[index].alive = false;
    else if (what < (second ? 6 : 12) && !s->processes[index].alive)
        process_start(s, index);
    else if (what < 18)
        s->processes[index].next_ms = s->now + chance(s, 3 * TIMEOUT); /* cut off */
    else if (what == 20)
        s->asleep_until = s->now + chance(s, chance(s, 2) ? TIMEOUT / 2 : 3 * TIMEOUT);
    else if (what == 21)
        primary_restart(s);
    else if (what < 25)
        process_stop(s, index);
}

static void deliver_due(struct sim *s)
{
    for (size_t i = 0; i < s->flying_count;) {
        if (s->flying[i].due_ms > s->now) {
            i++;
            continue;
        }
        struct message m = s->flying[i];
        s->flying[i] = s->flying[--s->flying_count];
        deliver(s, &m);
    }
}

static void step(struct sim *s)
{
    s->now += STEP;
    if (!s->calm)
        disturb(s);
    for (unsigned i = 0; i < PROCESSES; i++) {
        if (s->processes[i].alive && s->processes[i].next_ms <= s->now)
            send_message(s, i);
    }
    if (s->now < s->asleep_until)
        return;
    /* After a pause the timers of a loop run before its sockets: the worse order. */
    if (s->now >= s->ticked + TICK)
        tick(s);
    deliver_due(s);
}

static void calm_down(struct sim *s)
{
    s->calm = true;
    s->asleep_until = 0;
    for (unsigned i = IDS; i < PROCESSES; i++)
        s->processes[i].alive = false;
}

static void check_converged(const struct sim *s)
{
    for (unsigned i = 0; i < IDS; i++) {
        const struct node *n = in_map(s, i);
        bool alive = s->processes[i].alive;
        if (alive && (n == NULL || n->state != NODE_ACTIVE || !owns_id(s, i)))
            sim_fail(s, "t%u lives and is %s", i,
                     n != NULL ? node_state_name(n->state) : "unknown");
        if (!alive && n != NULL && n->state == NODE_ACTIVE)
            sim_fail(s, "t%u is dead and active", i);
    }
}

static void run_schedule(uint64_t seed)
{
    struct sim *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->seed = seed;
    s->now = 1000000;
    rng_seed(&s->rng, seed);
    s->state = state_new("c");
    primary_restart(s);
    for (unsigned i = 0; i < PROCESSES; i++) {
        s->processes[i].id = i % IDS;
        if (i < IDS)
            process_start(s, i);
    }
    uint64_t disturbed_until = s->now + DISTURBED;
    while (s->now < disturbed_until)
        step(s);
    calm_down(s);
    while (s->now < disturbed_until + CALM)
        step(s);
    check_converged(s);
    uint64_t version = s->state->version;
    while (s->now < disturbed_until + CALM + STILL)
        step(s);
    if (s->state->version != version)
        sim_fail(s, "the map still changes: %" PRIu64 " more", s->state->version - version);
    state_unref(s->state);
    membership_free(s->primary);
    free(s);
}

static uint64_t only_seed;

static void membership_tells_the_living_from_the_dead(void **unused)
{
    (void)unused;
    if (only_seed != 0) {
        run_schedule(only_seed);
        return;
    }
    for (uint64_t seed = 1; seed <= SCHEDULES; seed++)
        run_schedule(seed);
    print_message("%" PRIu64 " given up, %" PRIu64 " taken back, %" PRIu64 " refused, %" PRIu64
                  " pauses, %" PRIu64 " stopped\n",
                  seen.given_up, seen.taken_back, seen.refused, seen.paused, seen.stopped);
    assert_true(seen.given_up > SCHEDULES && seen.taken_back > SCHEDULES);
    assert_true(seen.refused > SCHEDULES && seen.paused > SCHEDULES);
    assert_true(seen.stopped > SCHEDULES);
}

int main(int argc, char **argv)
{
    if (argc > 1 && parse_u64(argv[1], &only_seed, NULL) != 0)
        return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(membership_tells_the_living_from_the_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
