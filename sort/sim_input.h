/* The input shards of a request, as files below a directory. */
#pragma once

#include <stdbool.h>

#include "common/error.h"
#include "sort/env.h"
#include "sort/spec.h"

struct sim_input {
    const char *dir;
    bool (*owns)(void *owner, const char *name); /* others' shards are passed over */
    void *owner;
    int (*each)(void *arg, const struct sort_shard_info *info, struct error *err);
    void *arg;
};

int sim_input_list(const struct sim_input *in, const struct sort_spec *spec, struct error *err);
