/* The end of a zip: where its central directory is, and the names in it.  What is read is checked
 * before it is believed.  Errors are those of the reader, and E_SHARD_CORRUPT and
 * E_SHARD_UNSUPPORTED (several volumes), with shard, byte and reason. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "sort/shard/tar.h"

struct zip_source {
    tar_read_fn *read; /* exactly len bytes; asked for no byte behind `size` */
    void *ctx;
    uint64_t size;
    const char *shard; /* for messages */
};

struct zip_tail {
    uint64_t entries;
    uint64_t begin, end; /* of the central directory */
    size_t comment_len;  /* of the archive's comment, its last bytes */
};

int zip_tail_find(const struct zip_source *in, struct zip_tail *out, struct error *err);

/* A record of the directory. */
struct zip_row {
    size_t at, len; /* in the directory */
    const char *name;
    size_t name_len;
};

/* The record at byte `at` of the directory's bytes, which the row borrows. */
int zip_row_at(const struct zip_source *in, const struct zip_tail *t, const struct buf *directory,
               size_t at, struct zip_row *out, struct error *err);
