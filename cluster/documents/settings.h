/* The cluster-wide settings: the config document with names, types, defaults and bounds.
 * Rows are in settings.def. */
#pragma once

#include "cluster/documents/state.h"
#include "common/param.h"

struct cluster_settings {
#define PARAM(type, name, standard, least, most, help) param_##type##_t name;
#include "cluster/documents/settings.def"
#undef PARAM
};

extern const struct param_row cluster_settings_rows[]; /* for the documentation */

/* The values in force.  What this release does not know, or a newer one's bounds allowed and ours
 * do not, is left at its default. */
void cluster_settings_get(const struct cluster_config *c, struct cluster_settings *out);
/* E_NOT_FOUND for a name without a row, with what was probably meant. */
int cluster_settings_check_name(const char *name, struct error *err);
/* May `name` be set to `text`?  E_NOT_FOUND for a name without a row, E_INVALID for a value. */
int cluster_settings_check(const char *name, const char *text, struct error *err);
