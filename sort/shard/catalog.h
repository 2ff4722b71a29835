/* The input shards of one target, and where in them each record lies.
 *
 * A shard's number is its place among the target's own in the order of (place in the request,
 * name).  For each shard the catalog keeps an index, by position, of the record's size and pieces:
 * 16 bytes for a record that stands in one run of bytes, as nearly all do; in memory up to a limit,
 * from there on in a work file.  An object that is no archive needs no index: its record is made
 * anew when it is read (object_record.h).
 *
 * Filling: one thread adds the shards and sorts; then each shard's records are written by one
 * thread, any number of shards at once.  Afterwards any thread reads.  More shards may be added
 * later, when nobody reads, which gives all of them new numbers. */
#pragma once

#include <stdint.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "sort/rows/dict.h"
#include "sort/base/env.h"
#include "sort/base/fdcache.h"
#include "sort/base/last_bytes.h"
#include "sort/shard/record.h"

struct catalog_part; /* catalog.c */

/* What is known of an input that is no archive, but an object of one member. */
struct catalog_object {
    int64_t modified_s;
    uint64_t record_size; /* headers, contents, padding; 0: not said yet */
    struct checksum_value checksum;
};

struct catalog_shard {
    char *name;
    uint64_t place;
    uint64_t size;   /* of the file */
    int contents_fd; /* of a decoded shard: where its tar is; else -1 */
    uint64_t contents_at;
    uint32_t records;
    uint32_t part_count; /* of its index */
    uint32_t before;     /* its number before it was sorted */
    struct catalog_part *parts;
    struct catalog_object *object; /* NULL: it is an archive */
};

struct catalog;

struct catalog *catalog_new(const struct sort_env *env, uint64_t memory_limit, uint32_t open_max);
void catalog_free(struct catalog *c);
DEFINE_CLEANUP(struct catalog, catalog_free);
void catalog_add(struct catalog *c, const char *name, uint64_t place, uint64_t size);
/* One that is no archive. */
void catalog_add_object(struct catalog *c, const struct sort_shard_info *info);
/* The request whose shards they are; it outlives the catalog. */
void catalog_set_spec(struct catalog *c, const struct sort_spec *spec);
const struct sort_spec *catalog_spec(const struct catalog *c); /* NULL: nobody has said it */
const char *catalog_bucket(const struct catalog *c);           /* its input; "" */
/* After the last one.  map[i], where map is not NULL, is the number now of what was number i when
 * it was sorted before, or, from their number on, of what was added since, in the order of adding.
 */
void catalog_sort(struct catalog *c, uint32_t *map);
uint32_t catalog_count(const struct catalog *c);
const struct catalog_shard *catalog_shard(const struct catalog *c, uint32_t shard);
/* Shard is an object: it has one record now, of this size. */
void catalog_set_record(struct catalog *c, uint32_t shard, uint64_t size);
/* The shard's tar is not its own file: it begins at this byte of that one, which outlives the
 * catalog. */
void catalog_set_contents(struct catalog *c, uint32_t shard, int fd, uint64_t at);
/* The file that has the shard's tar, and where in it the tar begins; close() follows. */
int catalog_open(const struct catalog *c, uint32_t shard, int *fd, uint64_t *at, struct error *err);
void catalog_close(const struct catalog *c, uint32_t shard);
/* Its shards as a dictionary, owned by target `self`. */
int catalog_dict(const struct catalog *c, unsigned self, struct dict **out, struct error *err);

/* A shard's records, one after the other from position 0 on. */
struct catalog_writer {
    struct catalog *catalog;
    uint32_t shard;
    uint32_t first; /* position of the part that is being collected */
    struct buf entries;
    struct buf heap;
    struct last_bytes last_inline; /* in the heap */
};

void catalog_writer_init(struct catalog_writer *w, struct catalog *c, uint32_t shard);
void catalog_writer_done(struct catalog_writer *w); /* what was not finished is not written */
/* `inlines`: what inline pieces are offsets into. */
int catalog_writer_add(struct catalog_writer *w, const struct record_piece *pieces, size_t count,
                       const char *inlines, struct error *err);
int catalog_writer_finish(struct catalog_writer *w, struct error *err);

/* Where a record lies. */
struct record_place {
    uint32_t shard;
    uint64_t size;  /* of all pieces */
    bool is_object; /* it has no pieces in the index: its record is made */
    uint32_t pieces;
    uint64_t heap; /* of the part of the index */
    uint64_t list; /* of the pieces, in the index; or ... */
    struct record_piece only;
};

/* E_INVALID where there is no such shard or record. */
int catalog_find(const struct catalog *c, uint32_t shard, uint32_t position,
                 struct record_place *out, struct error *err);
/* It will be looked for soon.  What does not exist is no concern. */
void catalog_prefetch(const struct catalog *c, uint32_t shard, uint32_t position);
int catalog_piece(const struct catalog *c, const struct record_place *r, uint32_t i,
                  struct record_piece *out, struct error *err);
/* Bytes of an inline piece, from `offset` of them on. */
int catalog_inline(const struct catalog *c, const struct record_place *r,
                   const struct record_piece *p, uint64_t offset, void *out, size_t len,
                   struct error *err);
struct fdcache *catalog_files(const struct catalog *c); /* its shards as they are, by number */
