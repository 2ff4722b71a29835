/* <Delete>, the body of DeleteObjects.  Pure; fuzzed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"
#include "s3/error.h"

enum { S3_DELETE_MAX = 1000 };

struct s3_delete_key {
    const char *key;
    const char *version; /* NULL: none was given, as below */
    const char *etag;    /* the object is deleted only while it has this entity tag; printable */
};

struct s3_delete {
    const struct s3_delete_key *keys;
    size_t count;
    bool is_quiet; /* only errors are told */
};

/* Texts are the arena's.  S3_MALFORMED_XML: also no key, or more than S3_DELETE_MAX.
 * S3_KEY_TOO_LONG.  S3_NOT_IMPLEMENTED: a condition on time or size. */
enum s3_error s3_delete_parse(const char *body, size_t len, struct arena *arena,
                              struct s3_delete *out, struct s3_failure *why);
