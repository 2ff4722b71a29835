/* Is there room for what a target has that is to leave?  Each of the other owners gets, by HRW, the
 * share of its weight.  Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cluster/documents/state.h"

/* What a target can take before it refuses PUT; false where that is not known, and counts for
 * enough: the job would say so later. */
typedef bool room_of_fn(void *ctx, const char *target, uint64_t *bytes);

/* 0, or E_NO_SPACE that names the target with the least room for its share. */
int room_check(const struct smap *m, const char *leaving, uint64_t bytes, room_of_fn *room_of,
               void *ctx, struct error *err);
