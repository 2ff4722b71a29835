/* The checksum of an object in the texts that carry it:
 *
 *   "yZRlqg==-3"          the value of x-amz-checksum-crc32c: COMPOSITE, of 3 parts
 *   "CRC32C:yZRlqg==-3"   the same in the metadata of an object, and between nodes
 *
 * Without "-N" it is of all bytes (FULL_OBJECT), as in sum_text.h.  Pure. */
#pragma once

#include <stdbool.h>

#include "s3/element.h"

enum {
    S3_OBJECT_SUM_VALUE_MAX = S3_SUM_BASE64_MAX + 6, /* bytes of a value's text, with the end */
    S3_OBJECT_SUM_MAX = 16 + S3_OBJECT_SUM_VALUE_MAX,
};

/* False: it is no value of this type, or is not written as s3_object_sum_value() writes it. */
bool s3_object_sum_read(enum s3_sum_type type, const char *text, struct s3_object_sum *out);
/* Returns out. */
const char *s3_object_sum_value(const struct s3_object_sum *sum,
                                char out[static S3_OBJECT_SUM_VALUE_MAX]);
/* False: the text is not one that s3_object_sum_print() writes. */
bool s3_object_sum_parse(const char *text, struct s3_object_sum *out);
/* Returns out. */
const char *s3_object_sum_print(const struct s3_object_sum *sum,
                                char out[static S3_OBJECT_SUM_MAX]);
bool s3_object_sum_equal(const struct s3_object_sum *a, const struct s3_object_sum *b);
const char *s3_object_sum_type(const struct s3_object_sum *sum); /* "COMPOSITE" */
