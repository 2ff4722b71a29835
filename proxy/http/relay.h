/* Streams a request through to another node and its reply back: for clients that do not follow
 * redirects, and for what only the primary can answer.
 *
 *   client ──body──▶ [upload pipe] ──▶ node ──head, body──▶ [download pipe] ──▶ client
 *
 * Backpressure both ways; memory is two pipes of relay_buffer bytes.  Whatever the node answers,
 * status, headers and body, the client gets; only where no answer came does the proxy speak for
 * itself.  A body that ends early on either side ends early on the other. */
#pragma once

#include "net/http/server.h"
#include "proxy/primary/proxy.h"

/* Is a call that a target serves streamed through?  The client says so (`Dfc-Redirect: never`, or
 * `redirect=never`), or could not send its body again to where a redirect leads. */
bool relay_is_wanted(const struct http_request *req);
/* One more stream through this proxy, which some other code carries out.  False: relays_max are
 * under way, and that is replied. */
bool relay_enter(struct proxy *p, struct http_request *req);
void relay_leave(struct proxy *p);
/* From a route's begin(). */
void relay_start(struct proxy *p, struct http_request *req, const char *url);
/* Another call in place of the request, whose own body has been collected: JSON, which is copied,
 * or none.  What else the request has of headers goes with it. */
void relay_document(struct proxy *p, struct http_request *req, enum http_method method,
                    const char *url, const struct buf *body);

/* A read that others can answer, too, when the map has passed over whom it goes to. */
struct relay_object {
    const char *bucket, *object, *raw_query;
    const char *proof; /* "&dfca=…", behind each URL; "": none */
    /* Where to ask by the map in force; NULL: nowhere, and why. */
    char *(*where)(struct proxy *p, const struct relay_object *o, struct error *err);
};
/* GET and HEAD: where the node sends it on to another one, that is asked; while a node cannot be
 * reached, or cannot answer for now (503), it is asked again where the object is, until owner_wait
 * is over.  What `object` has is copied. */
void relay_read(struct proxy *p, struct http_request *req, const char *url,
                const struct relay_object *object);

/* The same, where the node is the primary: `path`, with its query, at its public or its control
 * listener.  While another one is elected the request waits, for primary_wait at most.  When the
 * primary does not answer within call_timeout, or within overtaken_grace once another is the
 * primary (overtaken.h), the client gets 503, and is told whether a change is in doubt.  `headers`:
 * more lines "Name: value", up to NULL.  `again`: it has come back to this proxy, which pauses
 * before it looks for the primary anew. */
void relay_to_primary(struct proxy *p, struct http_request *req, const char *path, bool to_public,
                      const char *const *headers, bool again);
