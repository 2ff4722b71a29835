/* GET with `digest`: the checksum of an object's bytes, of any type, computed by this target.
 *
 *   GET /v1/objects/B/O?digest=sha256     the reply of a PUT, with that checksum
 *
 * The call takes the place of what follows the opening of an object (object_read.c).  Where the
 * object has a checksum of the type already, no byte is read.  Else all bytes are read, in a thread
 * of the class UNPACKER, and compared with the object's own checksum meanwhile: E_CORRUPT. */
#pragma once

#include <stdbool.h>

struct http_request;
struct object;
struct object_call;
struct reader;

bool object_digest_is_wanted(const struct object_call *call);
/* Replies, now or later: `o` is open, and is closed.  The reader is shared. */
void object_digest_reply(struct object_call *call, const struct object *o, struct reader *reader);
