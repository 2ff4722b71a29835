/* The checksums of S3: x-amz-checksum-crc32, -crc32c, -crc64nvme, -sha1 and -sha256, in a header or
 * a trailer, and Content-MD5.  Values are base64 with padding; a CRC begins with its highest byte.
 * common/checksum.h has the checksums that the cluster keeps itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/checksum.h"
#include "common/cleanup.h"
#include "s3/request.h"

enum s3_sum_type {
    S3_SUM_CRC32,
    S3_SUM_CRC32C,
    S3_SUM_CRC64NVME,
    S3_SUM_SHA1,
    S3_SUM_SHA256,
    S3_SUM_TYPES,
};

enum { S3_SUM_MAX = 32, S3_SUM_BASE64_MAX = 45 }; /* bytes of a value; of its text, with the end */

struct s3_sum_value {
    enum s3_sum_type type;
    unsigned char bytes[S3_SUM_MAX];
};

const char *s3_sum_algorithm(enum s3_sum_type type); /* "CRC64NVME" */
const char *s3_sum_header(enum s3_sum_type type);    /* "x-amz-checksum-crc64nvme" */

struct s3_sum; /* a running computation */

struct s3_sum *s3_sum_new(enum s3_sum_type type);
void s3_sum_update(struct s3_sum *s, const void *data, size_t len);
/* Ends the computation, which can then only be freed. */
void s3_sum_final(struct s3_sum *s, struct s3_sum_value *out);
void s3_sum_free(struct s3_sum *s);
DEFINE_CLEANUP(struct s3_sum, s3_sum_free);

size_t s3_sum_size(enum s3_sum_type type); /* bytes of a value */
/* False: it is no value of this type, or is not written as s3_sum_print() writes it. */
bool s3_sum_parse(enum s3_sum_type type, const char *base64, struct s3_sum_value *out);
/* Returns out. */
const char *s3_sum_print(const struct s3_sum_value *v, char out[static S3_SUM_BASE64_MAX]);
bool s3_sum_equal(const struct s3_sum_value *a, const struct s3_sum_value *b);

/* The checksum that a request brings for its body. */
struct s3_sum_asked {
    bool is_asked, is_in_trailer; /* the trailer has the name s3_sum_header(value.type) */
    struct s3_sum_value value;    /* without its bytes when it is in the trailer */
};

/* S3_INVALID_REQUEST: two checksums, one that is no value of its type, an algorithm that is not
 * known, or x-amz-sdk-checksum-algorithm names another one than the request has. */
enum s3_error s3_sum_asked(const struct s3_request *r, struct s3_sum_asked *out,
                           struct s3_failure *why);
/* Content-MD5: CHECKSUM_NONE where there is none.  S3_INVALID_DIGEST. */
enum s3_error s3_sum_content_md5(const struct s3_request *r, struct checksum_value *out,
                                 struct s3_failure *why);
