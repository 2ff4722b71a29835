/* /v1/sort of the dialect: dSort. */
#pragma once

#include "net/http/handler.h"

void ais_sort_begin(struct http_request *req);       /* POST */
void ais_sort_info_begin(struct http_request *req);  /* GET ?uuid= */
void ais_sort_abort_begin(struct http_request *req); /* DELETE /v1/sort/abort?uuid= */
