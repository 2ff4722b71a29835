/* What native calls to the target of an object have in common: the URL, the headers of the reply,
 * and what the outcome means to a client of S3. */
#pragma once

#include "common/arena.h"
#include "common/buf.h"
#include "common/error.h"
#include "gateway/gateway.h"

struct http_head;
struct http_result;

enum { TARGET_CALL_HOPS_MAX = 3 }; /* redirects of one read */

struct target_call_header {
    const char *name, *value;
    struct target_call_header *next;
};

/* The value of a header, in any case; NULL: there is none. */
const char *target_call_header(const struct target_call_header *headers, const char *name);
/* The headers of a reply; in its on_head(). */
struct target_call_header *target_call_headers(struct arena *arena, const struct http_head *head);

struct target_call {
    enum http_method method;
    const char *bucket, *key;
    const char *range;  /* value of the Range header; or NULL */
    const char *query;  /* of the call, raw; or NULL */
    const char *member; /* as in struct redirect_call; or NULL */
};

/* Appends the id of the target that acts for the object.  Errors as below. */
int target_call_owner(const struct gateway *g, const struct target_call *call, struct buf *id,
                      struct error *err);
/* Appends the URL at the target that acts for the object, with the proof that the caller may make
 * the call.  E_BUCKET_NOT_FOUND, E_NODE_UNREACHABLE, E_NO_TARGETS. */
int target_call_url(struct http_request *req, const struct gateway *g,
                    const struct target_call *call, struct buf *url, struct error *err);
/* 0, or what the client is told.  `url`: the one that was called. */
int target_call_error(const struct http_result *result, const char *url, struct error *err);
/* Where a read is sent on to, the `hops`-th time; NULL: it is not. */
const char *target_call_next(const struct http_result *result,
                             const struct target_call_header *headers, unsigned hops);
