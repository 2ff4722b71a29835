/* Who signed a request, by AWS Signature Version 4 in a header or in the query (a presigned URL).
 * Pure; fuzzed.  Three steps, since the key is looked up in between:
 *
 *     s3_verify_read()        what the request says of its signature; nothing is believed yet
 *     s3_verify_scope()       its region, its service, its time
 *     (the caller finds the secret of credential.access_key, and its signing key: sigv4.h)
 *     s3_verify_signature()   it is that key's, over this request
 *
 * Signed must be the host and every x-amz-* header.  The path is decoded and encoded again as S3
 * does, and so is each parameter of the query, so that both sides sign the same text however the
 * client wrote it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "s3/request.h"
#include "s3/sigv4.h"

enum s3_signing { S3_SIGNED_NOT, S3_SIGNED_IN_HEADER, S3_SIGNED_IN_QUERY };

/* What x-amz-content-sha256 says of the body. */
enum s3_payload {
    S3_PAYLOAD_UNSIGNED,              /* nothing */
    S3_PAYLOAD_DIGEST,                /* its SHA-256 */
    S3_PAYLOAD_CHUNKS_SIGNED,         /* aws-chunked, each chunk with a signature (chunked.h) */
    S3_PAYLOAD_CHUNKS_SIGNED_TRAILER, /* the same, and signed trailers */
    S3_PAYLOAD_CHUNKS_TRAILER,        /* aws-chunked without signatures, and trailers */
};

/* Texts are the arena's, or the request's. */
struct s3_credential {
    enum s3_signing signing;
    const char *access_key, *day, *region, *service; /* NULL with S3_SIGNED_NOT, as all below */
    const char *time;                                /* "20130524T000000Z" */
    const char *signed_headers;                      /* "host;range" */
    const char *signature;
    uint64_t expires_s; /* of a presigned URL: from its time on */
    enum s3_payload payload;
    const char *payload_text; /* x-amz-content-sha256, or "UNSIGNED-PAYLOAD" */
};

enum { S3_CLOCK_SKEW_S = 900, S3_EXPIRES_MAX_S = 604800 };

/* Without credentials: S3_OK and S3_SIGNED_NOT.  Else an error names what is missing or malformed;
 * Version 2 is S3_INVALID_REQUEST, signatures with ECDSA are S3_NOT_IMPLEMENTED. */
enum s3_error s3_verify_read(const struct s3_request *r, const struct s3_query *q,
                             struct arena *arena, struct s3_credential *out,
                             struct s3_failure *why);
/* S3_TIME_SKEWED; S3_ACCESS_DENIED: a presigned URL that has expired, or is not valid yet;
 * S3_AUTHORIZATION_…: another region or service. */
enum s3_error s3_verify_scope(const struct s3_credential *c, const char *region, long long now_s,
                              struct s3_failure *why);
/* S3_SIGNATURE; S3_ACCESS_DENIED: a header that must be signed is not.  Compares in constant
 * time. */
enum s3_error s3_verify_signature(const struct s3_request *r, const struct s3_query *q,
                                  const struct s3_credential *c,
                                  const unsigned char key[static AUTH_MAC_BYTES],
                                  struct arena *arena, struct s3_failure *why);
