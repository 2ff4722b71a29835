/* What the buffer keeps: one version of an object.  It never changes. */
#pragma once

#include <stdint.h>

#include "common/cleanup.h"

#define ENTITY_BLOCK (128u << 10) /* bytes that are kept, or not, as a whole */

struct entity {
    char *key; /* the object's name */
    char *etag;
    char *checksum; /* "TYPE:HEX", or "" */
    uint64_t size;
    unsigned refs;
};

/* With one reference. */
struct entity *entity_new(const char *key, const char *etag, const char *checksum, uint64_t size);
struct entity *entity_ref(struct entity *e);
void entity_unref(struct entity *e); /* NULL is fine */
DEFINE_CLEANUP(struct entity, entity_unref);
