/* GetObject, HeadObject, PutObject and DeleteObject: each is one native call to the target that
 * acts for the object, whose headers are translated on both ways.  So copies, slices and buckets
 * with a backend work as they do for the native API. */
#pragma once

#include "gateway/gateway.h"

void s3_get_object(struct http_request *req, const struct gateway_call *call); /* and HEAD */
void s3_put_object(struct http_request *req, const struct gateway_call *call);
void s3_delete_object(struct http_request *req, const struct gateway_call *call);

/* Rows of a daemon's table of handlers. */
#define GATEWAY_OBJECT_HANDLERS                                          \
    {S3_OP_GetObject, s3_get_object}, {S3_OP_HeadObject, s3_get_object}, \
        {S3_OP_PutObject, s3_put_object},                                \
    {                                                                    \
        S3_OP_DeleteObject, s3_delete_object                             \
    }
