/* The query of a request, held against what its call takes (http_route.query).
 *
 * "a=b&c": pairs, each side unescaped once; '+' is a plus; a name without '=' has an empty value.
 * What the row of a call does not name no handler sees.  On a public listener it is refused, with a
 * sentence that says what the call takes; it is passed over
 *
 *   - between nodes: a peer may be of a newer release,
 *   - where its name begins with "dfc": so does what a proxy, perhaps of a newer release, adds to
 *     the URLs that it redirects clients to. */
#pragma once

#include <stdbool.h>

#include "common/arena.h"
#include "common/error.h"

struct http_route;
struct request_header;

/* The pairs that the call takes, in order, NULL for none: texts of the arena, or of the route.
 * Nothing is allocated for an empty query.  E_INVALID: a bad escape, or with `strict` a parameter
 * that the call does not have. */
int query_parse(struct arena *arena, const char *raw, const struct http_route *route, bool strict,
                struct request_header **out, struct error *err);
