/* The cluster as the SDK sees it. */
#pragma once

#include "net/http/handler.h"

void ais_smap_begin(struct http_request *req);    /* GET /v1/daemon?what=smap */
void ais_health_begin(struct http_request *req);  /* GET /v1/health */
void ais_buckets_begin(struct http_request *req); /* GET /v1/buckets */
