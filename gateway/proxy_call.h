/* A native call to a proxy that carries an S3 request out: a bucket's creation, its destruction, a
 * page of its list, a document that it keeps (proxy/s3/bucket_calls.c).
 *
 *   client ── S3 ──▶ this node ── JSON, signed by the node, for the user ──▶ a proxy's control port
 *
 * The right was decided here.  The primary is asked, else another active proxy. */
#pragma once

#include <jansson.h>

#include "common/buf.h"
#include "common/error.h"
#include "gateway/gateway.h"

struct proxy_call {
    enum http_method method;
    const char *bucket;
    const char *rest; /* of the URL: "?limit=5", "/state", or "" */
    const char *body; /* of the request's arena; or NULL */
    size_t reply_max; /* bytes; 0: 1 MiB */
    /* Replies; once, in the loop of the client or in the caller's thread.  `text`: the reply's
     * body. */
    void (*done)(struct http_request *req, const struct gateway_call *call, void *arg,
                 const struct error *err, const struct buf *text);
    void *arg; /* of the request's arena */
};

/* The cluster state that a reply names: "1.17". */
int proxy_call_state(struct http_request *req, const struct buf *text, const char **out,
                     struct error *err);

/* Calls fn when the node has the cluster state that a reply names: the next request at this node
 * finds what has changed.  Or it replies with an error. */
void proxy_call_when_known(struct http_request *req, const struct gateway_call *call,
                           const struct buf *text,
                           void (*fn)(struct http_request *req, const struct gateway_call *call));

/* A page of a list.  What `next` leads to is asked for as long as pages are empty; not for ever. */
enum { PROXY_CALL_PAGES_MS = 30000 };

struct proxy_page {
    json_t *doc;                /* the caller's; the others are its own */
    json_t *entries, *prefixes; /* arrays */
    const char *next;           /* "": the list ends here */
};

/* E_CORRUPT: it is no page.  E_OVERLOAD: it is empty, leads on, and the clock is beyond until_ms.
 * *out is filled also then. */
int proxy_call_page(const struct buf *text, uint64_t until_ms, struct proxy_page *out,
                    struct error *err);

/* The request's body is over, or it has none. */
void proxy_call_start(struct http_request *req, const struct gateway_call *call,
                      const struct proxy_call *spec);
