/* Which values of parameters a proxy refuses at its start, beside the bounds of each
 * (params.def). */
#pragma once

#include "common/error.h"
#include "proxy/primary/params.h"

struct proxy;

/* Fills exposure, endpoints and visitors.  The message names the parameter to change. */
int proxy_params_read(const struct proxy_params *params, struct proxy *p, struct error *err);
void proxy_lists_free(struct proxy *p); /* also after a failure */
/* Would a start take these (struct proxy_params)?  The file of the root key is not read. */
int proxy_params_try(const void *values, struct error *err);
