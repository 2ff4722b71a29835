/* Elements that several documents of replies have.  Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "s3/sum.h"

struct s3_owner {
    const char *id, *name;
};

/* The checksum of an object: of all bytes (FULL_OBJECT), or with `parts` of the checksums of so
 * many parts (COMPOSITE). */
struct s3_object_sum {
    struct s3_sum_value value;
    unsigned parts;
};

/* "<name>2013-05-24T00:00:00.007Z</name>" */
void s3_put_time(struct buf *out, const char *name, int64_t ms);
/* <Owner>, <Initiator>, or another `name` of that type */
void s3_put_owner(struct buf *out, const char *name, const struct s3_owner *owner);
/* <ETag> in quotes; `etag` has none. */
void s3_put_etag(struct buf *out, const char *etag);
/* A text that encoding-type=url holds for: keys, prefixes, delimiters, markers. */
void s3_put_name(struct buf *out, bool is_url_encoded, const char *element, const char *name);
/* <ChecksumCRC32> or the like. */
void s3_put_sum(struct buf *out, const struct s3_sum_value *value);
/* The same and <ChecksumType>; nothing where `sum` is NULL. */
void s3_put_object_sum(struct buf *out, const struct s3_object_sum *sum);
