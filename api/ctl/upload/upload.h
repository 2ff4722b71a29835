/* A file becomes an object: whole, or, where it is large, in parts that several threads send.
 *
 *   state file        names the upload of an earlier run; without one an upload is begun
 *   parts             those that the cluster has are compared, the others are sent
 *   completion        if the file is still what it was at the beginning
 *
 * A part is compared by the MD5 of its bytes.  A failure that another run may mend leaves the
 * upload and its state file; after any other the upload is aborted. */
#pragma once

#include <stdint.h>

#include "api/ctl/print/progress.h"
#include "api/dfc.h"

#define UPLOAD_PART_BYTES (64ull << 20) /* the size of parts, unless another is asked for */
#define UPLOAD_PART_LEAST (5ull << 20)
#define UPLOAD_PART_MOST (5ull << 30)

struct upload_order {
    struct dfc_client *client;
    const char *path; /* the file */
    const char *bucket, *key;
    const struct dfc_put_options *options; /* without progress */
    struct progress_part *progress;
    uint64_t part_size; /* larger files are sent in parts; 0: none is */
    unsigned parallel;  /* parts at once */
};

/* *resumed: the bytes that an earlier run had sent.  *info must be freed. */
int upload_file(const struct upload_order *order, uint64_t *resumed, struct dfc_object_info **info,
                struct dfc_error *err);
