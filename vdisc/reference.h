/* Addresses of objects as relative references (RFC 3986): what a table has, and back.
 *
 * An image is at /v1/objects/BUCKET/KEY of its cluster.  An object of its bucket is "../raw/a.jpg"
 * there, one of another bucket "/v1/objects/OTHER/a.jpg".  So an image can be opened at any node,
 * and stays right where the cluster gets other addresses. */
#pragma once

#include "common/buf.h"
#include "common/error.h"

struct reference {
    char *bucket, *key; /* malloc'ed */
};

void reference_done(struct reference *o);

/* Appends the reference from the image at bucket/key to the object `to`. */
void reference_put(struct buf *out, const char *bucket, const char *key,
                   const struct reference *to);
/* The way back: what `reference` means in the image at bucket/key.  E_IMAGE_DAMAGED: it leads out
 * of /v1/objects/.  E_UNSUPPORTED: an address of another kind (s3:, file:, another host). */
int reference_resolve(const char *bucket, const char *key, const char *reference,
                      struct reference *out, struct error *err);

/* What a list of files names: dfc://BUCKET/KEY, s3://BUCKET/KEY, or http(s)://HOST/v1/objects/…,
 * where *host is "HOST:PORT" (malloc'ed), else NULL.  dfc: and s3: have plain keys; those of http
 * are percent-encoded. */
int reference_parse(const char *text, struct reference *out, char **host, struct error *err);
