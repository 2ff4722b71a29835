/* The body of an S3 request on its way to an object: decoded where it is aws-chunked, and held
 * against every digest that the request brings for it.
 *
 *     body_new()      what the headers say: kind, length, digests
 *     body_next()     bytes of the object out of bytes of the body, any number of times; or …
 *     body_pass()     … the same into a sink that takes them when it can
 *     body_end()      is it all there, and right?
 *
 * Not one of its bytes may be believed before body_end() is S3_OK.  One thread at a time. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "common/cleanup.h"
#include "gateway/gateway.h"
#include "s3/sum_text.h"

struct body;

/* `length`: Content-Length, or -1.  A Content-MD5 must be one; the object's target compares it.
 * S3_MISSING_LENGTH, S3_ENTITY_TOO_LARGE, S3_INVALID_DIGEST, S3_INVALID_REQUEST,
 * S3_MALFORMED_TRAILER, S3_INVALID_ARGUMENT. */
enum s3_error body_new(const struct gateway_call *call, int64_t length, struct body **out,
                       struct s3_failure *why);
void body_free(struct body *b);
DEFINE_CLEANUP(struct body, body_free);

/* Of a request that has no body: Content-MD5 and the like are of no bytes.  S3_INVALID_REQUEST: it
 * has one.  Fails as body_new() and body_end() do. */
enum s3_error body_check_none(struct http_request *req, const struct gateway_call *call,
                              struct s3_failure *why);

/* Of the object. */
uint64_t body_length(const struct body *b);
/* The checksum that the request brings; its value is not known when it comes in a trailer, before
 * body_end().  False: it brings none. */
bool body_sum(const struct body *b, struct s3_sum_text *out);
/* Takes from *data until there are bytes to give, which *out points at, within what was given;
 * *out_len 0: all is taken.  An error is final. */
enum s3_error body_next(struct body *b, const char **data, size_t *len, const char **out,
                        size_t *out_len, struct s3_failure *why);

/* Where the bytes of the object go.  How many it has taken: BODY_SINK_FULL: none now; another
 * negative value: it wants no more. */
struct body_sink {
    ssize_t (*put)(void *ctx, const char *data, size_t len);
    void *ctx;
};
enum { BODY_SINK_FULL = -1, BODY_SINK_CLOSED = -2 };
enum body_outcome { BODY_PASSED, BODY_UNWANTED, BODY_WRONG };
/* body_next() for a sink that may be full: *taken of `data` need not be offered again.  All of it
 * unless the sink is full, or with BODY_UNWANTED and BODY_WRONG. */
enum body_outcome body_pass(struct body *b, const struct body_sink *to, const char *data,
                            size_t len, size_t *taken, struct s3_failure *why);
/* S3_INCOMPLETE_BODY, S3_CONTENT_SHA256, S3_BAD_DIGEST, S3_MALFORMED_TRAILER. */
enum s3_error body_end(struct body *b, struct s3_failure *why);
