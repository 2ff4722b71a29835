/* The parameters of a target: one row each in params.def. */
#pragma once

#include "common/param.h"

struct target_params {
#define PARAM(type, name, standard, least, most, help) param_##type##_t name;
#include "target/node/params.def"
#undef PARAM
};

extern const struct param_row target_param_rows[];
/* Those that can change while it runs, for params_set_live(); read with param_live(). */
extern const char *const target_params_live[];
