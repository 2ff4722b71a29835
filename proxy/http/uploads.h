/* /v1/uploads/{bucket}/{object...}: objects that are sent in parts (docs/design/uploads.md).  A
 * begin is sent to the target that acts for the object, all else to the target in the upload's
 * id. */
#pragma once

#include "net/http/server.h"

struct buf;

extern const struct http_route upload_routes[];

/* A call about an upload on its way to the target that has it, or that is to have it. */
struct upload_send {
    enum http_method method;    /* of the target's call */
    const char *upload;         /* NULL: it begins */
    const char *raw_query;      /* of the target's call */
    const struct buf *document; /* the target's body, where the request's has been collected */
    bool streams;               /* through this proxy, in place of a redirect */
};
/* From a handler: the route has the parameters `bucket` and `object`, and signs what the native one
 * does. */
void upload_send(struct http_request *req, const struct upload_send *how);
