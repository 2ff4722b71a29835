/* Which objects of an image's bucket have the contents of files: each content is stored once, in an
 * object of an older image, in an object of its own (.dfc-unique/), or in a pack (.dfc-packs/).
 * Pure.
 *
 *     placing_new → for each object that is a pack: placing_name_pack, with its checksum
 *                  → placing_end: each file has its place
 *
 * The names are those of the bytes.  So equal files make equal objects, whoever stores them. */
#pragma once

#include "vdisc/older.h"
#include "vdisc/packs.h"
#include "vdisc/plan.h"

#define BURN_UNIQUE ".dfc-unique"
#define BURN_PACKS ".dfc-packs"

struct placing_file {
    uint64_t size;
    uint8_t sha256[32];
    struct plan_part part; /* set by placing_end(); its texts are of the contents, or of the base */
};

/* An object that must be there: its files one behind another. */
struct placing_object {
    char *key;             /* of a pack: NULL until it has its checksum */
    uint64_t size;         /* of a pack with the zeros that each file is padded with */
    const uint32_t *files; /* numbers */
    size_t count;
    struct checksum_value checksum;
    bool pack;
};

struct placing_options {
    const char *bucket;
    const struct older *base; /* what it has is not stored again; or NULL */
    bool pack;                /* small contents share objects */
};

struct placing;

/* The files are in path order, and live as long as the contents. */
struct placing *placing_new(struct placing_file *files, size_t count,
                            const struct placing_options *options);
void placing_free(struct placing *c);
DEFINE_CLEANUP(struct placing, placing_free);
struct placing_object *placing_objects(struct placing *c, size_t *count);
/* Of different objects by several threads at once. */
void placing_name_pack(struct placing_object *o, const struct checksum_value *sha256);
void placing_end(struct placing *c);
