/* <DeleteResult>, the reply of DeleteObjects.  Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "s3/error.h"

/* What became of a key.  S3_OK also where there was no object. */
struct s3_delete_outcome {
    const char *key;
    const char *version; /* as the request named it; NULL: it named none */
    struct s3_failure failure;
};

/* A quiet reply has only the keys that failed. */
void s3_delete_document(const struct s3_delete_outcome *outcomes, size_t count, bool is_quiet,
                        struct buf *out);
