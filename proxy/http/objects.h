/* PUT, GET, HEAD and DELETE of /v1/objects/{bucket}/{object...}. */
#pragma once

#include "net/http/server.h"

extern const struct http_route object_routes[];

/* A call about an object on its way to the target that owns it, or for a read may have it. */
struct object_send {
    const char *raw_query; /* of the target's call */
    const char *new_name;  /* of a rename that the caller may do; else NULL */
    const char *member; /* which `raw_query` asks for, where the request itself does not; or NULL */
    bool streams;       /* through this proxy, in place of a redirect */
};
/* From a handler's begin(): the route has the parameters `bucket` and `object`. */
void object_send(struct http_request *req, const struct object_send *how);
