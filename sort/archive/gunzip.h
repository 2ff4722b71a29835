/* A stream of gzip, pulled through a buffer.  Several members one behind the other are one stream.
 * libarchive's own filter does not compare the checksums that gzip has; this one does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/cleanup.h"
#include "common/error.h"

struct gunzip;

/* 1..max bytes, 0 at the end, or an error code. */
typedef ssize_t gunzip_source(void *ctx, void *to, size_t max, struct error *err);

bool gunzip_knows(const unsigned char *data, size_t len); /* does a stream of gzip begin so? */
/* `first`: bytes that were taken from the source before. */
struct gunzip *gunzip_new(gunzip_source *source, void *ctx, const void *first, size_t len);
/* 1..max bytes, 0 at the end of the source, or an error code: E_SHARD_CORRUPT, or the source's. */
ssize_t gunzip_read(struct gunzip *g, void *to, size_t max, struct error *err);
void gunzip_free(struct gunzip *g); /* NULL is fine */
DEFINE_CLEANUP(struct gunzip, gunzip_free);
