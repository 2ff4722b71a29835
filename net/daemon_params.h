/* The parameters of a running daemon: what they are, and changing those that can change while it
 * runs (the parameter table's live ones, and log_level).  A change lasts until the daemon ends. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "common/param.h"
#include "net/http/server.h"

struct daemon_sources;

struct daemon_params {
    const struct param_row *rows;
    void *values;
    const char *const *live;
    struct daemon_sources *sources; /* of the same rows and values */
};

/* {"params": params_describe(), each with its "source"}: of GET /v1/daemon?what=params. */
json_t *daemon_params_json(const struct daemon_params *p);
/* Of {"params": …} and of params_json(), in place: where files with keys and passwords are is no
 * business of every client. */
void daemon_params_hide(json_t *doc);
/* {"action": "setparam", "name": …, "value": …}: the body of PUT /v1/daemon. */
int daemon_params_act(const struct daemon_params *p, const char *body, size_t len,
                      struct error *err);
/* Answers that call. */
void daemon_params_set(struct http_request *req, const struct daemon_params *p, const char *body,
                       size_t len);

/* Its row in a daemon's route table; begin() collects the body. */
#define DAEMON_PARAMS_ROUTE(begin_fn)                                                            \
    {                                                                                            \
        .name = "daemon_set", .method = HTTP_PUT, .pattern = "/v1/daemon", .nets = NET_CONTROL,  \
        .admin = true, .changes = true, .right = RIGHT_OPERATE, .begin = (begin_fn),             \
        .summary = "Changes a parameter that can change while this daemon runs, until it ends.", \
        .body = "`{\"action\": \"setparam\", \"name\": …, \"value\": …}`",                       \
        .reply = "200 and all parameters",                                                       \
        .errors = "not_found not_supported (it needs a restart) invalid_argument invalid_json"   \
    }
