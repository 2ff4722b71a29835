/* GET /v1/buckets/{bucket} with a JSON body: a page of the bucket's objects. */
#pragma once

#include "net/http/handler.h"

void ais_list_begin(struct http_request *req);
