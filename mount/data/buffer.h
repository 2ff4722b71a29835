/* The memory buffer: blocks of entities that were read, or are being read ahead.
 *
 * The buffer is bounded: all bytes of all blocks stay below `bytes`.  Threads of its own fetch from
 * the store, in requests of up to 1 MiB.  A block is readable as soon as its last byte has arrived;
 * of an object that is fetched whole, after its checksum was compared.  Of two readers of one block
 * one fetch serves both.  The block that was read longest ago leaves first.
 *
 * A short read at a random place is served by the store's near(), if that has it: a block is 32
 * times as large.  The block is fetched if another such read touches it soon.
 *
 * All functions may be called from any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "api/dfc.h"
#include "common/cleanup.h"
#include "mount/data/entity.h"
#include "mount/data/readahead.h"

#define NEAR_MOST (32u << 10) /* bytes */

/* Where entities come from.  fetch: these bytes of the entity into the sink, which can be rewound
 * if they are the whole entity.  0 or -errno: ESTALE where the object is another one by now.
 * near: true, and up to NEAR_MOST bytes of one block, if they are on this machine; a fetch serves
 * all else.  NULL: nothing is. */
struct data_store {
    void *context;
    int (*fetch)(void *context, const struct entity *e, uint64_t offset, uint64_t length,
                 const struct dfc_sink *sink);
    bool (*near)(void *context, const struct entity *e, uint64_t offset, size_t length, void *to);
};

/* A sink for those who want bytes to come, and not the bytes. */
extern const struct dfc_sink data_nothing;

struct buffer_options {
    uint64_t bytes;    /* of all blocks */
    unsigned fetchers; /* requests to the store at once */
};

struct buffer;

struct buffer *buffer_new(const struct buffer_options *options, const struct data_store *store);
/* No reader may be there; waits for requests that run. */
void buffer_free(struct buffer *b);
DEFINE_CLEANUP(struct buffer, buffer_free);

/* A reader comes (1) or goes (-1): they share the room for read-ahead. */
void buffer_readers(struct buffer *b, int change);
uint64_t buffer_share(struct buffer *b); /* bytes of read-ahead of one reader */

struct buffer_read {
    struct entity *entity;
    uint64_t offset; /* all of it is within the entity */
    size_t size;
    struct span ahead;                  /* fetched as far as there is room, and not waited for */
    bool lone;                          /* it continues no read: near() may serve it */
    bool (*interrupted)(void *context); /* asked while waiting; NULL: never */
    void *context;
};

/* Asks for both spans of an entity, and waits for nothing.  wanted: a buffer_read() follows. */
void buffer_request(struct buffer *b, struct entity *e, struct span wanted, struct span ahead);
/* All of the bytes: 0 or -errno.  EINTR: interrupted; the fetch goes on. */
int buffer_read(struct buffer *b, const struct buffer_read *r, void *to);
/* Waits until no request for these bytes runs: what the store gave is in the tiers' hands, too. */
void buffer_settle(struct buffer *b, const struct entity *e, struct span s);
uint64_t buffer_used(struct buffer *b); /* bytes of blocks now */
