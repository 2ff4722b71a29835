/* Copying records out of shards: many ranges into one buffer.
 *
 * Ranges are collected and read in a batch.  A range that begins where the last one of the same
 * shard has ended is read with it, by one call, wherever the two go: shards that are in order
 * themselves are read in long runs though their records alternate.  What the page cache holds is
 * read at once; at the first run that it does not hold, the kernel is told of all that are left in
 * the batch before the waiting begins, so that a disk sees them together and not one by one.
 *
 * An object that is no archive is read whole, from its beginning on, and has its checksum then.
 *
 * A feed walks over the bytes of one record after the other.  What a tar has around an object is
 * made at the record's beginning. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/checksum.h"
#include "common/error.h"
#include "sort/shard/catalog.h"
#include "sort/shard/object_record.h"

#define GATHER_RANGES 256 /* of a batch */
#define GATHER_FILES 64   /* open in a batch */
#define GATHER_HINTS 128

struct gather_range {
    uint64_t offset;
    size_t length;
    unsigned char *to;
    uint16_t file; /* in `files` */
    uint16_t next; /* range of the run; GATHER_RANGES: none */
    bool begins;   /* a run */
};

struct gather_file {
    uint32_t shard;
    int fd;
    uint64_t at;                         /* where in the file the shard's tar begins */
    uint16_t last;                       /* range */
    const struct catalog_object *object; /* NULL: an archive, whose bytes have no checksum here */
};

struct gather {
    const struct catalog *catalog;
    struct gather_range ranges[GATHER_RANGES];
    unsigned count;
    struct gather_file files[GATHER_FILES];
    unsigned file_count;
    uint8_t hints[GATHER_HINTS]; /* by shard: where in `files` it may be */
    bool probe_unsupported;      /* the file system cannot say what is in the page cache */
    struct checksum *sum;        /* of the object that is read in several batches; or NULL */
    uint32_t sum_shard;
    uint64_t sum_at;           /* how many of its bytes are in it */
    struct object_record made; /* of the feed that walks over an object */
};

void gather_init(struct gather *g, const struct catalog *c);
void gather_done(struct gather *g); /* what was not flushed is not read */
int gather_add(struct gather *g, uint32_t shard, uint64_t offset, size_t length, void *to,
               struct error *err);
/* All that was added has been read.  E_CHECKSUM of an object, by its name. */
int gather_flush(struct gather *g, struct error *err);

struct feed {
    const struct catalog *catalog;
    const struct object_record *made; /* the gather's; NULL: the record's pieces are in the index */
    struct record_place place;
    struct record_piece piece;
    uint32_t next;     /* piece after the present one */
    uint64_t consumed; /* of the present piece */
};

/* Begins with a record of g's catalog; its size is f->place.size.  One feed at a time of a g. */
int feed_begin(struct feed *f, struct gather *g, uint32_t shard, uint32_t position,
               struct error *err);
/* Puts the record's next bytes, at most max, into out (ranges of the shard only when g is flushed).
 * How many, 0 at the record's end. */
ssize_t feed_fill(struct feed *f, struct gather *g, unsigned char *out, size_t max,
                  struct error *err);
/* Passes over bytes of the record, which has them. */
int feed_skip(struct feed *f, uint64_t bytes, struct error *err);
