/* A native call to a proxy that carries an S3 request out: a bucket's creation, its destruction, a
 * page of its list (proxy/s3/bucket_calls.c).
 *
 *   client ── S3 ──▶ this node ── JSON, signed by the node, for the user ──▶ a proxy's control port
 *
 * The right was decided here.  The primary is asked, else another active proxy. */
#pragma once

#include "common/buf.h"
#include "common/error.h"
#include "gateway/gateway.h"

struct proxy_call {
    enum http_method method;
    const char *bucket;
    const char *rest; /* of the URL: "?limit=5", "/state", or "" */
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

/* The request's body is over, or it has none. */
void proxy_call_start(struct http_request *req, const struct gateway_call *call,
                      const struct proxy_call *spec);
