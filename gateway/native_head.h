/* The head of an S3 request in the words of the native API, and that of a native reply in those of
 * S3: names of headers, entity tags, the coding in chunks, user metadata.
 *
 *     struct native_head h;
 *     native_head_begin(&h, arena);
 *     native_head_conditions_of_write(&h, call);
 *     native_head_content(&h, call, &why);
 *     … h.lines
 */
#pragma once

#include "common/arena.h"
#include "gateway/target_call.h"
#include "s3/sum_text.h"
#include "s3/uploads/object_sum.h"
#include "s3/uploads/part_sizes.h"
#include "s3/uploads/part_sums.h"

/* "Name: value" lines of a native call. */
struct native_head {
    struct arena *arena;
    const char **lines; /* NULL-terminated */
    size_t count, room;
};

/* Lines are the arena's. */
void native_head_begin(struct native_head *h, struct arena *arena);
void native_head_add(struct native_head *h, const char *name, const char *value);

/* If-Match and its like, of the object that the request names. */
void native_head_conditions_of_read(struct native_head *h, const struct gateway_call *call);
void native_head_conditions_of_write(struct native_head *h, const struct gateway_call *call);
void native_head_conditions_of_delete(struct native_head *h, const struct gateway_call *call);
/* x-amz-copy-source-if-*: of the object that is copied. */
void native_head_conditions_of_source(struct native_head *h, const struct gateway_call *call);

/* versionId: S3_INVALID_ARGUMENT, unless it is the only one of an object. */
enum s3_error native_head_check_version(const struct gateway_call *call, struct s3_failure *why);
/* What the request says of the object that it stores: type, coding, user metadata.
 * S3_METADATA_TOO_LARGE. */
enum s3_error native_head_content(struct native_head *h, const struct gateway_call *call,
                                  struct s3_failure *why);
/* The same, as another object has it: the native reply to a read of it. */
void native_head_content_of(struct native_head *h, const struct target_call_header *headers);

/* Replies with the object's headers, but those that the query of the request replaces, and with
 * those that it has in their place. */
void native_head_reply(struct http_request *req, const struct gateway_call *call,
                       const struct target_call_header *headers);
/* The object's entity tag, in quotes; nothing is appended where the reply has none. */
void native_head_put_etag(const struct target_call_header *headers, struct buf *out);
/* The same without quotes, as documents are given it: the arena's, or "". */
const char *native_head_bare_etag(const struct target_call_header *headers, struct arena *arena);
/* A checksum that the target computes, keeps, and compares if its value is known. */
void native_head_add_sum(struct native_head *h, const struct s3_sum_text *sum);
/* The object's checksum.  False: the reply has none. */
bool native_head_sum(const struct target_call_header *headers, struct s3_object_sum *out);
/* Those of its parts.  False: the reply has none. */
bool native_head_part_sums(const struct target_call_header *headers, struct part_sums *out);
/* x-amz-checksum-mode: does the request want the checksum? */
bool native_head_wants_sum(const struct gateway_call *call);
/* x-amz-checksum-… and its type; nothing where the reply has none. */
void native_head_reply_sum(struct http_request *req, const struct target_call_header *headers);
/* The sizes of the object's parts, which has `length` bytes.  NULL: they are not known. */
const char *native_head_parts(const struct target_call_header *headers, int64_t length,
                              struct part_sizes *out);
/* A parameter of the query that replaces a header; NULL: there is none. */
const char *native_head_replaced(const struct gateway_call *call);
