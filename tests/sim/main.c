/* The simulator's command line: see usage(), and README.md. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "common/parse.h"
#include "tests/sim/sim.h"

static const struct {
    const char *name;
    bool caught;
    const char *what;
} mutants[] = {
#define MUTANT(name, caught, what) {#name, caught, what},
#include "tests/sim/mutants.def"
#undef MUTANT
};

struct options {
    struct run_config run;
    uint64_t first, last;
    bool all_mutants;
};

static int usage(void)
{
    fputs("usage: sim [--seed N | --seeds A-B] [--nodes N] [--steps N] [--trace] [--mutant NAME]\n"
          "       sim --mutants [--seeds A-B] [--nodes N] [--steps N]\n\n"
          "--nodes   the size of the cluster, 2 to 200 (else up to eight, drawn)\n"
          "--steps   events of trouble before the cluster is left in peace (3000; more with "
          "--nodes)\n"
          "--trace   print what happens\n"
          "--mutant  break a promise of the world, or leave out a step of the daemons:\n",
          stderr);
    for (size_t i = 1; i < MUTANTS; i++)
        fprintf(stderr, "            %-14s %s\n", mutants[i].name, mutants[i].what);
    fputs("--mutants every one of these must be found by one of the seeds, or by none\n", stderr);
    return 2;
}

static int parse_seeds(const char *text, struct options *o)
{
    char first[24];
    const char *dash = strchr(text, '-');
    if (dash == NULL || (size_t)(dash - text) >= sizeof first)
        return -1;
    memcpy(first, text, (size_t)(dash - text));
    first[dash - text] = '\0';
    return parse_u64(first, &o->first, NULL) != 0 || parse_u64(dash + 1, &o->last, NULL) != 0 ? -1
                                                                                              : 0;
}

static int parse_mutant(const char *name, struct options *o)
{
    for (size_t i = 0; i < MUTANTS; i++) {
        if (strcmp(mutants[i].name, name) == 0) {
            o->run.mutant = (enum mutant)i;
            return 0;
        }
    }
    return -1;
}

static int parse_nodes(const char *text, struct options *o)
{
    if (parse_u64(text, &o->run.nodes, NULL) != 0)
        return -1;
    return o->run.nodes >= 2 && o->run.nodes <= NODES_MAX ? 0 : -1;
}

static int parse_valued(const char *option, const char *value, struct options *o)
{
    if (value == NULL)
        return -1;
    if (strcmp(option, "--seeds") == 0)
        return parse_seeds(value, o);
    if (strcmp(option, "--mutant") == 0)
        return parse_mutant(value, o);
    if (strcmp(option, "--steps") == 0)
        return parse_u64(value, &o->run.steps, NULL);
    if (strcmp(option, "--nodes") == 0)
        return parse_nodes(value, o);
    if (strcmp(option, "--seed") != 0 || parse_u64(value, &o->first, NULL) != 0)
        return -1;
    o->last = o->first;
    return 0;
}

static int parse_options(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0)
            o->run.traced = true;
        else if (strcmp(argv[i], "--mutants") == 0)
            o->all_mutants = true;
        else if (parse_valued(argv[i], argv[i + 1], o) != 0)
            return -1;
        else
            i++;
    }
    return o->first <= o->last ? 0 : -1;
}

/* The seed that fails (and its report), or 0. */
static uint64_t run_seeds(const struct options *o, struct run_tally *tally, char **failure)
{
    struct run_config run = o->run;
    for (run.seed = o->first; run.seed <= o->last; run.seed++) {
        if ((*failure = run_seed(&run, tally)) != NULL)
            return run.seed;
    }
    return 0;
}

static void print_tally(const struct run_tally *t, double seconds)
{
    printf("%llu seeds, %llu events: %llu changes, %llu terms, %llu crashes, %llu in doubt, "
           "%llu verdicts, %llu jobs finished, %llu undone, %llu objects moved; %.1f s of CPU\n",
           (unsigned long long)t->runs, (unsigned long long)t->steps,
           (unsigned long long)t->changes, (unsigned long long)t->terms,
           (unsigned long long)t->crashes, (unsigned long long)t->doubts,
           (unsigned long long)t->verdicts, (unsigned long long)t->finished,
           (unsigned long long)t->undone, (unsigned long long)t->moves, seconds);
}

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static int run_once(const struct options *o)
{
    struct run_tally tally = {0};
    char *failure = NULL;
    double began = cpu_seconds();
    run_seeds(o, &tally, &failure);
    print_tally(&tally, cpu_seconds() - began);
    if (failure == NULL)
        return 0;
    puts(failure);
    free(failure);
    return 1;
}

/* The invariant: the last but one line of the report. */
static void print_caught(const char *name, uint64_t seed, uint64_t first, const char *failure)
{
    const char *at = strstr(failure, "FAILED ");
    const char *end = at != NULL ? strchr(at, '\n') : NULL;
    printf("%-14s within %llu seeds: %.*s\n", name, (unsigned long long)(seed - first + 1),
           end != NULL ? (int)(end - at - 7) : 0, at != NULL ? at + 7 : "");
}

static int run_mutants(struct options *o)
{
    int missed = 0;
    for (size_t i = 1; i < MUTANTS; i++) {
        struct run_tally tally = {0};
        char *failure = NULL;
        o->run.mutant = (enum mutant)i;
        uint64_t seed = run_seeds(o, &tally, &failure);
        if (seed != 0)
            print_caught(mutants[i].name, seed, o->first, failure);
        else
            printf("%-14s not found by %llu seeds%s\n", mutants[i].name,
                   (unsigned long long)tally.runs, mutants[i].caught ? "" : ", as it must be");
        missed += (seed != 0) != mutants[i].caught;
        free(failure);
        fflush(stdout);
    }
    return missed > 0;
}

int main(int argc, char **argv)
{
    struct options o = {.first = 1, .last = 1000};
    if (parse_options(argc, argv, &o) != 0)
        return usage();
    log_set_level(LOG_OFF);
    return o.all_mutants ? run_mutants(&o) : run_once(&o);
}
