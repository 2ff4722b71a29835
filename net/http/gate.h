/* Who may come in: the one place where a server asks for proof on an intra-cluster listener
 * (auth.h), and for where a request is from on a public one (visitor.h).
 *
 * Every request to an intra-cluster listener is asked, whether or not it has a route, unless its
 * row in the route table says `open`.  Refused with 401, code "unauthorized", and
 *
 *     WWW-Authenticate: Dfc error="missing|session|signature|replay"
 *
 * of which "session" and "replay" tell a member to open a session, or to sign again.  A body that
 * the caller has signed is compared as it comes: one that is another is cut like one that does not
 * end.
 *
 * A signed request may say for which user it is (http_actor()); a public listener never reads that
 * header. Called by request.c and http_body.c, in the request's HTTP thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct http_request;
struct http_route;

/* route: NULL where none was found.  0, E_UNAUTHORIZED, E_WRONG_CLUSTER, E_STALE_MAP. */
int gate_check(struct http_request *req, const struct http_route *route, struct error *err);
/* The same of a public listener: is it a client, or a stranger's web page (visitor.h)?  0, E_HOST,
 * E_ORIGIN, E_MEDIA_TYPE. */
int gate_check_visitor(struct http_request *req, const struct http_route *route, struct error *err);
/* A piece of the body that was taken. */
void gate_body(struct http_request *req, const char *data, size_t len);
/* The body has ended: 0, or E_UNAUTHORIZED. */
int gate_body_ended(struct http_request *req, struct error *err);
void gate_done(struct http_request *req);
