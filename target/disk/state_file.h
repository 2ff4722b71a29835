/* The last cluster state that a target has seen, kept on every mountpath:
 * <mountpath>/.dfc/docs/state.json.  With it a target restarts and serves its objects without a
 * proxy, and from the targets' copies a lost primary can be made again. */
#pragma once

#include "cluster/documents/state.h"
#include "target/disk/mountpaths.h"

/* Durable on every mountpath that works; the others are logged.  On how many it is. */
size_t state_file_save(struct mountpaths *m, const struct cluster_state *s);
/* The greatest of the copies that can be read; *out is NULL where there is none. */
int state_file_load(struct mountpaths *m, struct cluster_state **out, struct error *err);
