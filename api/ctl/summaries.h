/* What each target says of what it has: GET /v1/daemon?what=summary, or cached. */
#pragma once

#include <jansson.h>

#include "api/ctl/ctl.h"

typedef void summary_fn(void *ctx, const char *target, json_t *doc);

/* One target after the other.  Those that do not answer are named in `missing`, and by a remark.
 * EXIT_OK, or what ends the command. */
int summaries_ask(struct ctl *ctl, const char *what, summary_fn *fn, void *ctx, json_t *missing);
