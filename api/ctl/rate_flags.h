/* --requests-rate and --bytes-rate, of a user and of a role. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "api/ctl/args.h"

/* Is one of the two given? */
bool rate_flags_given(const struct args *args);
/* {"requests", "bytes"}, a new reference.  A flag that is not given leaves that part of `before` as
 * it is; before: the rate until now, or NULL for none. */
json_t *rate_flags_read(const struct args *args, const json_t *before);
