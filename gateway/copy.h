/* CopyObject and UploadPartCopy: a read of the source and a PUT of the destination, native calls
 * both, with a pipe between them.
 *
 *   source's target ── GET ──▶ [pipe] ──▶ PUT ── destination's target
 *                        │                 │
 *                        └ its head: size, type, metadata, checksum ─▶ the head of the PUT
 *
 * So buckets of every kind can be source and destination; quotas, entity tags and conditions are
 * those of a read and of a PUT.  The destination's target compares the bytes with the checksum
 * that the source was stored with.  The bytes pass through this node, and memory is one pipe.
 *
 *   x-amz-copy-source-if-*         of the source: PreconditionFailed
 *   If-Match, If-None-Match        of the destination
 *   x-amz-metadata-directive       COPY: type and metadata of the source; REPLACE: the request's
 *   x-amz-tagging-directive        the same of tags; x-amz-tagging counts with REPLACE alone
 *   the source is the destination  InvalidRequest, unless the metadata is replaced
 *   a source of more than 5 GiB    InvalidRequest
 *
 * The destination of UploadPartCopy is a part of an upload: it has no metadata, conditions or
 * checksum.  x-amz-copy-source-range is a range within the source, else InvalidRange.
 *
 * The caller needs the right to read the source, too. */
#pragma once

#include "gateway/gateway.h"
#include "s3/tags.h"

/* Both operations. */
void s3_copy_object(struct http_request *req, const struct gateway_call *call);

/* Gives the object that the request names these tags: a copy onto itself, on condition that nobody
 * writes it meanwhile, else once more.  The object may have any size, and is left as it is if it
 * has the tags.  reply() if it is done, else an error.  The caller needs the right to write. */
void copy_with_tags(struct http_request *req, const struct gateway_call *call,
                    const struct s3_tags *tags, void (*reply)(struct http_request *req));

/* Rows of a daemon's table of handlers. */
#define GATEWAY_COPY_HANDLERS                \
    {S3_OP_CopyObject, s3_copy_object},      \
    {                                        \
        S3_OP_UploadPartCopy, s3_copy_object \
    }
