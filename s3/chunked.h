/* The content encoding aws-chunked: bytes in chunks, which may be signed, and trailers behind them
 * ("Signature Calculations for the Authorization Header: Transferring Payload in Multiple Chunks"
 * and "Including Trailing Headers", Amazon S3 API reference).  Pure; fuzzed.
 *
 *     SIZE[;chunk-signature=HEX]\r\n BYTES\r\n   …   0[;chunk-signature=HEX]\r\n
 *     [NAME:VALUE\r\n  …  x-amz-trailer-signature:HEX\r\n]   \r\n
 *
 * The decoder copies no bytes: it gives pieces of its input.  It gives the bytes of a chunk before
 * it knows the chunk's signature, so that nothing may be believed, or become visible, before
 * s3_chunked_end() is S3_OK.  The first chunk's signature is made from the request's and each later
 * one from the one before, so that chunks cannot be left out, added or exchanged.  A chunk may have
 * any size.  A line has at most S3_CHUNKED_LINE_MAX bytes. */
#pragma once

#include <stdint.h>

#include "common/cleanup.h"
#include "s3/error.h"
#include "s3/verify.h"

enum { S3_CHUNKED_LINE_MAX = 4096, S3_CHUNKED_TRAILERS_MAX = 8 };

struct s3_chunked_spec {
    const struct s3_credential *credential; /* its payload is one of S3_PAYLOAD_CHUNKS_… */
    unsigned char key[AUTH_MAC_BYTES];      /* the signing key, where chunks are signed */
    uint64_t decoded_length;                /* x-amz-decoded-content-length */
    const char *trailers;                   /* x-amz-trailer: "a, b"; NULL for none */
    bool has_no_key; /* nobody knows the key: signatures must be there, and are not compared */
};

struct s3_chunked;

/* Copies what it needs.  S3_MALFORMED_TRAILER: more trailers are announced than
 * S3_CHUNKED_TRAILERS_MAX, or some where the payload has none. */
enum s3_error s3_chunked_new(const struct s3_chunked_spec *spec, struct s3_chunked **out,
                             struct s3_failure *why);
void s3_chunked_free(struct s3_chunked *c);
DEFINE_CLEANUP(struct s3_chunked, s3_chunked_free);

/* Takes from *data until it has decoded bytes to give, or has taken all.  *out points into what was
 * given; *out_len 0: more is needed.  After an error the decoder can only be freed.  S3_SIGNATURE;
 * S3_INCOMPLETE_BODY: more bytes than announced; S3_INVALID_REQUEST: it is not this encoding;
 * S3_MALFORMED_TRAILER. */
enum s3_error s3_chunked_decode(struct s3_chunked *c, const char **data, size_t *len,
                                const char **out, size_t *out_len, struct s3_failure *why);
/* The body has ended: S3_OK, or S3_INCOMPLETE_BODY. */
enum s3_error s3_chunked_end(const struct s3_chunked *c, struct s3_failure *why);
/* After the end: of an announced trailer; NULL: it was not announced. */
const char *s3_chunked_trailer(const struct s3_chunked *c, const char *name);
