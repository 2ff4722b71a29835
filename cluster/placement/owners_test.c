/* The rules of owners.h against a model (owners_world.h): targets that die, come back, forget,
 * leave and join, whose map is made by the real commands; a repair; a rebalance; copies that are
 * raised and lowered; tombstones that are forgotten. */
#include "cluster/placement/owners.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cluster/placement/lag.h"
#include "cluster/testing/owners_world.h"
#include "common/jsonx.h"

enum { STEPS = 400, RUNS = 400 };

/* --- trouble ---------------------------------------------------------------------------------- */

static void forget(struct world *w, size_t t)
{
    world_forget_state(&w->disks[t]);
    for (size_t name = 0; name < NAMES; name++)
        w->disks[t].copies[name].dirty = false;
}

static void set(struct world *w, const char *id, enum node_state state)
{
    world_apply(w, (struct command){
                       .kind = CMD_NODE_STATE, .name = id, .node_state = state, .force = false});
}

static void comes_back(struct world *w, size_t t)
{
    struct disk *d = &w->disks[t];
    if (d->alive) {
        d->cut = false;
        const struct node *n = smap_node(&w->s->smap, world_ids[t]);
        if (n != NULL && n->state == NODE_UNREACHABLE)
            set(w, world_ids[t], NODE_ACTIVE);
        return;
    }
    d->boot++;
    d->alive = true;
    d->cut = false;
    forget(w, t);
    if (!world_join(w, t, false))
        d->alive = false;
}

static bool others_are_good(const struct world *w, const struct node *n)
{
    if (world_bucket(w)->props.copies < 2 || world_bucket(w)->filled < 2 ||
        !layout_is_settled(&w->s->smap))
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
    bool have = world_bucket(w)->props.copies > 1 && world_bucket(w)->filled > 1;
    for (size_t name = 0; name < NAMES && have; name++) {
        const struct node *asked[OWNERS_ASKED_MAX];
        size_t count = owners_asked(w->s, world_bucket(w), world_names[name], n->id, asked);
        have = world_greatest(w, name, asked, count, 0) >= w->promised[name];
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
    const struct node *n = smap_node(&w->s->smap, world_ids[t]);
    if (n == NULL || n->state == NODE_UNREACHABLE ||
        (!world_answers(w, n) && (n->state == NODE_ACTIVE || n->absent_since != 0)))
        return;
    if (n->absent_since != 0 && may_lose_all(w, n) && rng_below(&w->rng, 2) == 0) {
        for (size_t name = 0; name < NAMES; name++)
            d->copies[name] = (struct copy){0};
    }
    world_apply(w, (struct command){.kind = CMD_NODE_ABSENT,
                                    .name = world_ids[t],
                                    .absent = n->absent_since == 0});
}

static void is_called_unreachable(struct world *w, size_t t)
{
    const struct node *n = smap_node(&w->s->smap, world_ids[t]);
    if (n != NULL && n->state == NODE_ACTIVE && !world_answers(w, n))
        set(w, world_ids[t], NODE_UNREACHABLE);
}

static void set_copies(struct world *w, unsigned copies)
{
    _cleanup_json_ json_t *patch = json_pack("{s:i}", "copies", (int)copies);
    world_apply(w, (struct command){.kind = CMD_BUCKET_PROPS, .name = "b", .patch = patch});
}

/* All are there, and have been compared: copies may be lowered. */
static void all_are_well(struct world *w)
{
    for (size_t t = 0; t < TARGETS; t++) {
        if (smap_node(&w->s->smap, world_ids[t]) == NULL)
            continue;
        comes_back(w, t);
        set(w, world_ids[t], NODE_ACTIVE);
        world_apply(
            w, (struct command){.kind = CMD_NODE_ABSENT, .name = world_ids[t], .absent = false});
    }
    world_rebalance(w);
    world_repair(w);
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
    world_trim_copies(w);
    set_copies(w, 3);
    world_repair(w);
    for (size_t t = 0; t < TARGETS; t++)
        world_keep_alive(w, t);
    world_write(w, name);
    world_write_up_to(w, name, 1);
    set_copies(w, 2);
    world_read(w, name);
    world_read_any(w, name);
}

static void trouble(struct world *w)
{
    size_t t = rng_below(&w->rng, TARGETS);
    struct disk *d = &w->disks[t];
    const struct node *n = smap_node(&w->s->smap, world_ids[t]);
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
        if (n != NULL && n->state == NODE_ACTIVE && world_all_active_answer(w) &&
            n->lag == LAG_NONE && others_are_good(w, n)) {
            d->boot++;
            world_forget_state(d);
            for (size_t name = 0; name < NAMES; name++)
                d->copies[name] = (struct copy){0};
            assert_true(world_join(w, t, true));
        }
        break;
    case 6:
        set(w, world_ids[t], rng_below(&w->rng, 2) == 0 ? NODE_MAINTENANCE : NODE_ACTIVE);
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
    world_hear(w);
    world_read_any(w, name);
    switch (rng_below(&w->rng, 8)) {
    case 0:
    case 1:
        world_write(w, name);
        break;
    case 2:
        world_read(w, name);
        break;
    case 3:
        world_list(w);
        break;
    case 4:
        world_repair(w);
        world_trim_copies(w);
        break;
    case 5:
        world_rebalance(w);
        world_sweep(w);
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
        assert_true(world_join(w, t, false));
    }
    assert_int_equal(
        world_apply(w, (struct command){.kind = CMD_BUCKET_CREATE, .name = "b", .props = &props}),
        0);
}

static void end(struct world *w)
{
    for (size_t t = 0; t < TARGETS; t++)
        world_forget_state(&w->disks[t]);
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
    assert_null(owners_not_asked(w.s, world_bucket(&w), "a"));
    owners_of(w.s, world_bucket(&w), "a", &o);
    const size_t first = world_index(o.all[0]), second = world_index(o.all[1]);
    set(&w, world_ids[first], NODE_UNREACHABLE);
    assert_string_equal(owners_not_asked(w.s, world_bucket(&w), "a")->id, world_ids[first]);
    set(&w, world_ids[first], NODE_ACTIVE);
    assert_null(owners_not_asked(w.s, world_bucket(&w), "a"));
    set(&w, world_ids[second], NODE_MAINTENANCE); /* an earlier owner */
    assert_null(owners_not_asked(w.s, world_bucket(&w), "a"));
    world_apply(
        &w, (struct command){.kind = CMD_NODE_ABSENT, .name = world_ids[second], .absent = true});
    assert_string_equal(owners_not_asked(w.s, world_bucket(&w), "a")->id, world_ids[second]);
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
