/* The parameters of dfc-proxyd: rows in params.def. */
#pragma once

#include "common/param.h"

struct proxy_params {
#define PARAM(type, name, standard, least, most, help) param_##type##_t name;
#include "proxy/primary/params.def"
#undef PARAM
};

extern const struct param_row proxy_param_rows[];
/* Those that can change while it runs, for params_set_live(); read with param_live(). */
extern const char *const proxy_params_live[];
