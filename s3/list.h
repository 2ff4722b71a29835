/* ListObjects, ListObjectsV2 and ListObjectVersions: what a request asks for, and the document of
 * the reply; and the list of buckets.  An object has one version, "null".  Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "s3/request.h"

enum { S3_LIST_KEYS_MAX = 1000 };

enum s3_list_form { S3_LIST_V1, S3_LIST_V2, S3_LIST_VERSIONS };

struct s3_list_asked {
    enum s3_list_form form;
    const char *prefix, *delimiter; /* "": none */
    const char *after;              /* marker, start-after or key-marker; "": none */
    const char *token;              /* continuation-token; NULL: none */
    const char *version;            /* version-id-marker; NULL: none */
    unsigned max_keys;              /* 0 to S3_LIST_KEYS_MAX */
    bool is_url_encoded, with_owner;
};

/* S3_INVALID_ARGUMENT: max-keys is no number, the encoding is not "url", the version is not "null",
 * or it has no key. */
enum s3_error s3_list_ask(const struct s3_query *q, enum s3_list_form form,
                          struct s3_list_asked *out, struct s3_failure *why);

struct s3_list_entry {
    const char *key;
    int64_t modified_ms;
    const char *etag; /* without quotes */
    uint64_t size;
};

struct s3_list {
    const char *bucket;
    const char *owner_id, *owner_name;
    const struct s3_list_entry *entries; /* by name, as the prefixes */
    size_t entry_count;
    const char *const *prefixes;
    size_t prefix_count;
    const char *next; /* token or marker of the next page; NULL: this is the last */
};

/* <ListBucketResult>, or <ListVersionsResult>. */
void s3_list_document(const struct s3_list_asked *asked, const struct s3_list *list,
                      struct buf *out);

struct s3_list_bucket {
    const char *name;
    int64_t created_ms;
};

/* <ListAllMyBucketsResult> */
void s3_list_buckets_document(const struct s3_list_bucket *buckets, size_t count,
                              const char *owner_id, const char *owner_name, struct buf *out);
