/* The calls for objects, and one target's page of a list. */
#pragma once

#include <stdbool.h>

#include "net/http_server.h"

#define OBJECT_META_PREFIX "dfc-meta-"

/* Headers of user metadata that a client may send with one object: PUT refuses more.  Some
 * clients (Python's http.client) and targets of earlier builds read at most 100 headers.  An object of
 * an earlier build may have more, up to ATTR_META_MAX bytes: it is read, moved, copied and renamed. */
enum { OBJECT_META_PAIRS_MAX = 64 };

extern const struct http_route object_routes[];
extern const struct http_route list_routes[];

struct object_call;

void object_read_begin(struct http_request *req);  /* GET, HEAD: object_read.c */
struct object_call;
void object_hold_begin(struct http_request *req);  /* the same from another target: of what is here */
void object_read_serve(struct object_call *call);  /* GET, HEAD, admitted; any thread */
void object_write_begin(struct http_request *req); /* PUT: object_write.c */
/* A DELETE that met a rename is done when its turn comes: true, and it will be answered. */
bool object_delete_again(struct object_call *call);
void object_rename_begin(struct http_request *req); /* POST: object_rename.c */
void object_copy_begin(struct http_request *req);  /* PUT from another target: the same */
/* `Dfc-Meta-*` of what the attribute has; to_peer: also what clients get by another header. */
struct attr;
void object_reply_meta(struct http_request *req, const struct attr *a, bool to_peer);
/* The answer to a PUT.  Of one that a backend has and this target has not kept `attr` is NULL: then
 * the backend's entity tag alone is told. */
void object_reply_stored(const struct object_call *call, const struct attr *attr, const char *etag);
