/* Access control lists, which do not exist here: the owner of a bucket has all rights on it and on
 * its objects.  A read says that; a write of anything else is refused, as AWS does where ACLs are
 * disabled. */
#pragma once

#include "gateway/gateway.h"

void s3_get_bucket_acl(struct http_request *req, const struct gateway_call *call);
void s3_get_object_acl(struct http_request *req, const struct gateway_call *call);
void s3_put_bucket_acl(struct http_request *req, const struct gateway_call *call);
void s3_put_object_acl(struct http_request *req, const struct gateway_call *call);

/* Rows of a daemon's table of handlers. */
#define GATEWAY_ACL_HANDLERS                                                          \
    {S3_OP_GetBucketAcl, s3_get_bucket_acl}, {S3_OP_GetObjectAcl, s3_get_object_acl}, \
        {S3_OP_PutBucketAcl, s3_put_bucket_acl},                                      \
    {                                                                                 \
        S3_OP_PutObjectAcl, s3_put_object_acl                                         \
    }
