/* The table of a buffer's blocks, with its bound: no threads, no waiting.  The buffer's lock is
 * held by every caller. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct entity;

enum block_state { BLOCK_FETCHING, BLOCK_READY, BLOCK_FAILED };

struct block {
    struct entity *entity; /* a reference */
    uint64_t index;
    enum block_state state;
    int error;      /* FAILED: -errno */
    unsigned users; /* with any, the block stays */
    bool listed;    /* in the table */
    size_t size;
    char *data;
    struct block *chain;         /* of the table's slot */
    struct block *newer, *older; /* by use, of those without users */
};

#define BLOCKS_SLOTS 4096

struct blocks {
    uint64_t limit, used; /* bytes */
    struct block *slots[BLOCKS_SLOTS];
    struct block *newest, *oldest;
};

void blocks_init(struct blocks *b, uint64_t limit_bytes);
void blocks_done(struct blocks *b); /* no block has users */

struct block *blocks_find(const struct blocks *b, const struct entity *e, uint64_t index);
/* A block in state FETCHING with one user; older ones leave.  NULL: there is no room. */
struct block *blocks_add(struct blocks *b, struct entity *e, uint64_t index);
void blocks_use(struct blocks *b, struct block *block);
/* True: the block may leave from now on, or has left. */
bool blocks_release(struct blocks *b, struct block *block);
/* Out of the table; its users see the error. */
void blocks_fail(struct blocks *b, struct block *block, int error);
