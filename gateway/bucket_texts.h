/* Tags, CORS and lifecycle of a bucket: documents that are read, written anew, and kept in the
 * bucket's entry of the cluster's documents (cluster/documents/bucket_texts.h).  A proxy stores
 * them.  What one node has stored every node replies with. */
#pragma once

#include "gateway/gateway.h"

void s3_put_bucket_text(struct http_request *req, const struct gateway_call *call);
void s3_get_bucket_text(struct http_request *req, const struct gateway_call *call);
void s3_delete_bucket_text(struct http_request *req, const struct gateway_call *call);

/* Rows of a daemon's table of handlers. */
#define GATEWAY_BUCKET_TEXT_HANDLERS                                                            \
    {S3_OP_PutBucketTagging, s3_put_bucket_text}, {S3_OP_GetBucketTagging, s3_get_bucket_text}, \
        {S3_OP_DeleteBucketTagging, s3_delete_bucket_text},                                     \
        {S3_OP_PutBucketCors, s3_put_bucket_text}, {S3_OP_GetBucketCors, s3_get_bucket_text},   \
        {S3_OP_DeleteBucketCors, s3_delete_bucket_text},                                        \
        {S3_OP_PutBucketLifecycleConfiguration, s3_put_bucket_text},                            \
        {S3_OP_GetBucketLifecycleConfiguration, s3_get_bucket_text},                            \
    {                                                                                           \
        S3_OP_DeleteBucketLifecycle, s3_delete_bucket_text                                      \
    }
