/* Which values of parameters a target refuses at its start, beside the bounds of each
 * (params.def). */
#pragma once

#include "access/exposure.h"
#include "common/error.h"
#include "target/disk/space.h"
#include "target/node/params.h"

/* Says how far the public listener is open.  The message names the parameter to change. */
int target_params_check(const struct target_params *params, enum exposure *out, struct error *err);

struct space_limits target_space_limits(const struct target_params *params);
