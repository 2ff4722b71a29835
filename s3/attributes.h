/* GetObjectAttributes: which attributes a request asks for, and the document of the reply.
 * Pure. */
#pragma once

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

struct s3_attributes {
    const char *etag;                /* without quotes */
    const struct s3_object_sum *sum; /* NULL: none */
    unsigned part_count;             /* 0: the object was not uploaded in parts */
    uint64_t size;
};

/* <GetObjectAttributesResponse>, with what `asked` has.  Of the parts it has the count. */
void s3_attributes_document(unsigned asked, const struct s3_attributes *a, struct buf *out);
