/* Operations on buckets: what the node's own state answers, and what a proxy carries out
 * (proxy_call.h).
 *
 *   CreateBucket   of a name that the caller owns already: 200, as AWS answers in us-east-1
 *   DeleteBucket   of an empty bucket alone, which the primary closes first */
#pragma once

#include "gateway/gateway.h"

void s3_list_buckets(struct http_request *req, const struct gateway_call *call);
void s3_create_bucket(struct http_request *req, const struct gateway_call *call);
void s3_head_bucket(struct http_request *req, const struct gateway_call *call);
void s3_delete_bucket(struct http_request *req, const struct gateway_call *call);
void s3_bucket_location(struct http_request *req, const struct gateway_call *call);
/* Of a configuration that no bucket can have (s3/none.h). */
void s3_bucket_none(struct http_request *req, const struct gateway_call *call);

/* Rows of a daemon's table of handlers. */
#define GATEWAY_BUCKET_HANDLERS                                                                \
    {S3_OP_ListBuckets, s3_list_buckets}, {S3_OP_CreateBucket, s3_create_bucket},              \
        {S3_OP_HeadBucket, s3_head_bucket}, {S3_OP_DeleteBucket, s3_delete_bucket},            \
        {S3_OP_GetBucketLocation, s3_bucket_location},                                         \
        {S3_OP_GetBucketVersioning, s3_bucket_none}, {S3_OP_GetBucketLogging, s3_bucket_none}, \
        {S3_OP_GetBucketNotificationConfiguration, s3_bucket_none},                            \
        {S3_OP_GetBucketRequestPayment, s3_bucket_none},                                       \
    {                                                                                          \
        S3_OP_GetBucketAccelerateConfiguration, s3_bucket_none                                 \
    }
