/* /v1/cluster of the dialect: background jobs. */
#pragma once

#include "net/http/handler.h"

void ais_jobs_begin(struct http_request *req);        /* GET ?what= */
void ais_jobs_change_begin(struct http_request *req); /* PUT {"action": "start", "stop"} */
