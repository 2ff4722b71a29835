/* Works off the marks of unsettled.h: those a second old are asked about, many at once, from the
 * owner that acts for the names, who says which are settled and sees to the others
 * (copies_settle()); of names that this target acts for it does so itself.  So what a write in
 * doubt has left somewhere is brought to all owners soon after, and marks do not pile up.
 *
 *   POST /v1/settled   [{"bucket": 3, "name": "a", "version": "1.7.3"}, …]  ─▶  {"settled": [0, 2]}
 *
 * A thread of its own. */
#pragma once

#include "common/cleanup.h"
#include "common/error.h"
#include "net/http_server.h"

struct settler;
struct target;

int settler_new(struct target *t, struct settler **out, struct error *err);
void settler_free(struct settler *s); /* NULL is fine; after copies_stop() */

extern const struct http_route settle_routes[];
