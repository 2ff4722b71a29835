/* From a method and a path to a row of the route tables.  Pure; fuzzed.
 *
 * Patterns are made of segments: literal text, `{name}` for one segment, and as the last
 * `{name...}` for all the rest with its slashes.  `/` alone is the root.  A route of HTTP_ANY takes
 * every method.  A literal wins over a parameter and a parameter
 * over the rest.  Parameters are never empty.  A path may end in one slash more than its pattern
 * (`/v1/buckets/`), except that it belongs to `{name...}` where that takes it.
 *
 * The path is matched as it was received, still escaped: `%2F` is part of a segment and not the end
 * of it.  Literals are compared after unescaping; parameters are handed out escaped, and whoever
 * wants them unescapes them once.
 *
 * A router is immutable and may be used by many threads. */
#pragma once

#include <stddef.h>

#include "common/buf.h"
#include "net/http/handler.h"

enum { ROUTER_PARAMS_MAX = 8, ROUTER_SEGMENTS_MAX = 32 };

struct router;

struct router_param {
    const char *name; /* of the pattern; not NUL-terminated */
    size_t name_len;
    const char *text; /* a piece of the path, still escaped */
    size_t len;
};

struct router_match {
    const struct http_route *route;
    size_t index; /* of the route: 0..router_count() - 1 */
    size_t param_count;
    struct router_param params[ROUTER_PARAMS_MAX];
    unsigned allowed; /* with E_METHOD: a bit (1 << enum http_method) for each that has a route */
};

/* The rows of the tables (NULL-terminated list) that one of `nets` serves.  E_INVALID for a pattern
 * that is malformed or stands twice with one method, and for a row that says not which right a user
 * needs: no server starts with such a table. */
int router_new(const struct http_route *const *tables, unsigned nets, struct router **out,
               struct error *err);
void router_free(struct router *r);
size_t router_count(const struct router *r);
const struct http_route *router_route(const struct router *r, size_t index);

/* 0, E_ROUTE, or E_METHOD.  `path` is not NUL-terminated; the match points into it. */
int router_find(const struct router *r, enum http_method method, const char *path, size_t len,
                struct router_match *out);
/* "GET, HEAD": the value of an Allow header. */
void router_allow(unsigned allowed, struct buf *out);
