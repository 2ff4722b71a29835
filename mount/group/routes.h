/* The calls that a member of a cache group takes. */
#pragma once

#include "net/http/handler.h"

extern const struct http_route *const group_routes[];

/* service.c */
void group_piece_begin(struct http_request *req);
void group_drain_begin(struct http_request *req);
