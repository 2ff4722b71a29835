/* /v1/objects/{bucket}/{object...} of the dialect: what it becomes at the object's target.
 *
 * GET, HEAD and DELETE are redirected.  The body of a PUT is streamed through: over plain HTTP the
 * SDK's transport would send all of it twice, since it reads the redirect after the body.  Over TLS
 * the SDK sends the head alone, with `Connection: close`, and wants the redirect. */
#pragma once

#include "net/http/handler.h"

void ais_object_read_begin(struct http_request *req); /* GET, HEAD */
void ais_object_put_begin(struct http_request *req);
void ais_object_delete_begin(struct http_request *req);
/* A PUT whose body comes to where it is redirected to. */
bool ais_wants_redirect(const struct http_request *req);
