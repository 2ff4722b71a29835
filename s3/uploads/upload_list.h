/* ListParts and ListMultipartUploads: what a request asks for, and the document of the reply.
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "s3/element.h"
#include "s3/request.h"
#include "s3/uploads/sum_kind.h"

enum { S3_UPLOAD_LIST_MAX = 1000 }; /* parts, or uploads and prefixes, of a page */

struct s3_parts_asked {
    const char *upload_id;
    unsigned after; /* part-number-marker: only parts with higher numbers */
    unsigned max;   /* 0 to S3_UPLOAD_LIST_MAX */
    bool is_url_encoded;
};

/* S3_INVALID_ARGUMENT: a number that is none, or another encoding than "url". */
enum s3_error s3_parts_ask(const struct s3_query *q, struct s3_parts_asked *out,
                           struct s3_failure *why);

struct s3_listed_part {
    unsigned number;
    int64_t modified_ms;
    const char *etag; /* without quotes */
    uint64_t size;
    const struct s3_sum_value *sum; /* NULL: none */
};

struct s3_parts {
    const char *bucket, *key;
    struct s3_owner initiator, owner;
    const struct s3_listed_part *parts; /* by number */
    size_t count;
    bool is_truncated; /* the next page begins behind the last part */
    struct s3_sum_kind kind;
};

/* <ListPartsResult> */
void s3_parts_document(const struct s3_parts_asked *asked, const struct s3_parts *list,
                       struct buf *out);

struct s3_uploads_asked {
    const char *prefix, *delimiter;          /* "": none */
    const char *after_key, *after_upload_id; /* key-marker, upload-id-marker; "": none */
    unsigned max;                            /* 0 to S3_UPLOAD_LIST_MAX */
    bool is_url_encoded;
};

/* Fails as s3_parts_ask() does. */
enum s3_error s3_uploads_ask(const struct s3_query *q, struct s3_uploads_asked *out,
                             struct s3_failure *why);

struct s3_listed_upload {
    const char *key, *upload_id;
    struct s3_owner initiator, owner;
    int64_t begun_ms;
    struct s3_sum_kind sums;
};

struct s3_uploads {
    const char *bucket;
    const struct s3_listed_upload *uploads; /* by key, then by time */
    size_t upload_count;
    const char *const *prefixes;
    size_t prefix_count;
    const char *next_key, *next_upload_id; /* markers of the next page; NULL: this is the last */
};

/* <ListMultipartUploadsResult> */
void s3_uploads_document(const struct s3_uploads_asked *asked, const struct s3_uploads *list,
                         struct buf *out);
