/* ListObjects, ListObjectsV2 and ListObjectVersions: pages of the native list (proxy_call.h) until
 * there is something to show.
 *
 *   native                      S3
 *   a page of names             <Contents>, <CommonPrefixes>
 *   next                        the continuation token; markers are the last name that was shown
 *   an object                   its only version, "null", which is the latest
 *   an empty page with a next   the next page is asked for
 *   a target cannot be asked    503 SlowDown: a list is never short */
#pragma once

#include "gateway/gateway.h"

void s3_list_objects(struct http_request *req, const struct gateway_call *call); /* all three */

#define GATEWAY_LIST_HANDLERS                                                     \
    {S3_OP_ListObjects, s3_list_objects}, {S3_OP_ListObjectsV2, s3_list_objects}, \
    {                                                                             \
        S3_OP_ListObjectVersions, s3_list_objects                                 \
    }
