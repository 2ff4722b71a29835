#include "cluster/testing/owners_world.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cluster/command/command.h"
#include "cluster/placement/lag.h"
#include "cluster/placement/copies_reduce.h"
#include "cluster/placement/owners.h"

const char *const world_ids[TARGETS] = {"t0", "t1", "t2", "t3", "t4"};
const char *const world_names[NAMES] = {"a", "b", "c"};

/* One write of four is a deletion. */
static bool is_tombstone(uint64_t version)
{
    return version % 4 == 0;
}

size_t world_index(const struct node *n)
{
    return (size_t)(n->id[1] - '0');
}

bool world_answers(const struct world *w, const struct node *n)
{
    const struct disk *d = &w->disks[world_index(n)];
    return d->alive && !d->cut;
}

/* --- what a target knows ---------------------------------------------------------------------- */

void world_forget_state(struct disk *d)
{
    state_unref(d->known);
    d->known = NULL;
    d->lease = false;
}

/* By a push, or from whoever asks or tells it something by this state. */
static void learns(struct world *w, const struct node *n)
{
    struct disk *d = &w->disks[world_index(n)];
    const struct cluster_state *now = state_ref(w->s);
    state_unref(d->known);
    d->known = now;
}

static bool is_let_in(const struct world *w, size_t t)
{
    char boot[16];
    const struct node *n = smap_node(&w->disks[t].known->smap, world_ids[t]);
    snprintf(boot, sizeof boot, "b%u", w->disks[t].boot);
    return n != NULL && strcmp(n->boot, boot) == 0;
}

/* A keepalive and its reply: a lease, for who knows the state that it was given under. */
void world_keep_alive(struct world *w, size_t t)
{
    struct disk *d = &w->disks[t];
    const struct node *n = smap_node(&w->s->smap, world_ids[t]);
    if (n != NULL && world_answers(w, n) && n->state == NODE_ACTIVE && n->absent_since == 0 &&
        d->known == w->s)
        d->lease = true;
}

/* Nobody is passed over before its lease is over (cluster/members/lease.h). */
static void end_leases(struct world *w)
{
    for (size_t t = 0; t < TARGETS; t++) {
        const struct node *n = smap_node(&w->s->smap, world_ids[t]);
        if (n == NULL || !node_is_present(n))
            w->disks[t].lease = false;
    }
}

int world_apply(struct world *w, struct command cmd)
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

bool world_join(struct world *w, size_t t, bool lost)
{
    char boot[16];
    snprintf(boot, sizeof boot, "b%u", w->disks[t].boot);
    const struct node n = {.id = world_ids[t],
                           .role = NODE_TARGET,
                           .public_url = "http://h:1",
                           .control_url = "http://h:2",
                           .data_url = "http://h:3",
                           .weight = 1024,
                           .boot = boot};
    bool known = smap_node(&w->s->smap, world_ids[t]) != NULL;
    return world_apply(w,
                       (struct command){
                           .kind = CMD_NODE_JOIN, .node = &n, .fresh = !known, .lost = lost}) == 0;
}

const struct bucket *world_bucket(const struct world *w)
{
    return bmd_bucket_by_id(&w->s->bmd, BUCKET_ID);
}

/* --- the protocol ----------------------------------------------------------------------------- */

uint64_t world_greatest(const struct world *w, size_t name, const struct node *const *nodes,
                        size_t count, uint64_t so_far)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t version = w->disks[world_index(nodes[i])].copies[name].version;
        so_far = version > so_far ? version : so_far;
    }
    return so_far;
}

static bool all_answer(const struct world *w, const struct node *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!world_answers(w, nodes[i]))
            return false;
    }
    return true;
}

static void put(struct world *w, size_t name, const struct node *const *nodes, size_t count,
                uint64_t version, bool dirty)
{
    for (size_t i = 0; i < count; i++)
        w->disks[world_index(nodes[i])].copies[name] = (struct copy){version, dirty};
}

static bool tell_former(struct world *w, size_t name, const struct owners *o)
{
    const struct node *former[OWNERS_ASKED_MAX];
    size_t count = owners_former(w->s, world_bucket(w), world_names[name], o->acting->id, former);
    for (size_t i = 0; i < count; i++) {
        if (!world_answers(w, former[i]))
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
    struct copy *own = &w->disks[world_index(o->acting)].copies[name];
    if (!owners_must_compare(w->s, o) && !own->dirty)
        return true;
    size_t count =
        bucket_has_copies(world_bucket(w))
            ? owners_asked(w->s, world_bucket(w), world_names[name], o->acting->id, asked)
            : layout_ask(&w->s->smap, BUCKET_ID, world_names[name], 1, o->acting->id, false, asked);
    size_t other_count = owners_others(o, o->acting->id, others);
    if (!all_answer(w, asked, count))
        return false;
    for (size_t i = 0; i < count; i++)
        learns(w, asked[i]);
    uint64_t version = world_greatest(w, name, asked, count, own->version);
    if (!tell_former(w, name, o))
        return false;
    put(w, name, others, other_count, version, false);
    *own = (struct copy){version, false};
    return true;
}

/* The acting owner, if it may go on. */
static bool begin(struct world *w, size_t name, struct owners *o)
{
    owners_of(w->s, world_bucket(w), world_names[name], o);
    bool may = o->acting != NULL && o->awaited == NULL && world_answers(w, o->acting) &&
               compare(w, name, o);
    w->refused += !may;
    return may;
}

/* most: of the others, that it reaches. */
void world_write_up_to(struct world *w, size_t name, size_t most)
{
    struct owners o;
    const struct node *others[OWNERS_MAX];
    if (!begin(w, name, &o) || !tell_former(w, name, &o))
        return;
    size_t count = owners_others(&o, o.acting->id, others);
    uint64_t version = ++w->last;
    size_t committed = 0;
    while (committed < count && committed < most && world_answers(w, others[committed]) &&
           rng_below(&w->rng, 8) != 0) {
        put(w, name, &others[committed], 1, version, true);
        learns(w, others[committed]);
        committed++;
    }
    if (committed < count) { /* in doubt: it rolls forward later, or another one does */
        w->disks[world_index(o.acting)].copies[name].dirty = committed > 0;
        return;
    }
    put(w, name, &o.acting, 1, version, false);
    if (rng_below(&w->rng, 2) == 0) /* else the release does not come */
        put(w, name, others, count, version, false);
    w->promised[name] = version;
    w->writes++;
}

void world_write(struct world *w, size_t name)
{
    world_write_up_to(w, name, OWNERS_MAX);
}

/* Nothing is as good as a tombstone. */
static void check_kept(const struct world *w, size_t name, uint64_t version, const char *where)
{
    bool gone = version == 0 && is_tombstone(w->promised[name]);
    if (version < w->promised[name] && !gone)
        fail_msg("'%s' is at %llu %s, and %llu was promised", world_names[name],
                 (unsigned long long)version, where, (unsigned long long)w->promised[name]);
}

static void saw(struct world *w, size_t name, const struct node *at)
{
    uint64_t version = w->disks[world_index(at)].copies[name].version;
    check_kept(w, name, version, at->id);
    w->promised[name] = version > w->promised[name] ? version : w->promised[name];
    w->reads++;
}

/* Every name, as a list would show it. */
void world_list(struct world *w)
{
    for (size_t name = 0; name < NAMES && owners_good_suffice(w->s, world_bucket(w)); name++) {
        uint64_t version = 0;
        for (size_t i = 0; i < w->s->smap.count; i++) {
            const struct node *n = &w->s->smap.nodes[i];
            bool shows = !bucket_has_surplus(world_bucket(w)) ||
                         copies_reduce_shows(w->s, world_bucket(w), world_names[name], n->id);
            if (n->state == NODE_ACTIVE && n->lag != LAG_MISSED && node_is_present(n) && shows)
                version = world_greatest(w, name, &n, 1, version);
        }
        check_kept(w, name, version, "in a list");
        w->lists++;
    }
}

void world_read(struct world *w, size_t name)
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
    owners_of(d->known, b, world_names[name], &o);
    return owners_reads_beside(d->known, b, &o, world_ids[t]);
}

void world_read_any(struct world *w, size_t name)
{
    for (size_t t = 0; t < TARGETS; t++) {
        const struct node n = {.id = (char *)world_ids[t]};
        if (!may_answer(w, name, t))
            continue;
        saw(w, name, &n);
        w->beside++;
        w->beside_behind += w->disks[t].known != w->s;
    }
}

/* Somebody hears of the state in force, and somebody of its lease. */
void world_hear(struct world *w)
{
    const struct node *n = smap_node(&w->s->smap, world_ids[rng_below(&w->rng, TARGETS)]);
    if (n != NULL && world_answers(w, n))
        learns(w, n);
    world_keep_alive(w, rng_below(&w->rng, TARGETS));
}

/* In a job all that take part know its state, or a later one. */
static void all_learn(struct world *w)
{
    for (size_t i = 0; i < w->s->smap.count; i++) {
        if (world_answers(w, &w->s->smap.nodes[i]))
            learns(w, &w->s->smap.nodes[i]);
    }
}

/* --- repair and rebalance --------------------------------------------------------------------- */

bool world_all_active_answer(const struct world *w)
{
    for (size_t i = 0; i < w->s->smap.count; i++) {
        const struct node *n = &w->s->smap.nodes[i];
        if (n->state == NODE_ACTIVE && !world_answers(w, n))
            return false;
    }
    return true;
}

void world_repair(struct world *w)
{
    struct command done = {.kind = CMD_LAG_DONE,
                           .lagged = w->s->smap.lagged,
                           .placed = w->s->smap.placed,
                           .raised = world_bucket(w)->raised};
    if (!world_all_active_answer(w) || !layout_is_settled(&w->s->smap))
        return;
    all_learn(w);
    for (size_t name = 0; name < NAMES; name++) {
        struct owners o;
        const struct node *active[OWNERS_MAX];
        owners_of(w->s, world_bucket(w), world_names[name], &o);
        size_t count = owners_others(&o, "", active);
        put(w, name, active, count, world_greatest(w, name, active, count, 0), false);
    }
    assert_int_equal(world_apply(w, done), 0);
    done.kind = CMD_COPIES_FILLED;
    assert_int_equal(world_apply(w, done), 0);
    w->repairs++;
}

/* False: an owner lacks what is here. */
static bool remove_stray(struct world *w, size_t name, const struct node *n)
{
    struct owners o;
    struct copy *c = &w->disks[world_index(n)].copies[name];
    owners_of(w->s, world_bucket(w), world_names[name], &o);
    if (c->version == 0 || owners_has(&o, n->id))
        return true;
    for (size_t i = 0; i < o.count; i++) {
        if (w->disks[world_index(o.all[i])].copies[name].version < c->version)
            return false;
    }
    *c = (struct copy){0};
    w->strays++;
    return true;
}

void world_trim_copies(struct world *w)
{
    const struct smap *m = &w->s->smap;
    bool all = true;
    if (!copies_reduce_may_end(w->s, world_bucket(w)) || !world_all_active_answer(w))
        return;
    all_learn(w);
    for (size_t i = 0; i < m->count * NAMES; i++)
        all = remove_stray(w, i % NAMES, &m->nodes[i / NAMES]) && all;
    if (!all)
        return;
    const struct copies_reduce_fence fence = copies_reduce_fence(w->s, world_bucket(w));
    assert_int_equal(world_apply(w, (struct command){.kind = CMD_COPIES_LOWERED, .fence = fence}),
                     0);
    w->lowered++;
}

/* All tombstones are old. */
void world_sweep(struct world *w)
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
void world_rebalance(struct world *w)
{
    const struct smap *m = &w->s->smap;
    if (layout_is_settled(m) || smap_count(m, NODE_TARGET, NODE_UNREACHABLE) > 0 ||
        !world_all_active_answer(w))
        return;
    all_learn(w);
    for (size_t name = 0; name < NAMES; name++) {
        struct owners o;
        const struct node *all[TARGETS];
        for (size_t i = 0; i < m->count; i++) {
            if (!world_answers(w, &m->nodes[i]) || m->nodes[i].absent_since != 0)
                return; /* in maintenance, and dead; or not whole */
            all[i] = &m->nodes[i];
        }
        owners_of(w->s, world_bucket(w), world_names[name], &o);
        uint64_t version = world_greatest(w, name, all, m->count, 0);
        for (size_t i = 0; i < m->count; i++)
            put(w, name, &all[i], 1, owners_has(&o, all[i]->id) ? version : 0, false);
    }
    world_apply(w, (struct command){.kind = CMD_MOVES_DONE, .placed = m->placed});
    w->moves++;
}
