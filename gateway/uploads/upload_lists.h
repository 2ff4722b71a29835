/* ListParts and ListMultipartUploads.  An upload's target lists its parts; a proxy asks all targets
 * for the uploads of a bucket.  So a list is complete, or it is an error. */
#pragma once

#include "gateway/gateway.h"

void s3_list_parts(struct http_request *req, const struct gateway_call *call);
void s3_list_uploads(struct http_request *req, const struct gateway_call *call);

/* Rows of a daemon's table of handlers. */
#define GATEWAY_UPLOAD_LIST_HANDLERS                \
    {S3_OP_ListParts, s3_list_parts},               \
    {                                               \
        S3_OP_ListMultipartUploads, s3_list_uploads \
    }
