/* The parameters of dfc-cached: rows in params.def. */
#pragma once

#include "common/param.h"

struct cached_params {
#define PARAM(type, name, standard, least, most, help) param_##type##_t name;
#include "mount/cached/params.def"
#undef PARAM
};

extern const struct param_row cached_param_rows[];
/* What the table cannot say: 0, or E_INVALID.  An empty id becomes the host's name, a weight of 0
 * what the help says. */
int cached_params_check(struct cached_params *p, struct error *err);
