/* From the head of a request to its operation: a row of ops.def, bucket and key.  Pure; fuzzed.
 *
 *   path style      http://HOST/BUCKET/KEY, below the prefix of the place ("/s3")
 *   virtual host    http://BUCKET.DOMAIN/KEY, for each domain of the place
 *
 * The path is decoded once.  A key is any UTF-8 text of 1 to 1024 bytes: "..", "//" and a '/' at
 * its end are plain characters.  The bucket may or may not exist.  Parameters that mark no
 * operation are the handler's; unknown ones are passed over, as AWS does. */
#pragma once

#include <stdbool.h>

#include "common/rights.h"
#include "s3/request.h"

enum s3_level { S3_LEVEL_SERVICE, S3_LEVEL_BUCKET, S3_LEVEL_OBJECT };

enum s3_op_id {
#define S3_OP(name, method, level, query, header, right, answer) S3_OP_##name,
#include "s3/ops.def"
#undef S3_OP
    S3_OPS,
};

/* A row of ops.def. */
struct s3_op {
    const char *name; /* "GetObject" */
    const char *method;
    enum s3_level level;
    const char *query, *header;
    enum right right;
    enum s3_error answer; /* S3_OK, or what the reply always is */
};

enum { S3_KEY_MAX = 1024, S3_BUCKET_MAX = 255 }; /* bytes of decoded names */

/* How requests name buckets on a listener. */
struct s3_place {
    const char *prefix;         /* of all paths: "/s3", or "" */
    const char *const *domains; /* in small letters, without port */
    size_t domain_count;
};

struct s3_call {
    enum s3_op_id op;
    const char *bucket, *key; /* "" where the level has none; the arena's */
    bool is_virtual_host;
    struct s3_query query;
};

/* Never NULL. */
const struct s3_op *s3_op(enum s3_op_id id);

/* S3_OK also for an operation whose row has an answer.  S3_INVALID_URI: the path or query cannot be
 * decoded, or a key is not UTF-8.  S3_KEY_TOO_LONG.  S3_METHOD_NOT_ALLOWED: no operation has this
 * method here.  S3_INVALID_ARGUMENT: the query names two subresources. */
enum s3_error s3_op_find(const struct s3_request *r, const struct s3_place *place,
                         struct arena *arena, struct s3_call *out, struct s3_failure *why);

/* Is it a name that S3 gives to a new bucket?  3 to 63 small letters, digits, '.' and '-', with a
 * letter or digit at both ends; no "..", ".-" or "-.", no IPv4 address, none of the prefixes that
 * AWS reserves.  S3_INVALID_BUCKET_NAME. */
enum s3_error s3_bucket_name_check(const char *name, struct s3_failure *why);
