/* GetObjectAttributes: which attributes a request asks for, and the document of the reply.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "s3/element.h"
#include "s3/request.h"

enum s3_attribute {
    S3_ATTRIBUTE_ETAG = 1 << 0,
    S3_ATTRIBUTE_CHECKSUM = 1 << 1,
    S3_ATTRIBUTE_PARTS = 1 << 2,
    S3_ATTRIBUTE_STORAGE_CLASS = 1 << 3,
    S3_ATTRIBUTE_SIZE = 1 << 4,
};

/* *out: a set of enum s3_attribute, by the headers x-amz-object-attributes.  S3_INVALID_ARGUMENT:
 * there is none, or it names what is no attribute. */
enum s3_error s3_attributes_asked(const struct s3_request *r, unsigned *out,
                                  struct s3_failure *why);

enum { S3_ATTRIBUTE_PARTS_MAX = 1000 };

/* Which parts: those behind number `after`, and at most `max` of them. */
struct s3_parts_page {
    unsigned after, max;
};

/* x-amz-part-number-marker and x-amz-max-parts.  S3_INVALID_ARGUMENT. */
enum s3_error s3_attributes_page(const struct s3_request *r, struct s3_parts_page *out,
                                 struct s3_failure *why);

struct s3_object_part {
    unsigned number;
    uint64_t size;
    const struct s3_sum_value *sum; /* NULL: none */
};

struct s3_object_parts {
    unsigned count; /* of all parts */
    bool is_listed; /* else the document has only the count, as of AWS without checksums */
    struct s3_parts_page page;
    const struct s3_object_part *parts; /* of the page */
    size_t listed;
};

struct s3_attributes {
    const char *etag;                    /* without quotes */
    const struct s3_object_sum *sum;     /* NULL: none */
    const struct s3_object_parts *parts; /* NULL: the object was not uploaded in parts */
    uint64_t size;
};

/* <GetObjectAttributesResponse>, with what `asked` has. */
void s3_attributes_document(unsigned asked, const struct s3_attributes *a, struct buf *out);
