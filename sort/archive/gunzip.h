/* A stream of gzip, pulled through a buffer: by igzip, three times as fast as zlib.  Several
 * members one behind the other, as pigz and cat make them, are one stream.  Zeros may stand behind
 * a member: bsdtar fills the last block of what it writes to a pipe, and gzip, too, passes over
 * them.  Checksums are compared, which libarchive does not do. */
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
/* `first`: bytes that were taken from the source before, at most GUNZIP_FIRST_MAX. */
enum { GUNZIP_FIRST_MAX = 64 << 10 };
struct gunzip *gunzip_new(gunzip_source *source, void *ctx, const void *first, size_t len);
/* 1..max bytes, 0 at the end of the source, or an error code: the source's, or E_SHARD_CORRUPT. */
ssize_t gunzip_read(struct gunzip *g, void *to, size_t max, struct error *err);
/* What is damaged; NULL: nothing that was read so far. */
const char *gunzip_complaint(const struct gunzip *g);
/* Bytes that were taken from the source, and not used. */
size_t gunzip_unread(const struct gunzip *g);
void gunzip_free(struct gunzip *g); /* NULL is fine */
DEFINE_CLEANUP(struct gunzip, gunzip_free);
