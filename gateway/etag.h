/* Entity tags of S3 for the entity tags of the native API.  Pure; fuzzed.
 *
 *     "1795701805374.3.17"  ⇄  "01a2182b113e0000000003…-1"     a version: 12, 10 and 10 hex digits
 *     "d41d8cd98f…"         =  the same                        an MD5, or a tag of a backend
 *     "d41d8cd98f…-3"       =  the same                        of an object uploaded in 3 parts
 *
 * Clients of S3 take a tag with a '-' for opaque; one of 32 digits alone they take for an MD5.  A
 * version is an object's alone, so that no other bytes under the name have the tag.  Because the
 * form can be read back, a client's conditions become the native API's.  An object that was
 * uploaded in one part has a tag of the first form, too. */
#pragma once

#include "common/buf.h"

/* Appends the tag with its quotes.  A text without quotes, or with a version that is too large for
 * the form, is appended as it is. */
void etag_put_s3(const char *native, struct buf *out);
/* Of a header If-Match or If-None-Match: tags, separated by commas, or "*".  A tag of the first
 * form becomes the version, and itself behind it.  Other tags are appended as they are. */
void etag_put_native(const char *list, struct buf *out);
/* Of a header If-Range, which has one tag: one of the first form becomes the version. */
void etag_put_native_one(const char *tag, struct buf *out);
