/* Pages of other origins in a browser, by the bucket's CORS document (s3/cors.h).  A preflight
 * needs no credentials, since browsers send none with it. */
#pragma once

#include "gateway/gateway.h"

/* Adds the headers that let the page of the request's `Origin` read the reply, if a rule of the
 * bucket allows it.  Before the reply, whatever it will be.  A preflight gets none here. */
void cors_add_headers(struct http_request *req, const struct gateway_call *call);

/* Where everybody may do everything, a page that the listener's rules refuse could, too: it needs a
 * rule of the bucket.  S3_CORS_REFUSED. */
enum s3_error cors_check_page(struct http_request *req, const struct gateway_call *call,
                              struct s3_failure *why);

void s3_preflight(struct http_request *req, const struct gateway_call *call);

/* Rows of a daemon's table of handlers. */
#define GATEWAY_CORS_HANDLERS               \
    {S3_OP_PreflightBucket, s3_preflight},  \
    {                                       \
        S3_OP_PreflightObject, s3_preflight \
    }
