/* Which values of parameters a target refuses at its start, beside the bounds of each
 * (params.def). */
#pragma once

#include "common/error.h"
#include "target/disk/space.h"
#include "target/node/params.h"

struct target;

/* Fills exposure, allow, endpoints and visitors.  The message names the parameter to change. */
int target_params_read(const struct target_params *params, struct target *t, struct error *err);
void target_lists_free(struct target *t); /* and its sources; also after a failure */
/* Would a start take these (struct target_params)? */
int target_params_try(const void *values, struct error *err);

/* Moves the checked ones; mountpath_roots becomes what is in force. */
void target_params_take(struct target_params *params, struct target_params *out);

struct space_limits target_space_limits(const struct target_params *params);
