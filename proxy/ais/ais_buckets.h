/* /v1/buckets/{bucket} of the dialect. */
#pragma once

#include "net/http/handler.h"

void ais_bucket_post_begin(struct http_request *req);   /* create-bck, move-bck */
void ais_bucket_put_begin(struct http_request *req);    /* archive */
void ais_bucket_delete_begin(struct http_request *req); /* destroy-bck */
void ais_bucket_head_begin(struct http_request *req);
