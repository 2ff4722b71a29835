/* The parameters of a running daemon: what they are, and changing those that can change while it
 * runs (the parameter table's live ones, and log_level).  A change lasts until the daemon ends. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "common/param.h"

struct daemon_params {
    const struct param_row *rows;
    void *values;
    const char *const *live;
};

/* {"params": params_describe()}: of GET /v1/daemon?what=params. */
json_t *daemon_params_json(const struct daemon_params *p);
/* {"action": "setparam", "name": …, "value": …}: the body of PUT /v1/daemon. */
int daemon_params_act(const struct daemon_params *p, const char *body, size_t len,
                      struct error *err);
