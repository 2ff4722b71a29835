/* What exchanges with backends share, and what the modules that fetch credentials for them need:
 * clients, retries, and the caches of credentials. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "target/backend/failure.h"

struct http_client;
struct aws_temporary;
struct backend_endpoints;
struct gates;
struct kept;
struct outages;

struct exchange_env {
    struct http_client
        *client;               /* of backends: some addresses are refused (target/node/outward.h) */
    struct http_client *asker; /* of what hands out keys and tokens */
    const struct backend_endpoints *endpoints; /* that are given credentials */
    struct failure_rules rules;
    bool once; /* a failure is not repeated here: the caller does that, or can do without */
    uint64_t
        pause_ms; /* after a question for what lets us in that failed, at first (kept_rule.h) */
    void *ctx;
    /* Waits so long, unless the node stops: then false, at once. */
    bool (*wait)(void *ctx, uint64_t ms);
    struct kept *tokens;        /* of backends that bear them (google_token.h) */
    struct aws_temporary *keys; /* of those that sign (aws_temporary.h) */
    struct outages *outages;    /* which backends fail; NULL: it is not kept (outages.h) */
    struct gates *gates;        /* where requests wait for backends that are overloaded */
};
