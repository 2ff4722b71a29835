/* The index of one output shard, a plain tar, that the WebDataset reader of NVIDIA's DALI takes
 * (fn.readers.webdataset, index_paths), as its wds2idx makes it:
 *
 *     v1.2 <samples>
 *     <extension> <offset of the contents> <size> <path> <extension> …      a line for each sample
 *
 * A sample is all regular files that follow one another and whose paths are the same up to the
 * first dot of the basename; the extension is what follows that dot.  Paths whose basename begins
 * with a dot are left out; a path without any is both, as it is where DALI reads a tar without an
 * index.  White space and an extension of no bytes, which the form cannot hold, are
 * E_SHARD_UNSUPPORTED naming the member. */
#pragma once

#include <stdint.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "sort/base/blob.h"

struct dali {
    struct blob *lines; /* memory, then a work file */
    uint64_t samples;
    struct buf base; /* of the last sample */
    struct buf head; /* the first line, when it is finished */
    struct span head_left;
    struct blob_range lines_left;
};

void dali_init(struct dali *d, const struct sort_env *env);
void dali_done(struct dali *d);
int dali_add(struct dali *d, const char *path, size_t len, uint64_t offset, uint64_t size,
             struct error *err);
/* After the last member: how large the index is, and its bytes, once. */
int dali_finish(struct dali *d, uint64_t *size, struct error *err);
struct source dali_source(struct dali *d);
