/* Tags of objects and buckets: <Tagging>, and the header x-amz-tagging.  Pure; fuzzed. */
#pragma once

#include <stddef.h>

#include "common/arena.h"
#include "common/buf.h"
#include "s3/error.h"

/* Keys and values are counted in characters. */
enum { S3_TAG_KEY_MAX = 128, S3_TAG_VALUE_MAX = 256, S3_TAGS_MAX = 50, S3_OBJECT_TAGS_MAX = 10 };

struct s3_tag {
    const char *key, *value;
};

struct s3_tags {
    struct s3_tag *tags; /* in the order in which they came; keys differ */
    size_t count;
};

/* `max`: S3_OBJECT_TAGS_MAX, or S3_TAGS_MAX for a bucket.  Texts are the arena's.
 * S3_INVALID_TAG: too many, a long value, or a key that is empty, long, twice or begins with
 * "aws:".  S3_MALFORMED_XML. */
enum s3_error s3_tags_parse(const char *body, size_t len, size_t max, struct arena *arena,
                            struct s3_tags *out, struct s3_failure *why);
/* The same of the header: "a=1&b=2", escaped like a query.  S3_INVALID_ARGUMENT. */
enum s3_error s3_tags_parse_header(const char *text, size_t max, struct arena *arena,
                                   struct s3_tags *out, struct s3_failure *why);
/* The header's text, which s3_tags_parse_header() reads again.  In the order of keys: the same for
 * the same tags.  Printable ASCII without blanks; nothing where there are no tags. */
void s3_tags_print(const struct s3_tags *t, struct buf *out);
/* One more; both texts are copied, and the first call makes the array.  Errors as above. */
enum s3_error s3_tags_add(struct s3_tags *t, size_t max, const char *key, const char *value,
                          struct arena *arena, struct s3_failure *why);
/* NULL: there is no such key. */
const char *s3_tags_get(const struct s3_tags *t, const char *key);
void s3_tags_document(const struct s3_tags *t, struct buf *out);
