/* The bytes of a compressed stream, unpacked: of gzip by gunzip.h, of bzip2, xz, zstd and lz4 by
 * libarchive.  The stream is pulled through a buffer, so that whoever reads may stop at any byte.
 *
 * A stream that is compressed twice is refused: one buffer of it could expand without end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "sort/archive/gunzip.h"

struct unfilter;

/* Does a compressed stream begin so? */
bool unfilter_knows(const unsigned char *data, size_t len);
/* `first`: bytes that were taken from the source before, at most GUNZIP_FIRST_MAX.  `what` names
 * the stream in messages, and outlives it. */
struct unfilter *unfilter_new(gunzip_source *source, void *ctx, const void *first, size_t len,
                              const char *what);
/* 1..max bytes, 0 at the end of the stream, or an error code: the source's, E_SHARD_CORRUPT,
 * E_SHARD_UNSUPPORTED. */
ssize_t unfilter_read(struct unfilter *f, void *to, size_t max, struct error *err);
void unfilter_free(struct unfilter *f); /* NULL is fine */
DEFINE_CLEANUP(struct unfilter, unfilter_free);
