/* The rules of owners.h against a model: targets that die, come back, forget, leave and join, whose
 * map is made by the real commands; a client who writes, deletes and reads by the rules; a repair;
 * a rebalance; copies that are raised and lowered; tombstones that are forgotten.  What was
 * acknowledged, or ever seen, must never be gone, and what was deleted never be back.
 *
 * Who acts knows the map; each target knows the state that it heard of last, and has a lease or
 * not: by these it answers reads beside the one that acts (docs/design/replication.md, "Any
 * owner"). */
#include "cluster/placement/owners.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cluster/command/command.h"
#include "cluster/placement/lag.h"
#include "cluster/placement/lower.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/rng.h"

enum { TARGETS = 5, NAMES = 3, STEPS = 400, RUNS = 400, BUCKET_ID = 1 };

static const char *const ids[TARGETS] = {"t0", "t1", "t2", "t3", "t4"};
static const char *const names[NAMES] = {"a", "b", "c"};

struct copy {
    uint64_t version; /* 0: none */
    bool dirty;       /* committed here, and not known to be settled: memory */
};

struct disk {
    bool alive; /* the process */
    bool cut;   /* alive, and nobody hears it */
    unsigned boot;
    const struct cluster_state *known; /* NULL: none, by this run */
    bool lease;
    struct copy copies[NAMES];
};

struct world {
    const struct cluster_state *s;
    struct rng rng;
    struct disk disks[TARGETS];
    uint64_t promised[NAMES]; /* the greatest version that was acknowledged or seen */
    uint64_t last;
    uint64_t writes, reads, lists, refused, repairs, moves; /* how much happened */
    uint64_t beside, beside_behind; /* reads by who does not act; and knows an older state */
    uint64_t lowered, strays, forgotten;
};

/* One write of four is a deletion. */
static bool is_tombstone(uint64_t version)
{
    return version % 4 == 0;
}

static size_t index_of(const struct node *n)
{
    return (size_t)(n->id[1] - '0');
}

static bool answers(const struct world *w, const struct node *n)
{
    const struct disk *d = &w->disks[index_of(n)];
    return d->alive && !d->cut;
}

/* --- what a target knows ---------------------------------------------------------------------- */

static void forget_state(struct disk *d)
{
    state_unref(d->known);
    d->known = NULL;
    d->lease = false;
}

/* By a push, or from whoever asks or tells it something by this state. */
static void learns(struct world *w, const struct node *n)
{
    struct disk *d = &w->disks[index_of(n)];
    const struct cluster_state *now = state_ref(w->s);
    state_unref(d->known);
    d->known = now;
}

static bool is_let_in(const struct world *w, size_t t)
{
    char boot[16];
    const struct node *n = smap_node(&w->disks[t].known->smap, ids[t]);
    snprintf(boot, sizeof boot, "b%u", w->disks[t].boot);
    return n != NULL && strcmp(n->boot, boot) == 0;
}

/* A keepalive and its reply: a lease, for who knows the state that it was given under. */
static void keeps_alive(struct world *w, size_t t)
{
    struct disk *d = &w->disks[t];
    const struct node *n = smap_node(&w->s->smap, ids[t]);
    if (n != NULL && answers(w, n) && n->state == NODE_ACTIVE && n->absent_since == 0 &&
        d->known == w->s)
        d->lease = true;
}

/* Nobody is passed over before its lease is over (cluster/members/lease.h). */
static void end_leases(struct world *w)
{
    for (size_t t = 0; t < TARGETS; t++) {
        const struct node *n = smap_node(&w->s->smap, ids[t]);
        if (n == NULL || !node_is_present(n))
            w->disks[t].lease = false;
    }
}

static int apply(struct world *w, struct command cmd)
{
    const struct cluster_state *next;
    int r = command_apply(w->s, &cmd, &next, NULL);
    if (r != 0)
        return r;
    state_unref(w->s);
    w->s = next;
    end_leases(w);
    return 0;
}

static bool join(struct world *w, size_t t, bool lost)
{
    char boot[16];
    snprintf(boot, sizeof boot, "b%u", w->disks[t].boot);
    const struct node n = {.id = ids[t],
                           .role = NODE_TARGET,
                           .public_url = "http://h:1",
                           .control_url = "http://h:2",
                           .data_url = "http://h:3",
                           .weight = 1024,
                           .boot = boot};
    bool known = smap_node(&w->s->smap, ids[t]) != NULL;
    return apply(w, (struct command){
                        .kind = CMD_NODE_JOIN, .node = &n, .fresh = !known, .lost = lost}) == 0;
}

static const struct bucket *bucket(const struct world *w)
{
    return bmd_bucket_by_id(&w->s->bmd, BUCKET_ID);
}

/* --- the protocol ----------------------------------------------------------------------------- */

static uint64_t greatest(const struct world *w, size_t name, const struct node *const *nodes,
                         size_t count, uint64_t so_far)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t version = w->disks[index_of(nodes[i])].copies[name].version;
        so_far = version > so_far ? version : so_far;
    }
    return so_far;
}

static bool all_answer(const struct world *w, const struct node *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!answers(w, nodes[i]))
            return false;
    }
    return true;
}

static void put(struct world *w, size_t name, const struct node *const *nodes, size_t count,
                uint64_t version, bool dirty)
{
    for (size_t i = 0; i < count; i++)
        w->disks[index_of(nodes[i])].copies[name] = (struct copy){version, dirty};
}

static bool tell_former(struct world *w, size_t name, const struct owners *o)
{
    const struct node *former[OWNERS_ASKED_MAX];
    size_t count = owners_former(w->s, bucket(w), names[name], o->acting->id, former);
    for (size_t i = 0; i < count; i++) {
        if (!answers(w, former[i]))
            return false;
        learns(w, former[i]);
    }
    return true;
}

/* Where it has to, the acting owner asks, and makes the greatest version that of all active owners.
 * What it has so is seen: those who owned the name before copies were lowered are told first. */
static bool compare(struct world *w, size_t name, const struct owners *o)
{
    const struct node *asked[OWNERS_ASKED_MAX], *others[OWNERS_MAX];
    struct copy *own = &w->disks[index_of(o->acting)].copies[name];
    if (!owners_must_compare(w->s, o) && !own->dirty)
        return true;
    size_t count =
        bucket_has_copies(bucket(w))
            ? owners_asked(w->s, bucket(w), names[name], o->acting->id, asked)
            : layout_ask(&w->s->smap, BUCKET_ID, names[name], 1, o->acting->id, false, asked);
    size_t other_count = owners_others(o, o->acting->id, others);
    if (!all_answer(w, asked, count))
        return false;
    for (size_t i = 0; i < count; i++)
        learns(w, asked[i]);
    uint64_t version = greatest(w, name, asked, count, own->version);
    if (!tell_former(w, name, o))
        return false;
    put(w, name, others, other_count, version, false);
    *own = (struct copy){version, false};
    return true;
}

/* The acting owner, if it may go on. */
static bool begin(struct world *w, size_t name, struct owners *o)
{
    owners_of(w->s, bucket(w), names[name], o);
    bool may =
        o->acting != NULL && o->awaited == NULL && answers(w, o->acting) && compare(w, name, o);
    w->refused += !may;
    return may;
}

/* most: of the others, that it reaches. */
static void write_up_to(struct world *w, size_t name, size_t most)
{
    struct owners o;
    const struct node *others[OWNERS_MAX];
    if (!begin(w, name, &o) || !tell_former(w, name, &o))
        return;
    size_t count = owners_others(&o, o.acting->id, others);
    uint64_t version = ++w->last;
    size_t committed = 0;
    while (committed < count && committed < most && answers(w, others[committed]) &&
           rng_below(&w->rng, 8) != 0) {
        put(w, name, &others[committed], 1, version, true);
        learns(w, others[committed]);
        committed++;
    }
    if (committed < count) { /* in doubt: it rolls forward later, or another one does */
        w->disks[index_of(o.acting)].copies[name].dirty = committed > 0;
        return;
    }
    put(w, name, &o.acting, 1, version, false);
    if (rng_below(&w->rng, 2) == 0) /* else the release does not come */
        put(w, name, others, count, version, false);
    w->promised[name] = version;
    w->writes++;
}

static void write_one(struct world *w, size_t name)
{
    write_up_to(w, name, OWNERS_MAX);
}

/* Nothing is as good as a tombstone. */
static void check_kept(const struct world *w, size_t name, uint64_t version, const char *where)
{
    bool gone = version == 0 && is_tombstone(w->promised[name]);
    if (version < w->promised[name] && !gone)
        fail_msg("'%s' is at %llu %s, and %llu was promised", names[name],
                 (unsigned long long)version, where, (unsigned long long)w->promised[name]);
}

static void saw(struct world *w, size_t name, const struct node *at)
{
    uint64_t version = w->disks[index_of(at)].copies[name].version;
    check_kept(w, name, version, at->id);
    w->promised[name] = version > w->promised[name] ? version : w->promised[name];
    w->reads++;
}

/* Every name, as a list would show it. */
static void list_good(struct world *w)
{
    for (size_t name = 0; name < NAMES && owners_good_suffice(w->s, bucket(w)); name++) {
        uint64_t version = 0;
        for (size_t i = 0; i < w->s->smap.count; i++) {
            const struct node *n = &w->s->smap.nodes[i];
            bool shows =
                !bucket_has_surplus(bucket(w)) || lower_shows(w->s, bucket(w), names[name], n->id);
            if (n->state == NODE_ACTIVE && n->lag != LAG_MISSED && node_is_present(n) && shows)
                version = greatest(w, name, &n, 1, version);
        }
        check_kept(w, name, version, "in a list");
        w->lists++;
    }
}

static void read_one(struct world *w, size_t name)
{
    struct owners o;
    if (begin(w, name, &o))
        saw(w, name, o.acting);
}

/* By the state that it knows, for whoever reaches it, though it may be cut off from the others. */
static bool may_answer(const struct world *w, size_t name, size_t t)
{
    const struct disk *d = &w->disks[t];
    struct owners o;
    if (!d->alive || !d->lease || d->copies[name].dirty || d->copies[name].version == 0 ||
        !is_let_in(w, t))
        return false;
    const struct bucket *b = bmd_bucket_by_id(&d->known->bmd, BUCKET_ID);
    owners_of(d->known, b, names[name], &o);
    return owners_reads_beside(d->known, b, &o, ids[t]);
}

static void read_any(struct world *w, size_t name)
{
    for (size_t t = 0; t < TARGETS; t++) {
        const struct node n = {.id = (char *)ids[t]};
        if (!may_answer(w, name, t))
            continue;
        saw(w, name, &n);
        w->beside++;
        w->beside_behind += w->disks[t].known != w->s;
    }
}

/* Somebody hears of the state in force, and somebody of its lease. */
static void hear(struct world *w)
{
    const struct node *n = smap_node(&w->s->smap, ids[rng_below(&w->rng, TARGETS)]);
    if (n != NULL && answers(w, n))
        learns(w, n);
    keeps_alive(w, rng_below(&w->rng, TARGETS));
}

/* In a job all that take part know its state, or a later one. */
static void all_learn(struct world *w)
{
    for (size_t i = 0; i < w->s->smap.count; i++) {
        if (answers(w, &w->s->smap.nodes[i]))
            learns(w, &w->s->smap.nodes[i]);
    }
}

/* --- repair and rebalance --------------------------------------------------------------------- */

static bool all_active_answer(const struct world *w)
{
    for (size_t i = 0; i < w->s->smap.count; i++) {
        const struct node *n = &w->s->smap.nodes[i];
        if (n->state == NODE_ACTIVE && !answers(w, n))
            return false;
    }
    return true;
}

static void repair(struct world *w)
{
    struct command done = {.kind = CMD_LAG_DONE,
                           .lagged = w->s->smap.lagged,
                           .placed = w->s->smap.placed,
                           .raised = bucket(w)->raised};
    if (!all_active_answer(w) || !layout_is_settled(&w->s->smap))
        return;
    all_learn(w);
    for (size_t name = 0; name < NAMES; name++) {
        struct owners o;
        const struct node *active[OWNERS_MAX];
        owners_of(w->s, bucket(w), names[name], &o);
        size_t count = owners_others(&o, "", active);
        put(w, name, active, count, greatest(w, name, active, count, 0), false);
    }
    assert_int_equal(apply(w, done), 0);
    done.kind = CMD_COPIES_FILLED;
    assert_int_equal(apply(w, done), 0);
    w->repairs++;
}

/* False: an owner lacks what is here. */
static bool remove_stray(struct world *w, size_t name, const struct node *n)
{
    struct owners o;
    struct copy *c = &w->disks[index_of(n)].copies[name];
    owners_of(w->s, bucket(w), names[name], &o);
    if (c->version == 0 || owners_has(&o, n->id))
        return true;
    for (size_t i = 0; i < o.count; i++) {
        if (w->disks[index_of(o.all[i])].copies[name].version < c->version)
            return false;
    }
    *c = (struct copy){0};
    w->strays++;
    return true;
}

static void trim_copies(struct world *w)
{
    const struct smap *m = &w->s->smap;
    bool all = true;
    if (!lower_may_end(w->s, bucket(w)) || !all_active_answer(w))
        return;
    all_learn(w);
    for (size_t i = 0; i < m->count * NAMES; i++)
        all = remove_stray(w, i % NAMES, &m->nodes[i / NAMES]) && all;
    if (!all)
        return;
    const struct lower_fence fence = lower_fence(w->s, bucket(w));
    assert_int_equal(apply(w, (struct command){.kind = CMD_COPIES_LOWERED, .fence = fence}), 0);
    w->lowered++;
}

/* All tombstones are old. */
static void sweep(struct world *w)
{
    for (size_t i = 0; i < TARGETS * NAMES && lag_lets_forget(w->s); i++) {
        struct copy *c = &w->disks[i / NAMES].copies[i % NAMES];
        if (c->version == 0 || !is_tombstone(c->version) || c->dirty)
            continue;
        if (c->version > w->promised[i % NAMES]) /* it was in doubt, and has taken effect */
            w->promised[i % NAMES] = c->version;
        *c = (struct copy){0};
        w->forgotten++;
    }
}

/* What all targets in the map have comes to the present owners; others drop it. */
static void rebalance(struct world *w)
{
    const struct smap *m = &w->s->smap;
    if (layout_is_settled(m) || smap_count(m, NODE_TARGET, NODE_UNREACHABLE) > 0 ||
        !all_active_answer(w))
        return;
    all_learn(w);
    for (size_t name = 0; name < NAMES; name++) {
        struct owners o;
        const struct node *all[TARGETS];
        for (size_t i = 0; i < m->count; i++) {
            if (!answers(w, &m->nodes[i]) || m->nodes[i].absent_since != 0)
                return; /* in maintenance, and dead; or not whole */
            all[i] = &m->nodes[i];
        }
        owners_of(w->s, bucket(w), names[name], &o);
        uint64_t version = greatest(w, name, all, m->count, 0);
        for (size_t i = 0; i < m->count; i++)
            put(w, name, &all[i], 1, owners_has(&o, all[i]->id) ? version : 0, false);
    }
    apply(w, (struct command){.kind = CMD_MOVES_DONE, .placed = m->placed});
    w->moves++;
}

/* --- trouble ---------------------------------------------------------------------------------- */

static void forget(struct world *w, size_t t)
{
    forget_state(&w->disks[t]);
    for (size_t name = 0; name < NAMES; name++)
        w->disks[t].copies[name].dirty = false;
}

static void set(struct world *w, const char *id, enum node_state state)
{
    apply(w, (struct command){
                 .kind = CMD_NODE_STATE, .name = id, .node_state = state, .force = false});
}

static void comes_back(struct world *w, size_t t)
{
    struct disk *d = &w->disks[t];
    if (d->alive) {
        d->cut = false;
        const struct node *n = smap_node(&w->s->smap, ids[t]);
        if (n != NULL && n->state == NODE_UNREACHABLE)
            set(w, ids[t], NODE_ACTIVE);
        return;
    }
    d->boot++;
    d->alive = true;
    d->cut = false;
    forget(w, t);
    if (!join(w, t, false))
        d->alive = false;
}

static bool others_are_good(const struct world *w, const struct node *n)
{
    if (bucket(w)->props.copies < 2 || bucket(w)->filled < 2 || !layout_is_settled(&w->s->smap))
        return false;
    for (size_t i = 0; i < w->s->smap.count; i++) {
        const struct node *other = &w->s->smap.nodes[i];
        if (other != n && (other->state != NODE_ACTIVE || other->lag != LAG_NONE))
            return false;
    }
    return true;
}

/* Has somebody else whom the map would ask all that was promised? */
static bool others_have_all(const struct world *w, const struct node *n)
{
    bool have = bucket(w)->props.copies > 1 && bucket(w)->filled > 1;
    for (size_t name = 0; name < NAMES && have; name++) {
        const struct node *asked[OWNERS_ASKED_MAX];
        size_t count = owners_asked(w->s, bucket(w), names[name], n->id, asked);
        have = greatest(w, name, asked, count, 0) >= w->promised[name];
    }
    return have;
}

static bool may_lose_all(const struct world *w, const struct node *n)
{
    return n->state == NODE_ACTIVE ? others_are_good(w, n) : others_have_all(w, n);
}

/* It lacks mountpaths, for a while or for good; one that leaves may be silent as well. */
static void becomes_absent_or_present(struct world *w, size_t t)
{
    struct disk *d = &w->disks[t];
    const struct node *n = smap_node(&w->s->smap, ids[t]);
    if (n == NULL || n->state == NODE_UNREACHABLE ||
        (!answers(w, n) && (n->state == NODE_ACTIVE || n->absent_since != 0)))
        return;
    if (n->absent_since != 0 && may_lose_all(w, n) && rng_below(&w->rng, 2) == 0) {
        for (size_t name = 0; name < NAMES; name++)
            d->copies[name] = (struct copy){0};
    }
    apply(w, (struct command){
                 .kind = CMD_NODE_ABSENT, .name = ids[t], .absent = n->absent_since == 0});
}

static void is_called_unreachable(struct world *w, size_t t)
{
    const struct node *n = smap_node(&w->s->smap, ids[t]);
    if (n != NULL && n->state == NODE_ACTIVE && !answers(w, n))
        set(w, ids[t], NODE_UNREACHABLE);
}

static void set_copies(struct world *w, unsigned copies)
{
    _cleanup_json_ json_t *patch = json_pack("{s:i}", "copies", (int)copies);
    apply(w, (struct command){.kind = CMD_BUCKET_PROPS, .name = "b", .patch = patch});
}

/* All are there, and have been compared: copies may be lowered. */
static void all_are_well(struct world *w)
{
    for (size_t t = 0; t < TARGETS; t++) {
        if (smap_node(&w->s->smap, ids[t]) == NULL)
            continue;
        comes_back(w, t);
        set(w, ids[t], NODE_ACTIVE);
        apply(w, (struct command){.kind = CMD_NODE_ABSENT, .name = ids[t], .absent = false});
    }
    rebalance(w);
    repair(w);
}

static unsigned some_copies(struct world *w)
{
    return 1 + (unsigned)rng_below(&w->rng, 3);
}

/* A write is in doubt, of which the last owner has nothing and no mark; copies are lowered, so that
 * it is an owner no more, and the write is rolled forward by a read. */
static void lowers_in_doubt(struct world *w)
{
    size_t name = rng_below(&w->rng, NAMES);
    all_are_well(w);
    trim_copies(w);
    set_copies(w, 3);
    repair(w);
    for (size_t t = 0; t < TARGETS; t++)
        keeps_alive(w, t);
    write_one(w, name);
    write_up_to(w, name, 1);
    set_copies(w, 2);
    read_one(w, name);
    read_any(w, name);
}

static void trouble(struct world *w)
{
    size_t t = rng_below(&w->rng, TARGETS);
    struct disk *d = &w->disks[t];
    const struct node *n = smap_node(&w->s->smap, ids[t]);
    switch (rng_below(&w->rng, 12)) {
    case 0:
        d->alive = false;
        is_called_unreachable(w, t);
        break;
    case 1:
        d->cut = true;
        break;
    case 2:
        is_called_unreachable(w, t);
        break;
    case 3:
    case 4:
        comes_back(w, t);
        break;
    case 5: /* without its disks, while the others are good */
        if (n != NULL && n->state == NODE_ACTIVE && all_active_answer(w) && n->lag == LAG_NONE &&
            others_are_good(w, n)) {
            d->boot++;
            forget_state(d);
            for (size_t name = 0; name < NAMES; name++)
                d->copies[name] = (struct copy){0};
            assert_true(join(w, t, true));
        }
        break;
    case 6:
        set(w, ids[t], rng_below(&w->rng, 2) == 0 ? NODE_MAINTENANCE : NODE_ACTIVE);
        break;
    case 7:
        set_copies(w, some_copies(w));
        break;
    case 8:
        becomes_absent_or_present(w, t);
        becomes_absent_or_present(w, t);
        break;
    case 9:
        becomes_absent_or_present(w, t);
        break;
    case 10:
        all_are_well(w);
        set_copies(w, some_copies(w));
        break;
    case 11:
        lowers_in_doubt(w);
        break;
    }
}

static void step(struct world *w)
{
    size_t name = rng_below(&w->rng, NAMES);
    hear(w);
    read_any(w, name);
    switch (rng_below(&w->rng, 8)) {
    case 0:
    case 1:
        write_one(w, name);
        break;
    case 2:
        read_one(w, name);
        break;
    case 3:
        list_good(w);
        break;
    case 4:
        repair(w);
        trim_copies(w);
        break;
    case 5:
        rebalance(w);
        sweep(w);
        break;
    default:
        trouble(w);
    }
}

static void start(struct world *w, uint32_t copies)
{
    struct bucket_props props = BUCKET_PROPS_DEFAULT;
    props.copies = copies;
    props.read_from = READ_ANY;
    w->s = state_new("c");
    for (size_t t = 0; t < 4; t++) {
        w->disks[t].alive = true;
        assert_true(join(w, t, false));
    }
    assert_int_equal(
        apply(w, (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props}), 0);
}

static void end(struct world *w)
{
    for (size_t t = 0; t < TARGETS; t++)
        forget_state(&w->disks[t]);
    state_unref(w->s);
}

static void run(struct world *w, uint64_t seed)
{
    memset(w->disks, 0, sizeof w->disks);
    memset(w->promised, 0, sizeof w->promised);
    rng_seed(&w->rng, seed);
    start(w, 2 + (uint32_t)rng_below(&w->rng, 2));
    for (unsigned i = 0; i < STEPS; i++)
        step(w);
    end(w);
}

static void nothing_acknowledged_or_seen_is_gone(void **unused)
{
    (void)unused;
    struct world w = {0};
    for (uint64_t seed = 1; seed <= RUNS; seed++)
        run(&w, seed);
    assert_true(w.writes > RUNS && w.reads > RUNS && w.lists > RUNS && w.refused > RUNS &&
                w.repairs > RUNS && w.moves > RUNS / 4 && w.lowered > RUNS / 4 &&
                w.strays > RUNS / 4 && w.forgotten > RUNS / 4 && w.beside > RUNS &&
                w.beside_behind > RUNS); /* it has tried */
}

static void who_is_passed_over_is_not_asked(void **unused)
{
    (void)unused;
    struct world w = {0};
    struct owners o;
    start(&w, 2);
    assert_null(owners_not_asked(w.s, bucket(&w), "a"));
    owners_of(w.s, bucket(&w), "a", &o);
    const size_t first = index_of(o.all[0]), second = index_of(o.all[1]);
    set(&w, ids[first], NODE_UNREACHABLE);
    assert_string_equal(owners_not_asked(w.s, bucket(&w), "a")->id, ids[first]);
    set(&w, ids[first], NODE_ACTIVE);
    assert_null(owners_not_asked(w.s, bucket(&w), "a"));
    set(&w, ids[second], NODE_MAINTENANCE); /* an earlier owner */
    assert_null(owners_not_asked(w.s, bucket(&w), "a"));
    apply(&w, (struct command){.kind = CMD_NODE_ABSENT, .name = ids[second], .absent = true});
    assert_string_equal(owners_not_asked(w.s, bucket(&w), "a")->id, ids[second]);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acknowledged_or_seen_is_gone),
        cmocka_unit_test(who_is_passed_over_is_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
