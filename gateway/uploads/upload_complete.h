/* CompleteMultipartUpload: the parts that a document lists become the object.
 *
 *   If-Match, If-None-Match    of the object, as of a PUT
 *   x-amz-checksum-…           FULL_OBJECT: the target compares it with the object's bytes, and
 *                              keeps it.  COMPOSITE: compared with the checksums in the list
 *
 * A repeated request gets the reply of the first.  A completion may take long (slow_reply.h). */
#pragma once

#include "gateway/gateway.h"

void s3_complete_upload(struct http_request *req, const struct gateway_call *call);

/* Rows of a daemon's table of handlers. */
#define GATEWAY_COMPLETE_HANDLERS                         \
    {                                                     \
        S3_OP_CompleteMultipartUpload, s3_complete_upload \
    }
