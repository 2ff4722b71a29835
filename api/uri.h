/* URLs: made from names, and taken from what users and redirects say. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "api/dfc.h"
#include "common/buf.h"

/* "host:8080", "http://host:8080/" -> "http://host:8080", malloc'ed.  A path, a query or a scheme
 * other than http and https is refused, and so is a bare "host", most likely a slip. */
int uri_endpoint(const char *text, size_t len, char **out, struct dfc_error *err);

/* Append "/v1/objects/BUCKET/OBJECT" and the like, percent-encoded; slashes of an object's name
 * stay as they are.  Names that would make another call of it ("" and a slash in a bucket) are
 * refused. */
int uri_bucket(struct buf *out, const char *room, const char *bucket, struct dfc_error *err);
int uri_object(struct buf *out, const char *bucket, const char *object, struct dfc_error *err);
/* "/v1/room/bucket/object" */
int uri_object_in(struct buf *out, const char *room, const char *bucket, const char *object,
                  struct dfc_error *err);

/* Append "?name=value" or "&name=value"; nothing where value is NULL or "". */
void uri_query(struct buf *out, const char *name, const char *value);
void uri_query_u64(struct buf *out, const char *name, uint64_t value);

/* "http://host:port" of a URL; malloc'ed. */
char *uri_origin(const char *url);
bool uri_is_tls(const char *url); /* https */
/* "http://HOST:PORT": does what is sent there stay on this machine? */
bool uri_is_of_this_machine(const char *endpoint);
/* For messages: without the query, which may have the proof of a redirect; malloc'ed. */
char *uri_for_people(const char *url);

/* Where `location`, said by a reply of `base`, leads: absolute, or a path at the same origin.
 * malloc'ed; NULL where it is neither. */
char *uri_resolve(const char *base, const char *location);
