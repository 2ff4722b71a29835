/* The objects that hold a volume's blocks: VOLUME/b/LOW/SLICE_BLOCK_BYTES.  LOW are the two last
 * hex digits of the slice, so that no prefix has very many names. */
#pragma once

#include <pthread.h>

#include "mount/data/entity.h"
#include "mount/volume/volume.h"

/* malloc'ed. */
char *objects_key(const char *volume, uint64_t slice, uint64_t block, uint64_t bytes);
/* False: it is no such name. */
bool objects_parse(const char *volume, const char *key, uint64_t *slice, uint64_t *block,
                   uint64_t *bytes);
/* Bytes of the slice's block, of a slice of `size` bytes. */
uint64_t objects_bytes(uint64_t size, uint64_t block_bytes, uint64_t block);

/* A sum of each SLICE_SUM_BYTES; malloc'ed. */
uint64_t *objects_sums(const char *data, size_t size, uint32_t *count);

/* Blocks that were read lately, so that the buffer knows them again: what it has of one that was
 * forgotten is fetched once more.  A hash leads to a row of a few, the one used last first. */
enum { OBJECTS_ROWS = 256, OBJECTS_OF_ROW = 8 };

struct objects {
    pthread_mutex_t lock;
    struct known {
        uint64_t slice, block;
        struct entity *entity;
    } known[OBJECTS_ROWS][OBJECTS_OF_ROW];
};

void objects_init(struct objects *o);
void objects_done(struct objects *o);
/* A reference.  NULL: the entry has not a sum for each part of the slice. */
struct entity *objects_entity(struct objects *o, const struct volume_format *format,
                              const struct slice_entry *e, uint64_t block);
