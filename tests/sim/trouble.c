/* What goes wrong, and for how long.  Each row of the table begins one trouble; its end is an event
 * of its own, and trouble_end() ends them all. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

enum { BETWEEN_MS = 900, WALL_JUMP_MS = 3600000 };

static int any_node(struct world *w)
{
    uint64_t n = world_draw(w, w->proxies + w->targets);
    return n < w->proxies ? (int)n : target_place((unsigned)(n - w->proxies));
}

static int any_place(struct world *w)
{
    return world_draw(w, 4) == 0 ? STORE : any_node(w);
}

/* --- crashes --------------------------------------------------------------------------------- */

void world_crash(struct world *w, int place)
{
    struct place *p = &w->places[place];
    if (!p->up)
        return;
    world_note(w, place, "crashes");
    run_tally_now->crashes++;
    p->up = false;
    p->thaw_at = 0;
    if (is_target(place))
        target_sim_crash(w, target_index(place));
    else
        proxy_sim_crash(w, (unsigned)place);
}

void world_restart(struct world *w, int place)
{
    struct place *p = &w->places[place];
    if (p->up)
        return;
    p->up = true;
    p->life++;
    snprintf(p->boot, sizeof p->boot, "%s-%llu", p->name, (unsigned long long)p->life);
    world_note(w, place, "starts as %s", p->boot);
    if (is_target(place))
        target_sim_start(w, target_index(place));
    else
        proxy_sim_start(w, (unsigned)place);
}

static void restart(struct world *w, void *arg)
{
    const struct place *p = arg;
    world_restart(w, (int)(p - w->places));
}

static void exits(struct world *w, void *arg)
{
    struct place *p = arg;
    world_crash(w, (int)(p - w->places));
    world_after(w, NOBODY, 500, restart, p, NULL);
}

void world_exit(struct world *w, int place)
{
    world_after(w, place, 0, exits, &w->places[place], NULL);
}

static void crash(struct world *w)
{
    int place = any_node(w);
    if (!w->places[place].up)
        return;
    world_crash(w, place);
    world_after(w, NOBODY, world_draw(w, 4) == 0 ? world_draw(w, 9000) : world_draw(w, 1500),
                restart, &w->places[place], NULL);
}

static void crash_all(struct world *w)
{
    for (int i = 0; i < STORE; i++) {
        if (w->places[i].up) {
            world_crash(w, i);
            world_after(w, NOBODY, world_draw(w, 2000), restart, &w->places[i], NULL);
        }
    }
}

static void crash_primary(struct world *w)
{
    for (unsigned i = 0; i < w->proxies; i++) {
        if (proxy_sim_is_primary(w, i)) {
            world_crash(w, (int)i);
            world_after(w, NOBODY, world_draw(w, 4000), restart, &w->places[i], NULL);
        }
    }
}

/* SIGSTOP, swapping, a disk that hangs: the clock goes on. */
static void freeze(struct world *w)
{
    int place = any_node(w);
    uint64_t ms = world_draw(w, 4) == 0 ? world_draw(w, 12000) : world_draw(w, 3000);
    world_note(w, place, "stands still for %llu ms", (unsigned long long)ms);
    w->places[place].thaw_at = w->now + ms;
}

/* --- the network ----------------------------------------------------------------------------- */

static void cut_apart(struct world *w)
{
    for (int i = 0; i < PROXIES_MAX; i++)
        w->cut[w->apart][i] = w->cut[i][w->apart] = true;
}

static void heal(struct world *w, void *arg)
{
    (void)arg;
    world_note(w, NOBODY, "the network is whole");
    memset(w->cut, 0, sizeof w->cut);
    if (w->now < w->apart_until)
        cut_apart(w);
}

static void cut_for(struct world *w, uint64_t ms)
{
    world_after(w, NOBODY, ms, heal, NULL, NULL);
}

static void cut_link(struct world *w)
{
    int a = any_place(w);
    int b = any_place(w);
    bool one_way = world_draw(w, 2) == 0;
    world_note(w, NOBODY, "cut: %s to %s%s", w->places[a].name, w->places[b].name,
               one_way ? ", one way" : "");
    w->cut[a][b] = true;
    w->cut[b][a] = w->cut[b][a] || !one_way;
    cut_for(w, world_draw(w, 9000));
}

static void cut_off(struct world *w)
{
    int a = any_place(w);
    world_note(w, NOBODY, "cut off: %s", w->places[a].name);
    for (int i = 0; i < PLACES; i++)
        w->cut[a][i] = w->cut[i][a] = i != a;
    cut_for(w, world_draw(w, 9000));
}

static void cut_in_two(struct world *w)
{
    bool side[PLACES] = {false};
    uint64_t draw = 0;
    unsigned drawn = 0;
    world_note(w, NOBODY, "cut in two");
    for (int i = 0; i < PLACES; i++) {
        if (!place_fits(w, i))
            continue;
        draw = drawn++ % 64 == 0 ? rng_next(&w->rng) : draw >> 1;
        side[i] = draw & 1;
    }
    for (int i = 0; i < PLACES; i++) {
        for (int j = 0; j < PLACES; j++)
            w->cut[i][j] = w->cut[i][j] || side[i] != side[j];
    }
    cut_for(w, world_draw(w, 7000));
}

/* For about as long as it takes to be given up. */
static void lose_touch(struct world *w)
{
    uint64_t ms = KEEPALIVE_TIMEOUT - 1000 + world_draw(w, 3000);
    if (w->now < w->apart_until)
        return;
    w->apart = target_place((unsigned)world_draw(w, w->targets));
    w->apart_until = w->now + ms;
    world_note(w, NOBODY, "%s and the proxies lose each other", w->places[w->apart].name);
    cut_apart(w);
    cut_for(w, ms);
}

static void lose(struct world *w)
{
    w->loss = world_draw(w, 3) == 0 ? 0 : (unsigned)world_draw(w, 200);
    world_note(w, NOBODY, "%u of 1000 messages are lost", w->loss);
}

/* --- clocks, etcd, operators ----------------------------------------------------------------- */

static void jump_wall(struct world *w)
{
    int place = any_node(w);
    int64_t ms = (int64_t)world_draw(w, 2 * WALL_JUMP_MS) - WALL_JUMP_MS;
    world_note(w, place, "its wall clock jumps by %lld ms", (long long)ms);
    w->places[place].wall_off_ms += ms;
}

static void store_recovers(struct world *w, void *arg)
{
    (void)arg;
    store_set_mood(w, STORE_WELL);
}

static void store_fails(struct world *w)
{
    store_set_mood(w, (enum store_mood)(1 + world_draw(w, 3)));
    world_after(w, NOBODY, world_draw(w, 5000), store_recovers, NULL, NULL);
}

static void resign(struct world *w)
{
    proxy_sim_resign(w, (unsigned)world_draw(w, w->proxies));
}

/* What strikes one node strikes several in a large cluster. */
static const struct {
    unsigned weight;
    void (*begin)(struct world *w);
    bool strikes_one;
} troubles[] = {
    {8, crash, true},
    {1, crash_all, false},
    {4, crash_primary, false},
    {6, freeze, true},
    {5, cut_link, true},
    {3, cut_off, true},
    {2, cut_in_two, false},
    {4, lose, false},
    {2, jump_wall, true},
    {6, store_fails, false},
    {1, store_end_leases, false},
    {2, resign, false},
    {2, lose_touch, false},
};

static void next_trouble(struct world *w, void *arg)
{
    (void)arg;
    unsigned all = 0;
    if (w->calm)
        return;
    for (size_t i = 0; i < sizeof troubles / sizeof *troubles; i++)
        all += troubles[i].weight;
    uint64_t draw = world_draw(w, all);
    size_t which = 0;
    while (draw >= troubles[which].weight)
        draw -= troubles[which++].weight;
    uint64_t times = troubles[which].strikes_one && w->scale > 1 ? 1 + world_draw(w, w->scale) : 1;
    for (uint64_t i = 0; i < times; i++)
        troubles[which].begin(w);
    world_after(w, NOBODY, 1 + world_draw(w, BETWEEN_MS), next_trouble, NULL, NULL);
}

void trouble_start(struct world *w)
{
    next_trouble(w, NULL);
}

void trouble_end(struct world *w)
{
    w->calm = true;
    w->loss = 0;
    w->apart_until = 0;
    memset(w->cut, 0, sizeof w->cut);
    store_set_mood(w, STORE_WELL);
    world_note(w, NOBODY, "all is well from now on");
    for (int i = 0; i < STORE; i++) {
        bool exists = is_target(i) ? target_index(i) < w->targets : (unsigned)i < w->proxies;
        if (exists && w->failure == NULL)
            world_restart(w, i);
    }
}
