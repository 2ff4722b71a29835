/* From an S3 request to its handler (gateway.h). */
#pragma once

#include "gateway/gateway.h"

/* begin() of the rows below. */
void gateway_begin(struct gateway *g, struct http_request *req);

/* The rows of a daemon's route table; `begin_fn` calls gateway_begin(). */
#define GATEWAY_ROW(row_name, row_pattern, row_net, begin_fn, text)                          \
    {                                                                                        \
        .name = (row_name), .method = HTTP_ANY, .pattern = (row_pattern), .nets = (row_net), \
        .any_type = true, .pages = true, .right = RIGHT_OPERATION, .begin = (begin_fn),      \
        .summary = (text), .query = HTTP_PARAMETERS({HTTP_ANY_PARAMETER, "as in S3"}),       \
        .body = "as in S3", .reply = "as in S3; errors are S3's XML",                        \
        .errors = "in [S3's words](../design/s3.md)",                                        \
    }
#define GATEWAY_ROUTES(begin_fn)                                                          \
    GATEWAY_ROW("s3_service", "/", NET_S3, begin_fn, "S3: ListBuckets."),                 \
        GATEWAY_ROW("s3", "/{path...}", NET_S3, begin_fn,                                 \
                    "S3: every operation on a bucket or object.  The signature says who " \
                    "asks; the operation says which right is needed."),                   \
        GATEWAY_ROW("s3_public_service", "/s3", NET_PUBLIC, begin_fn,                     \
                    "S3 on the public listener: ListBuckets."),                           \
        GATEWAY_ROW("s3_public", "/s3/{path...}", NET_PUBLIC, begin_fn,                   \
                    "S3 on the public listener, in path style: every other operation.")
