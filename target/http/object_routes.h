/* The calls for objects, and one target's page of a list. */
#pragma once

#include <stdbool.h>

#include "net/http/server.h"

extern const struct http_route object_routes[];
extern const struct http_route list_routes[];

struct object_call;

void object_read_begin(struct http_request *req);      /* GET, HEAD: object_read.c */
void object_peer_read_begin(struct http_request *req); /* of another target, for its client */
struct object_call;
void object_hold_begin(
    struct http_request *req); /* the same from another target: of what is here */
void object_read_serve(struct object_call *call);   /* GET, HEAD, admitted; any thread */
void object_write_begin(struct http_request *req);  /* PUT: object_write.c */
void object_delete_begin(struct http_request *req); /* DELETE */
void object_rename_begin(struct http_request *req); /* POST: object_rename.c */
void object_copy_begin(struct http_request *req);   /* PUT from another target: the same */
