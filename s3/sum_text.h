/* A checksum of S3 in one text, as calls between nodes and the metadata of an object have it:
 * "CRC32C:yZRlqg==", or "CRC32C" for one that is not known yet.  Pure; fuzzed. */
#pragma once

#include <stdbool.h>

#include "s3/sum.h"

enum { S3_SUM_TEXT_MAX = 16 + S3_SUM_BASE64_MAX }; /* bytes, with the end */

struct s3_sum_text {
    bool is_known;
    struct s3_sum_value value; /* without its bytes when it is not known */
};

/* False: the text is not one that s3_sum_text_print() writes. */
bool s3_sum_text_parse(const char *text, struct s3_sum_text *out);
/* Returns out. */
const char *s3_sum_text_print(const struct s3_sum_text *t, char out[static S3_SUM_TEXT_MAX]);
