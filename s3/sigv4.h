/* AWS Signature Version 4 ("Authenticating Requests: Using the Authorization Header", Amazon S3 API
 * reference): the signature of a request, for a client that signs and for a server that compares.
 * Pure; tested on AWS's published examples.
 *
 * The caller gives the request in canonical form: the path as it is sent (percent-encoded once, as
 * S3 wants it), the query's pairs encoded and sorted by name, the headers that are to be signed in
 * lower case and sorted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/auth/mac.h"
#include "common/buf.h"

#define SIGV4_TIME_MAX 17 /* "20130524T000000Z" */
#define SIGV4_EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct sigv4_keys {
    const char *access;
    const char *secret;
    const char *token; /* of a session, or NULL: the caller sends it in a signed header */
};

struct sigv4_header {
    const char *name;
    const char *value;
};

struct sigv4_request {
    const char *method;
    const char *path;
    const char *query;
    const struct sigv4_header *headers; /* "host" and "x-amz-date" among them */
    size_t header_count;
    const char *payload_sha256;
    const char *time; /* "20130524T000000Z" */
    const char *region;
    const char *service;
};

/* The key of one day, region and service.  It signs requests and chunks, and is as secret as the
 * secret for that day. */
void sigv4_signing_key(const char *secret, const char *time, const char *region,
                       const char *service, unsigned char key[static AUTH_MAC_BYTES]);
/* "20130524/us-east-1/s3/aws4_request" */
void sigv4_put_scope(const char *time, const char *region, const char *service, struct buf *out);
void sigv4_signature(const struct sigv4_request *r, const unsigned char key[static AUTH_MAC_BYTES],
                     char hex[static AUTH_HEX_MAX]);
/* "AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…" */
void sigv4_authorization(const struct sigv4_request *r, const struct sigv4_keys *keys,
                         struct buf *out);
const char *sigv4_time(long long unix_s, char out[static SIGV4_TIME_MAX]);
/* The reverse; false: it is no such time. */
bool sigv4_parse_time(const char *text, long long *unix_s);
