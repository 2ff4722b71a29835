/* What one kind of backend is to the target: one file with one row (dfc.c, http.c, s3.c).  A row is
 * pure: it makes a request out of what is wanted, and reads what the reply's head says of the
 * object. Everything else (connections, retries, timeouts, storing) is the same for all of them:
 * exchange.h.
 *
 *   spec (the bucket's URL) + ask ──request()──▶ URL, headers ──exchange──▶ head ──sums()──▶ facts
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cluster/backend.h"
#include "common/arena.h"
#include "common/checksum.h"
#include "common/error.h"
#include "net/http_client.h"

enum { BACKEND_ETAG_MAX = 256, BACKEND_TYPE_MAX = 256 };

struct backend_ask {
    enum http_method method; /* GET or HEAD */
    const char *name;        /* of the object */
    const char *range;       /* "bytes=0-99", or NULL */
    const char *if_match;    /* an entity tag, or NULL */
    int64_t wall_ms;         /* now: signatures have a time */
};

struct backend_request {
    const char *url;
    const char *const *headers; /* "Name: value", NULL-terminated */
};

/* What is known of an object from a reply's head. */
struct backend_facts {
    int status;
    int64_t length;              /* of this body; -1: unknown */
    int64_t size;                /* of the whole object; -1: unknown */
    uint64_t offset;             /* of a 206: where it begins */
    char etag[BACKEND_ETAG_MAX]; /* as it came, quotes included; "": none, or too long */
    char content_type[BACKEND_TYPE_MAX];
    int64_t modified_s;        /* -1: unknown */
    struct checksum_value sum; /* of the whole object; type NONE: none is given */
};

struct backend_ops {
    const char *provider;
    /* Texts are the arena's.  E_OBJECT_NOT_FOUND for a name that this backend cannot have;
     * E_BACKEND_DENIED without keys. */
    int (*request)(const struct backend_spec *spec, const struct backend_ask *ask, struct arena *a,
                   struct backend_request *out, struct error *err);
    /* The checksum of the whole object, where the head tells one for certain. */
    void (*sum)(const struct http_head *head, struct checksum_value *out);
    /* What the service itself says of a failure: "NoSuchKey: …", from the reply's body.  NULL: its
     * bodies say nothing. */
    void (*words)(const char *body, size_t len, struct buf *out);
    bool redirects; /* are they followed? */
};

extern const struct backend_ops backend_dfc, backend_http, backend_s3;

/* NULL for a provider that this release has not. */
const struct backend_ops *backend_ops_of(const char *provider);
/* What all heads have in common, and the row's checksum. */
void backend_read_head(const struct backend_ops *ops, const struct http_head *head,
                       struct backend_facts *out);
/* "bytes 0-99/1000" */
bool backend_parse_content_range(const char *text, uint64_t *offset, uint64_t *length,
                                 int64_t *size);
/* Is this tag one that tells bytes apart (not weak), and so good for If-Match? */
bool backend_etag_is_strong(const char *etag);
/* base64 of a digest of this type, as headers have it. */
bool backend_parse_digest(enum checksum_type type, const char *base64, struct checksum_value *out);
