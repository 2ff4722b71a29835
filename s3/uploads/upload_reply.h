/* Replies of CreateMultipartUpload and CompleteMultipartUpload.  Pure. */
#pragma once

#include "common/buf.h"
#include "s3/element.h"

/* <InitiateMultipartUploadResult> */
void s3_upload_begun_document(const char *bucket, const char *key, const char *upload_id,
                              struct buf *out);

struct s3_completed {
    const char *location; /* the URL of the object */
    const char *bucket, *key;
    const char *etag;                /* without quotes */
    const struct s3_object_sum *sum; /* NULL: none */
};

/* <CompleteMultipartUploadResult> */
void s3_upload_completed_document(const struct s3_completed *completed, struct buf *out);
