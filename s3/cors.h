/* Which web pages may read a bucket from a browser: <CORSConfiguration>, and the decisions by it
 * (Fetch standard, "HTTP-redirect fetch" and "CORS-preflight fetch").  Pure; fuzzed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/buf.h"
#include "s3/error.h"

/* Of rules; of the texts of one kind in a rule. */
enum { S3_CORS_RULES_MAX = 100, S3_CORS_TEXTS_MAX = 100 };

struct s3_texts {
    const char **texts;
    size_t count;
};

struct s3_cors_rule {
    const char *id; /* NULL: none */
    /* Origins and allowed headers may have one '*' for any text.  Methods are GET, PUT, HEAD, POST
     * and DELETE. */
    struct s3_texts origins, methods, headers, exposed;
    int64_t max_age_s; /* -1: none */
};

struct s3_cors {
    struct s3_cors_rule *rules;
    size_t count;
};

/* Texts are the arena's.  S3_MALFORMED_XML: also no rule, or one without origin or method.
 * S3_INVALID_REQUEST: another method, a second '*', too many rules. */
enum s3_error s3_cors_parse(const char *body, size_t len, struct arena *arena, struct s3_cors *out,
                            struct s3_failure *why);
void s3_cors_document(const struct s3_cors *c, struct buf *out);

/* The first rule that allows a page of `origin` this request.  `headers`: what the preflight asks
 * for, "a, b"; NULL for a request that is no preflight.  NULL: none does. */
const struct s3_cors_rule *s3_cors_match(const struct s3_cors *c, const char *origin,
                                         const char *method, const char *headers);
/* Does the rule allow every origin?  Then the reply says "*", and no credentials. */
bool s3_cors_is_public(const struct s3_cors_rule *rule);
