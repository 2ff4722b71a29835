/* What the buffer keeps: one version of an object.  It never changes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"

#define ENTITY_BLOCK (128u << 10) /* bytes that are kept, or not, as a whole */

struct entity {
    char *key; /* the object's name */
    char *etag;
    char *checksum; /* "TYPE:HEX", or entity_sums_text(), or "" */
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
/* One sum of all sums; of the whole parts of the range, whether the bytes have their sums. */
uint64_t entity_sum(const struct entity *e);
bool entity_compare(const struct entity *e, uint64_t offset, const void *data, uint64_t length);
/* "sums:HEX", of entity_sum(): the checksum of the same entity for one that is not told the sums.
 * malloc'ed. */
char *entity_sums_text(const struct entity *e);
/* What names of caches are made of beside the key: a strong tag, or a checksum of
 * entity_sums_text(); no other bytes have it.  NULL: there is neither.  The checksum of an object
 * is none: a cluster knows it only of what it has stored. */
const char *entity_version(const char *etag, const char *checksum);
struct entity *entity_ref(struct entity *e);
void entity_unref(struct entity *e); /* NULL is fine */
DEFINE_CLEANUP(struct entity, entity_unref);
