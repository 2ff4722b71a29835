/* What the tests of whole sorts share: a directory of random shards, and runs of the simulation
 * that must leave nothing open or behind. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
/* cmocka.h needs these four. */
#include <cmocka.h>

#include "common/buf.h"
#include "common/rng.h"
#include "sort/testing/sim.h"
#include "sort/spec/spec.h"

struct world {
    char *dir, *in, *out;
    struct rng rng;
    int descriptors;
    unsigned shards;
};

/* For cmocka: the state is a struct world.  The teardown fails where a descriptor is still open. */
int world_setup(void **state);
int world_teardown(void **state);

int world_count(const char *path); /* entries of a directory */
void world_clear_output(struct world *w);
void world_write(const char *dir, const char *name, const struct buf *text);
/* Fields for indexes beside the output: wids.h, dali.h. */
#define WORLD_INDEXES ", \"wids_index\": \"o.json\", \"dali_indexes\": true"
/* Shards s-000.tar, s-001.tar, … of all kinds; the same for the same seed. */
void world_make_dataset(struct world *w, uint64_t seed);

/* `more` is JSON fields, beginning with a comma. */
struct sort_spec *world_spec(const char *more);
struct sort_spec *world_spec_to(const char *output_format, const char *more);
#define WORLD_PREFIX ", \"input_format\": {\"prefix\": \"s-\"}, \"output_shard_size\": 9000"
struct sim_config world_config(struct world *w, const struct sort_spec *spec, unsigned targets);
int world_run(const struct sim_config *config, struct error *err);
