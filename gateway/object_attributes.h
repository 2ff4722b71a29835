/* GetObjectAttributes: a native HEAD, whose headers become a document. */
#pragma once

#include "gateway/gateway.h"

void s3_object_attributes(struct http_request *req, const struct gateway_call *call);

/* Rows of a daemon's table of handlers. */
#define GATEWAY_ATTRIBUTES_HANDLERS                     \
    {                                                   \
        S3_OP_GetObjectAttributes, s3_object_attributes \
    }
