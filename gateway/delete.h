/* DeleteObjects: up to 1000 keys of one bucket, each by a native DELETE at its target, some at a
 * time.
 *
 *   document ─▶ each key: version, right ─▶ native DELETE ─▶ its outcome ─┐
 *                            │                                           ├─▶ one reply
 *                            └ AccessDenied, InvalidArgument ────────────┘
 *
 * A key that fails hinders no other one (delete_plan.h).  A key without an object is deleted,
 * unless it has an entity tag as its condition.  A request counts as one of `s3_forwards_max`, and
 * holds no thread. */
#pragma once

#include "gateway/gateway.h"

void s3_delete_objects(struct http_request *req, const struct gateway_call *call);

/* Rows of a daemon's table of handlers. */
#define GATEWAY_DELETE_HANDLERS                \
    {                                          \
        S3_OP_DeleteObjects, s3_delete_objects \
    }
