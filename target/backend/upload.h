/* An object on its way to a backend, and its end there.
 *
 *   one piece   PUT with the MD5 of the bytes
 *   a session   of GCS, whatever the size: upload_session.h
 *   in parts    begin ─▶ part, part, part … side by side, each with its MD5 ─▶ end
 *                          └─ one that fails for good: abort, and nothing is there
 *
 * The bytes are read from the finished temporary file, not passed on as they come from the client:
 * what is sent has the length and the checksum that the client announced, a try that failed can be
 * repeated, parts go side by side whatever the client's speed, and a client that breaks off has not
 * touched the backend.  It costs the time between the last byte here and the last byte there.
 *
 * What the backend has already is copied there, under another name (upload_copy()): in one request,
 * in parts where it is large, or, at GCS, in steps.
 *
 * Memory: a pipe for each part under way.  Threads: blocks. */
#pragma once

#include "target/backend/upload_types.h"

enum { UPLOAD_PARTS_MAX = 10000 }; /* S3's limit */

/* Returns when the backend has it, under `etag` ("": it says none). */
int upload_object(const struct exchange_env *env, const struct upload *u,
                  char etag[static BACKEND_ETAG_MAX], struct error *err);
/* As upload_object(), of what the backend has under u->from, with its type and metadata.
 * E_PRECONDITION: it is another version; E_OBJECT_NOT_FOUND. */
int upload_copy(const struct exchange_env *env, const struct upload *u, struct error *err);
/* 0 also where there was none. */
int upload_delete(const struct exchange_env *env, const char *backend_url, const char *name,
                  struct error *err);

/* The size of parts: what is wanted, or more where the backend takes no such number of them. */
uint64_t upload_part_bytes(uint64_t size, uint64_t wanted);
/* The entity tag of an object in parts, as S3 makes it: the MD5 of the parts' MD5s, and their
 * number. */
void upload_parts_etag(const struct backend_part *parts, size_t count,
                       char etag[static BACKEND_ETAG_MAX]);
