/* volume_sim [--seeds A-B] [--mutants [--mutant NAME]] [--seed N [--mutant NAME]]
 *
 * --seeds:   each seed must find nothing
 * --mutants: each mutant, or this one, must be found by one of the seeds
 * --seed:    one run, with its calls */
#include "mount/volume/testing/sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/parse.h"
#include "mount/meta/memory.h"

void sim_fail(struct world *w, const char *fmt, ...)
{
    va_list ap;
    if (sim_failed(w))
        return;
    va_start(ap, fmt);
    vsnprintf(w->failed, sizeof w->failed, fmt, ap);
    va_end(ap);
}

/* ---- one run ---- */

static void begin_world(struct world *w, const struct sim_options *options)
{
    static const unsigned doubts[] = {0, 10, 50, 200}, crashes[] = {0, 5, 20}, failures[] = {0, 2};
    struct volume_format format;
    *w = (struct world){.options = *options, .now_ms = 1000000};
    rng_seed(&w->rng, options->seed);
    w->doubt = doubts[rng_below(&w->rng, 4)];
    w->crash = crashes[rng_below(&w->rng, 3)];
    w->failure = failures[rng_below(&w->rng, 2)];
    sem_init(&w->end, 0, 0);
    const bool trash = rng_below(&w->rng, 2) == 0;
    model_init(&w->model, trash);
    format_init(&format, "sim", "dfc://sim");
    format.chunk_bytes = SIM_CHUNK;
    format.block_bytes = SIM_CHUNK / 4;
    format.session_ms = SIM_SESSION_MS;
    format.grace_ms = SIM_GRACE_MS;
    format.trash_days = trash;
    struct error err = ERROR_INIT;
    if (meta_memory_ops.open("", true, &w->real, &err) != 0 ||
        format_write(w->real, &format, 0, 0, &err) != 0)
        sim_fail(w, "%s", err.message);
}

static void run_clients(struct world *w)
{
    for (unsigned i = 0; i < SIM_CLIENTS; i++) {
        struct client *c = &w->clients[i];
        *c = (struct client){.meta.ops = &sim_engine_ops, .w = w, .number = i};
        c->calls_left = 100 + (unsigned)rng_below(&w->rng, 200);
        sem_init(&c->turn, 0, 0);
    }
    for (unsigned i = 0; i < SIM_CLIENTS; i++) {
        if (pthread_create(&w->clients[i].thread, NULL, sim_client, &w->clients[i]) != 0)
            abort();
    }
    sem_post(&w->clients[0].turn);
    while (sem_wait(&w->end) != 0)
        continue;
    for (unsigned i = 0; i < SIM_CLIENTS; i++) {
        pthread_join(w->clients[i].thread, NULL);
        sem_destroy(&w->clients[i].turn);
    }
}

static void end_world(struct world *w)
{
    sim_flush_delayed(w);
    while (w->attempts != NULL) {
        struct attempt *a = w->attempts;
        w->attempts = a->next;
        free(a);
    }
    free(w->garbage);
    model_done(&w->model);
    meta_close(w->real);
    sem_destroy(&w->end);
}

bool sim_run(struct world *w, const struct sim_options *options)
{
    begin_world(w, options);
    if (!sim_failed(w))
        run_clients(w);
    if (!sim_failed(w))
        sim_check(w);
    end_world(w);
    return !sim_failed(w);
}

/* ---- many runs ---- */

struct range {
    uint64_t from, to;
};

static int run_seeds(struct range r)
{
    uint64_t sums[6] = {0};
    for (uint64_t seed = r.from; seed <= r.to; seed++) {
        struct world w;
        if (!sim_run(&w, &(struct sim_options){.seed = seed})) {
            printf("seed %llu: %s\nrepeat with --seed %llu\n0 passed, 1 failed, 0 skipped\n",
                   (unsigned long long)seed, w.failed, (unsigned long long)seed);
            return 1;
        }
        const uint64_t of_run[] = {w.commits, w.conflicts, w.doubts,
                                   w.crashes, w.over,      w.takeovers};
        for (unsigned i = 0; i < 6; i++)
            sums[i] += of_run[i];
    }
    printf("seeds %llu to %llu: %llu commits, %llu conflicts, %llu without a reply, %llu crashes, "
           "%llu sessions given up, %llu calls known after a takeover\n%llu passed, 0 failed, 0 "
           "skipped\n",
           (unsigned long long)r.from, (unsigned long long)r.to, (unsigned long long)sums[0],
           (unsigned long long)sums[1], (unsigned long long)sums[2], (unsigned long long)sums[3],
           (unsigned long long)sums[4], (unsigned long long)sums[5],
           (unsigned long long)(r.to - r.from + 1));
    return 0;
}

/* A seed that fails without the mutant, too, has found something else. */
static bool finds(struct world *w, uint64_t seed, const char *mutant)
{
    struct world whole = {0};
    return !sim_run(w, &(struct sim_options){seed, mutant, false}) &&
           sim_run(&whole, &(struct sim_options){.seed = seed});
}

static int run_mutants(struct range r, const char *only)
{
    static const char *const names[] = {
#define MUTANT(name, op, step, key, offset, meaning) #name,
#include "mount/volume/testing/mutants.def"
#undef MUTANT
    };
    unsigned found = 0, missed = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct world w = {0};
        uint64_t seed = r.from;
        if (only != NULL && strcmp(only, names[i]) != 0)
            continue;
        while (seed <= r.to && !finds(&w, seed, names[i]))
            seed++;
        found += seed <= r.to;
        missed += seed > r.to;
        printf("%-16s %s", names[i], seed <= r.to ? "found by seed " : "NOT FOUND\n");
        if (seed <= r.to)
            printf("%llu: %s\n", (unsigned long long)seed, w.failed);
    }
    if (found + missed == 0)
        fprintf(stderr, "there is no mutant '%s': mutants.def has their names\n", only);
    printf("%u passed, %u failed, 0 skipped\n", found, missed);
    return missed > 0 || found == 0;
}

static int run_one(uint64_t seed, const char *mutant)
{
    struct world w;
    bool fine = sim_run(&w, &(struct sim_options){seed, mutant, true});
    printf("seed %llu: %s\n", (unsigned long long)seed, fine ? "nothing found" : w.failed);
    return !fine;
}

static bool parse_range(const char *text, struct range *r)
{
    return sscanf(text, "%lu-%lu", &r->from, &r->to) == 2 && r->from <= r->to;
}

int main(int argc, char **argv)
{
    struct range seeds = {1, 100};
    uint64_t seed = 0;
    const char *mutant = NULL;
    bool mutants = false, known = true;
    log_set_level(LOG_OFF);
    for (int i = 1; i < argc && known; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--mutants") == 0)
            mutants = true;
        else if (more && strcmp(argv[i], "--seeds") == 0)
            known = parse_range(argv[++i], &seeds);
        else if (more && strcmp(argv[i], "--seed") == 0)
            known = parse_u64(argv[++i], &seed, NULL) == 0;
        else if (more && strcmp(argv[i], "--mutant") == 0)
            mutant = argv[++i];
        else
            known = false;
    }
    if (!known) {
        fprintf(stderr, "usage: volume_sim [--seeds A-B] [--mutants [--mutant NAME]] [--seed N "
                        "[--mutant NAME]]\n");
        return 2;
    }
    if (seed != 0)
        return run_one(seed, mutant);
    return mutants ? run_mutants(seeds, mutant) : run_seeds(seeds);
}
