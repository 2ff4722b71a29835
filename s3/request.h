/* A request as the pure files of this folder see it: texts of the head, as they were received. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"
#include "common/buf.h"
#include "s3/error.h"

/* A header, or a parameter of a query. */
struct s3_field {
    const char *name;
    const char *value;
};

struct s3_request {
    const char *method; /* "GET" */
    const char *path;   /* still escaped, without the query */
    const char *query;  /* still escaped; "" for none */
    const struct s3_field *headers;
    size_t header_count;
};

/* The first of this name, in any case; NULL: there is none. */
const char *s3_header(const struct s3_request *r, const char *name);

/* A query, decoded once.  A name without '=' has the value "", and '+' is a blank, as in forms. */
struct s3_query {
    struct s3_field *fields;
    size_t count;
};

enum { S3_QUERY_MAX = 256 }; /* parameters */

/* Texts are the arena's.  S3_INVALID_URI: a bad escape, a NUL, too many parameters. */
enum s3_error s3_query_parse(const char *raw, struct arena *arena, struct s3_query *out,
                             struct s3_failure *why);
/* The first of this name; NULL: there is none. */
const char *s3_query_get(const struct s3_query *q, const char *name);
/* The number in `text`, the value of the header or parameter `name`; NULL leaves *value as it is.
 * S3_INVALID_ARGUMENT: none from 0 to INT32_MAX. */
enum s3_error s3_read_number(const char *text, const char *name, unsigned *value,
                             struct s3_failure *why);
/* "a=b&c=": encoded and sorted as a signature wants it, without the parameter `except`. */
void s3_query_canonical(const struct s3_query *q, const char *except, struct arena *arena,
                        struct buf *out);
