/* For the tests: a stream of commands, most of them allowed in the state they are for, some not.
 * The same generator gives the same stream. */
#pragma once

#include "cluster/command/command.h"
#include "common/arena.h"
#include "common/rng.h"

/* Texts and structs live in the arena; a job and a patch (may be NULL) are the caller's to drop. */
struct command random_command(struct rng *rng, const struct cluster_state *s, struct arena *a);

/* A state that `steps` such commands lead to. */
const struct cluster_state *random_state(struct rng *rng, unsigned steps);
