/* The settings of the cluster that are parameters of targets (target_settings.def): this target
 * takes those that nobody has set for it alone (net/daemon_sources.h). */
#pragma once

#include "cluster/documents/state.h"

struct target;

void settings_take(struct target *t, const struct cluster_state *s);
/* Of the last run, at a start: in force until a primary tells of others. */
void settings_take_last(struct target *t);
