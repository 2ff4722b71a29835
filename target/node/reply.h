/* What several calls for objects reply with, wherever the object comes from. */
#pragma once

#include <stdbool.h>

#include <jansson.h>

struct attr;
struct http_request;
struct object_call;

#define OBJECT_META_PREFIX "dfc-meta-"
/* Beside the entity tag: the MD5 of the bytes, where there is one (ATTR_MD5). */
#define OBJECT_MD5_HEADER "Dfc-Md5"
/* With a member, or a list of members: the format of the archive. */
#define ARCHIVE_HEADER "Dfc-Archive"

/* Headers of user metadata that a client may send with one object: PUT refuses more.  Some clients
 * (Python's http.client) and targets of earlier builds read at most 100 headers.  An object of an
 * earlier build may have more, up to ATTR_META_MAX bytes: it is read, moved, copied and renamed. */
enum { OBJECT_META_PAIRS_MAX = 64 };

/* `Dfc-Meta-*` of what the attribute has, and the headers of own_meta.h; to_peer: those pairs as
 * `Dfc-Meta-*`, too. */
void object_reply_meta(struct http_request *req, const struct attr *a, bool to_peer);
/* Cache-Control and its like alone, which a 304 has as well (RFC 9110 section 15.4.5). */
void object_reply_kept(struct http_request *req, const struct attr *a);
/* `ETag` and OBJECT_MD5_HEADER. */
void object_reply_tags(const struct object_call *call, const struct attr *a, const char *etag);
/* {"size", "checksum"}: a new reference. */
json_t *object_reply_size(const struct attr *a);
/* The answer to a PUT.  Of an object that a backend has and this target has not kept `attr` is
 * NULL: the answer has the backend's entity tag alone. */
void object_reply_stored(const struct object_call *call, const struct attr *attr, const char *etag);
