/* One seed. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

/* What was under way when the trouble ended arrives within LATE_MS. */
enum { LATE_MS = 14000, STILL_MS = 2500, CHECK_EVERY_MS = 100, STEPS_SMALL = 3000, SMALL_MOST = 4 };

struct run_tally *run_tally_now;

/* Up to eight nodes; or as many as were asked for, up to half of them and PROXIES_MAX proxies. */
static void draw_size(struct world *w, unsigned nodes)
{
    w->scale = 1;
    if (nodes == 0) {
        w->proxies_most = w->targets_most = SMALL_MOST;
        w->proxies = 1 + (unsigned)world_draw(w, SMALL_MOST);
        w->targets = 1 + (unsigned)world_draw(w, SMALL_MOST);
        return;
    }
    w->proxies = 1 + (unsigned)world_draw(w, nodes / 2 < PROXIES_MAX ? nodes / 2 : PROXIES_MAX);
    w->targets = nodes - w->proxies;
    w->proxies_most = w->proxies > SMALL_MOST ? w->proxies : SMALL_MOST; /* which targets may ask */
    w->targets_most = w->targets;
    if (nodes > 2 * SMALL_MOST)
        w->scale = nodes / (2 * SMALL_MOST);
}

static void draw_cluster(struct world *w, unsigned nodes)
{
    w->is_shared = world_draw(w, 4) != 0;
    draw_size(w, nodes);
    for (int i = 0; i < STORE; i++) {
        if (!place_fits(w, i))
            continue;
        int64_t far = w->mutant == MUTANT_wild_clocks ? 300000 : 2000;
        w->places[i].rate_ppm = (int64_t)world_draw(w, (uint64_t)(2 * far)) - far;
        if (w->mutant == MUTANT_wild_clocks)
            w->places[i].wall_off_ms = (int64_t)world_draw(w, (uint64_t)1 << 42);
    }
}

static void build(struct world *w)
{
    checker_new(w);
    pushes_new(w);
    objects_new(w);
    client_new(w);
    store_new(w);
    for (unsigned i = 0; i < w->proxies; i++)
        proxy_sim_new(w, i);
    for (unsigned i = 0; i < w->targets; i++)
        target_sim_new(w, i);
}

static void take_down(struct world *w)
{
    struct run_tally ignored = {0};
    run_tally_now = &ignored;
    if (w->failure == NULL)
        w->failure = xstrdup(""); /* what a crash does now is of no account */
    for (unsigned i = 0; i < w->proxies; i++) {
        world_crash(w, (int)i);
        proxy_sim_free(w, i);
    }
    for (unsigned i = 0; i < w->targets; i++) {
        world_crash(w, target_place(i));
        target_sim_free(w, i);
    }
    net_end(w, CLIENT, FOR_NODE);
    store_free(w);
    client_free(w);
    objects_free(w);
    checker_free(w);
    world_done(w);
    pushes_free(w);
}

/* Who stands still goes on by himself. */
static uint64_t last_thaw_ms(const struct world *w)
{
    uint64_t last = w->now;
    for (int i = 0; i < STORE; i++) {
        if (w->places[i].up && w->places[i].thaw_at > last)
            last = w->places[i].thaw_at;
    }
    return last - w->now;
}

static void await_convergence(struct world *w, uint64_t at_least_ms, const char *when)
{
    char why[160] = "";
    uint64_t until = w->now + CONVERGE_WITHIN;
    uint64_t next = w->now + at_least_ms;
    while (world_step(w)) {
        if (w->now < next)
            continue;
        next = w->now + CHECK_EVERY_MS;
        if (check_converged(w, why))
            return;
        if (w->now > until)
            world_fail(w, "every node converges: not within %d s %s: %s", CONVERGE_WITHIN / 1000,
                       when, why);
    }
}

/* What has converged stays as it is. */
static void stay_still(struct world *w)
{
    uint64_t version = check_head(w)->version;
    uint64_t until = w->now + STILL_MS;
    while (w->now < until && world_step(w)) {
        if (check_head(w)->version != version)
            world_fail(w, "every node converges: the documents still change");
    }
}

static void live(struct world *w, const struct run_config *c)
{
    w->calm = true;
    for (unsigned i = 0; i < w->proxies; i++)
        world_restart(w, (int)i);
    for (unsigned i = 0; i < w->targets; i++)
        world_restart(w, target_place(i));
    await_convergence(w, 0, "at the beginning");
    client_make_bucket(w);
    await_convergence(w, 0, "with its first bucket");
    if (w->failure == NULL)
        objects_write(w);
    w->calm = false;
    uint64_t last = w->steps + (c->steps != 0 ? c->steps : (uint64_t)STEPS_SMALL * w->scale);
    client_start(w);
    trouble_start(w);
    while (w->steps < last && world_step(w))
        ;
    trouble_end(w);
    await_convergence(w, last_thaw_ms(w) + LATE_MS, "after the last trouble");
    if (w->failure == NULL)
        stay_still(w);
    if (w->failure == NULL)
        check_end(w);
}

static char *report(const struct world *w, uint64_t nodes)
{
    char size[40] = "";
    if (w->failure == NULL)
        return NULL;
    char *text = xprintf("seed %llu: %s, %u proxies, %u targets\n", (unsigned long long)w->seed,
                         w->is_shared ? "etcd" : "embedded", w->proxies, w->targets);
    if (nodes != 0)
        snprintf(size, sizeof size, " --nodes %llu", (unsigned long long)nodes);
    size_t count = sizeof w->ring / sizeof w->ring[0];
    for (size_t i = 0; i < count; i++) {
        const char *line = w->ring[(w->ring_at + i) % count];
        if (line == NULL)
            continue;
        char *longer = xprintf("%s  %s\n", text, line);
        free(text);
        text = longer;
    }
    char *whole = xprintf("%sFAILED %s\nrepeat it with --seed %llu%s --trace", text, w->failure,
                          (unsigned long long)w->seed, size);
    free(text);
    return whole;
}

char *run_seed(const struct run_config *c, struct run_tally *tally)
{
    struct world *w = xmalloc(sizeof *w);
    run_tally_now = tally;
    world_init(w, c->seed);
    w->mutant = c->mutant;
    w->traced = c->traced;
    draw_cluster(w, (unsigned)c->nodes);
    build(w);
    live(w, c);
    char *failure = report(w, c->nodes);
    tally->runs++;
    tally->steps += w->steps;
    take_down(w);
    free(w);
    return failure;
}
