/* What the buffer keeps: one version of an object.  It never changes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"

#define ENTITY_BLOCK (128u << 10) /* bytes that are kept, or not, as a whole */

struct entity {
    char *key; /* the object's name */
    char *etag;
    char *checksum; /* "TYPE:HEX", or "" */
    uint64_t *sums; /* XXH3-64 of each part; NULL: none */
    size_t part;    /* bytes that have a sum: some ENTITY_BLOCKs; 0: one */
    uint64_t size;
    void *home; /* of a store with several places: where it is from; the maker's, or NULL */
    unsigned refs;
};

/* With one reference. */
struct entity *entity_new(const char *key, const char *etag, const char *checksum, uint64_t size);
size_t entity_part(const struct entity *e); /* bytes */
/* How many sums it has, or would have. */
size_t entity_sums(const struct entity *e);
/* A sum for each part; before another thread knows the entity. */
void entity_set_sums(struct entity *e, const uint64_t *sums);
struct entity *entity_ref(struct entity *e);
void entity_unref(struct entity *e); /* NULL is fine */
DEFINE_CLEANUP(struct entity, entity_unref);
