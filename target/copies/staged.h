/* The other owners' side of a write (copies.h): bytes that are here and not visible yet, until the
 * acting owner says as which version, or that they go.
 *
 *   PUT    /v1/objects/…, Dfc-Copy: stage    all bytes have come, checked: kept by the stage's id
 *   POST   /v1/copies/…?stage=&version=      the stage becomes the object (or without a stage a
 *                                            tombstone does), as durable as the bucket wants it
 *   DELETE /v1/copies/…?stage=               the stage goes
 *
 * A commit is refused with E_STALE_MAP, and the stage kept, where this target has a later map than
 * its sender had, asked under the name's lock: who acts by a later map and has asked this target
 * for what it has (earlier_owners.h) has the last word.  There, too, before anybody can see it, the
 * name is marked as not settled (dirty.h).
 *
 * A stage is a file in tmp/ and some memory: it ends with this run, and when nobody has come for it
 * in STAGED_MAX_MS.  Any thread. */
#pragma once

#include <stdint.h>

#include "cluster/documents/state.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "net/http/server.h"

enum { STAGED_MAX_MS = 600000, STAGED_MOST = 10000 };

struct object_put;
struct staged;

struct staged *staged_new(void);
void staged_free(struct staged *s); /* NULL is fine */
DEFINE_CLEANUP(struct staged, staged_free);

/* Takes the put over, which is finished.  E_OVERLOAD, E_EXISTS: it is the caller's still. */
int staged_keep(struct staged *s, const char *id, uint64_t now_ms, struct object_put *put,
                struct error *err);
/* The caller's from now on; NULL: there is none. */
struct object_put *staged_take(struct staged *s, const char *id);
/* Those that were kept before this time go. */
void staged_expire(struct staged *s, uint64_t before_ms);
/* Those that began on another set of mountpaths than the one in force go: they hold all of that one
 * open, so that a mountpath that was disabled could not come back before nobody comes for them any
 * more. */
void staged_leave_mountpaths(struct staged *s);

/* "…/v1/copies/3/name?dfcv=1.7&stage=s-…", the caller's to free; without a stage: NULL. */
char *staged_url(const struct node *n, uint64_t bucket_id, const char *name,
                 const struct cluster_state *s, const char *stage);

extern const struct http_route staged_routes[];
