/* The command line of dfc-load: one table, from which --help is printed too. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "common/error.h"
#include "tests/bench/load.h"

struct load_options {
    pid_t pids[LOAD_PIDS_MAX];
    unsigned pid_count;
    bool help;
};

/* Fills what the run needs; `load` must be zero.  0, or E_INVALID with the option named. */
int load_options_parse(int argc, char **argv, struct load *load, struct load_options *out,
                       struct error *err);
void load_options_help(void);
void load_options_done(struct load *load); /* what the parse allocated */
