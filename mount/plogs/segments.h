/* The bytes that a mount of plogs reads: data of segments, and of objects that are no plogs.
 *
 *     reader of a plog -> segments_read -> buffer -> sums -> tiers -> disk cache, or the bucket
 *
 * All handles share one memory buffer: of two that read one MiB one request serves both.  Data of
 * segments are compared with the sums of their index, MiB by MiB, before a reader gets any of them.
 * What differs stays neither in memory nor in the disk cache.
 *
 * A segment is known by name, size and sums, and has streams of its own for read-ahead.  The
 * SEGMENTS_MOST that were read last are known.  Any thread may call. */
#pragma once

#include "cache/cache.h"
#include "mount/bucket/tree.h"
#include "mount/data/buffer.h"
#include "plog/client/dfc_plog.h"

#define SEGMENTS_MOST 16384

struct segments_options {
    uint64_t buffer_bytes;      /* with what waits to be written to the disk */
    uint64_t readahead_bytes;   /* of one segment or object at most; 0: nothing is read ahead */
    unsigned fetchers;          /* requests for data at once */
    struct cache_options cache; /* directories NULL: no disk cache; fill_bytes is not read */
};

struct segments;

/* The store gives bytes of a segment, which has sums, or of another object.  scope: of names in the
 * cache.  The error is that of a directory of the cache, or of threads. */
int segments_open(const struct segments_options *options, const struct data_store *store,
                  const char *scope, struct segments **out, struct error *err);
/* No read may be running; waits for requests that are.  NULL is fine. */
void segments_close(struct segments *s);

/* For struct dfc_plog_reader; context is a struct segments.  DFC_NOT_FOUND: the object is gone. */
int segments_read(void *segments, const struct dfc_plog_segment *segment, void *to, size_t size,
                  uint64_t offset, struct dfc_error *err);

struct segments_object {
    const char *key, *etag;
    uint64_t size;
};
/* All bytes, which are within the object, of one version: 0 or -errno.  ESTALE: it is another one
 * by now. */
int segments_read_object(struct segments *s, const struct segments_object *o, void *to, size_t size,
                         uint64_t offset);

size_t segments_known(struct segments *s);  /* at most SEGMENTS_MOST */
uint64_t segments_used(struct segments *s); /* bytes of the buffer now */

/* For struct data_store; context is a struct tree, the bucket's. */
int segments_fetch(void *tree, const struct entity *e, uint64_t offset, uint64_t length,
                   const struct dfc_sink *sink);
