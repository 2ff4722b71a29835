/* CreateMultipartUpload, UploadPart and AbortMultipartUpload: each is one native call about an
 * upload in parts, at the target where the upload began.  complete.h ends an upload, copy.h fills a
 * part from an object, upload_lists.h lists.
 *
 *   CreateMultipartUpload   the headers of a PUT, and the kind of the checksums of the parts
 *   UploadPart              the body is decoded and compared as that of a PUT; the entity tag is
 *                           the MD5 of the bytes
 *
 * A part's own checksum is compared with the part's bytes.  The target keeps it where the upload
 * has checksums, and computes it where the client sends none. */
#pragma once

#include <stdbool.h>

#include "gateway/gateway.h"
#include "s3/element.h"

void s3_create_upload(struct http_request *req, const struct gateway_call *call);
void s3_upload_part(struct http_request *req, const struct gateway_call *call);
void s3_abort_upload(struct http_request *req, const struct gateway_call *call);

/* Of a begin and a completion: the kind of checksums that the parts have. */
#define NATIVE_UPLOAD_SUMS "Dfc-Upload-Sums"

/* The upload that the request names, and NULL where it has no such parameter. */
const char *upload_id_of(const struct gateway_call *call);
/* "part=3": the parameter partNumber, in the words of a native call.  S3_INVALID_ARGUMENT. */
enum s3_error upload_part_query(const struct gateway_call *call, struct arena *arena,
                                const char **out, struct s3_failure *why);
/* The tag of a part or an object in a native reply, without quotes: the arena's.  And its checksum,
 * where it has one: a target of an earlier build says none. */
int upload_reply_read(const struct buf *text, struct arena *arena, const char **tag,
                      struct s3_object_sum *sum, bool *has_sum, struct error *err);

/* Rows of a daemon's table of handlers. */
#define GATEWAY_UPLOAD_HANDLERS                                                          \
    {S3_OP_CreateMultipartUpload, s3_create_upload}, {S3_OP_UploadPart, s3_upload_part}, \
    {                                                                                    \
        S3_OP_AbortMultipartUpload, s3_abort_upload                                      \
    }
