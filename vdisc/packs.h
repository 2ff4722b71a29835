/* Which small contents are stored together: packs.  Pure.
 *
 * Contents are given in an order that a burn does not choose anew: the path order of the tree.  A
 * pack ends after a content whose SHA-256 says so, or when it is full.  So a change of a directory
 * changes the packs around it, and the others stay as they are. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PACKS_FILE_MAX (1u << 20) /* bytes: larger contents are objects of their own */
#define PACKS_SIZE (64u << 20)    /* bytes of a full pack */
#define PACKS_CUT 512             /* contents, about, between two cuts */

struct packs_item {
    uint64_t size;
    uint8_t sha256[32];
    /* Set by packs_plan(): */
    uint32_t pack;
    uint64_t offset; /* whole blocks */
};

/* Returns the number of packs; an empty content takes a block. */
uint32_t packs_plan(struct packs_item *items, size_t count);
/* The bytes of a content in a pack: whole blocks, one at least. */
uint64_t packs_room(uint64_t size);
