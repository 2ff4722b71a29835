/* Tags of an object in headers: x-amz-tagging of a request, x-amz-tagging-count of a reply, and
 * Dfc-Tags of native calls.  A text of tags is "a=1&b=2", as s3_tags_print() writes it. */
#pragma once

#include "gateway/native_head.h"
#include "s3/tags.h"

/* Nothing where the text is empty. */
void tags_head_add(struct native_head *h, const char *text);
/* What the request asks for.  S3_INVALID_TAG, S3_INVALID_ARGUMENT. */
enum s3_error tags_head_add_asked(struct native_head *h, const struct gateway_call *call,
                                  struct s3_failure *why);
/* Those of an object, by the native reply to a read of it; "": none. */
const char *tags_head_of(const struct target_call_header *headers);
/* The same as tags, in the arena. */
void tags_head_read(const struct target_call_header *headers, struct arena *arena,
                    struct s3_tags *out);
/* Of an object with tags. */
void tags_head_reply_count(struct http_request *req, const struct target_call_header *headers);
