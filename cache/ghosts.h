/* Names that have left the cache, for how long ago: pure.
 *
 * A name is remembered until as many others have left as the table was last told to remember.
 * 32 bytes a name. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ghosts {
    struct ghost {
        uint64_t name; /* a hash, never 0; 0: the slot is free */
        uint64_t turn; /* of leaving; 0: it has returned */
    } * slots;
    size_t slot_count, used; /* used: slots that are not free */
    uint64_t turn;
};

#define GHOSTS_UNKNOWN UINT64_MAX

void ghosts_init(struct ghosts *g);
void ghosts_done(struct ghosts *g);

void ghosts_add(struct ghosts *g, uint64_t name, uint64_t most);
/* How many names have left since, or GHOSTS_UNKNOWN. */
uint64_t ghosts_age(const struct ghosts *g, uint64_t name, uint64_t most);
void ghosts_remove(struct ghosts *g, uint64_t name);
