/* GetObjectTagging, PutObjectTagging, DeleteObjectTagging: a native HEAD, and a copy of the object
 * onto itself (copy.h).  A change of tags therefore costs as much as a read and a write of the
 * bytes, and gives the object a new version: its Last-Modified, and an entity tag that is not an
 * MD5, change. */
#pragma once

#include "gateway/gateway.h"

void s3_get_object_tags(struct http_request *req, const struct gateway_call *call);
void s3_put_object_tags(struct http_request *req, const struct gateway_call *call);
void s3_delete_object_tags(struct http_request *req, const struct gateway_call *call);

/* Rows of a daemon's table of handlers. */
#define GATEWAY_OBJECT_TAGS_HANDLERS                                                            \
    {S3_OP_GetObjectTagging, s3_get_object_tags}, {S3_OP_PutObjectTagging, s3_put_object_tags}, \
    {                                                                                           \
        S3_OP_DeleteObjectTagging, s3_delete_object_tags                                        \
    }
