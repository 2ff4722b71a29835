/* What the decisions of a plog need of the world.  The client fills it with calls of libdfc, a test
 * with a simulated store.  All calls wait for their result.
 *
 * Names are whole names of objects.  An etag names one version of an object: objects of equal bytes
 * may have equal etags, so each version that counts has bytes of its own.  A call that ended in
 * doubt may be repeated below: then a condition may fail because of the caller's own first try.
 * What it has stored is seen then, and may not be durable. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "plog/map.h"

enum { PLOG_ETAG_MAX = 256 };

struct plog_names {
    size_t count, room;
    char **items;
};
void plog_names_add(struct plog_names *n, const char *name);
void plog_names_done(struct plog_names *n);
#define _cleanup_plog_names_ _cleanup_(plog_names_done)

/* The data of a segment, as its index has them. */
struct plog_data {
    const char *segment; /* the object's name */
    uint64_t bytes;
    const uint8_t *sums; /* XXH3 of each PLOG_BLOCK, as in the index */
};

#define PLOG_ABSENT "*" /* as if_match: only where there is no such object */

struct plog_store {
    void *ctx;
    size_t whole_max;     /* bytes of an object that get() reads; 0: any number */
    uint64_t map_max;     /* bytes of memory of a map; 0: any number */
    const char *map_hint; /* what to do if that is too little, or NULL */
    /* All names with this prefix, ascending; those greater than `after`, unless it is NULL.  It has
     * every object that was acknowledged before the call, or fails. */
    int (*list)(void *ctx, const char *prefix, const char *after, struct plog_names *out,
                struct error *err);
    /* E_NOT_FOUND; an object above whole_max is an error */
    int (*get)(void *ctx, const char *name, struct buf *body, char etag[static PLOG_ETAG_MAX],
               struct error *err);
    /* Exactly len bytes at the offset.  E_NOT_FOUND; E_CORRUPT: the object is shorter. */
    int (*read)(void *ctx, const char *name, void *out, size_t len, uint64_t offset,
                struct error *err);
    /* The same of a segment's data, which are compared with their sums: E_CORRUPT.  The store may
     * keep them for other files.  NULL: read() is called, and each file keeps what it has read. */
    int (*data)(void *ctx, const struct plog_data *data, void *out, size_t len, uint64_t offset,
                struct error *err);
    /* Durable when it returns.  if_match: NULL, PLOG_ABSENT or an etag, else E_PRECONDITION or
     * E_NOT_FOUND. */
    int (*put)(void *ctx, const char *name, const void *body, size_t len, const char *if_match,
               char etag[static PLOG_ETAG_MAX], struct error *err);
    /* As put() without a condition, but durable when flush() has said so, and the buffer becomes
     * empty.  May wait for earlier ones.  An error may be one of them: the buffer stays as it is.
     * NULL: put() is called. */
    int (*send)(void *ctx, const char *name, struct buf *body, struct error *err);
    /* All that was sent is durable.  After an error it can be repeated.  NULL with send. */
    int (*flush)(void *ctx, struct error *err);
    /* E_PRECONDITION, E_NOT_FOUND */
    int (*remove)(void *ctx, const char *name, const char *if_match, struct error *err);
    /* Adds the ends of these segments to the map.  E_NOT_FOUND, E_CORRUPT. */
    int (*ends)(void *ctx, const struct plog_names *segments, struct plog_map *map,
                struct error *err);
    uint64_t (*now_ms)(void *ctx); /* Unix time; nothing is decided by it */
    uint64_t (*random)(void *ctx);
};
