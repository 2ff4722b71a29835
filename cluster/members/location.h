/* Paths and queries of URLs that nodes make: for a redirect, which any client will follow in
 * its own way, and for its own calls.  Pure. */
#pragma once

#include <stdint.h>

#include "cluster/documents/state.h"
#include "common/buf.h"

/* "/v1/objects/{bucket}/{object}".  Many clients resolve "." and ".." in the path of a redirect,
 * and some collapse "//": a name that has those is written with %2F for its slashes, which leaves
 * one segment that nobody touches.  (A whole name "." or ".." has no slash to hide: it is written
 * %2E, which is what can be done.) */
void location_put_object(struct buf *out, const char *bucket, const char *object);
/* "/v1/uploads/{bucket}/{object}", in the same way. */
void location_put_upload(struct buf *out, const char *bucket, const char *object);

/* The pairs of a raw query but those whose names are in the NULL-terminated list, each behind '?'
 * or '&' as *separator says, which it then updates. */
void location_put_query(struct buf *out, const char *raw_query, const char *const *drop,
                        char *separator);

/* "dfcb=3&dfcv=1.17": what lets the target see whether sender and receiver know the same. */
void location_put_version(struct buf *out, const struct cluster_state *s, uint64_t bucket_id,
                          char *separator);

/* The URL of an object at a node for the request with this raw query. */
void location_put_target(struct buf *out, const struct node *n, const struct cluster_state *s,
                         const struct bucket *b, const char *object, const char *raw_query);
/* The same of a call about an upload in parts. */
void location_put_upload_target(struct buf *out, const struct node *n,
                                const struct cluster_state *s, const struct bucket *b,
                                const char *object, const char *raw_query);
/* The URL of an object at a node's data listener, for calls between targets; the caller's. */
char *location_of_copy(const struct node *n, const struct cluster_state *s, const struct bucket *b,
                       const char *object);
