#include "cache/ghosts.h"

#include <stdlib.h>

#include "common/mem.h"

#define SLOTS_FIRST 256

void ghosts_init(struct ghosts *g)
{
    *g = (struct ghosts){
        .slots = xcalloc(SLOTS_FIRST, sizeof *g->slots),
        .slot_count = SLOTS_FIRST,
    };
}

void ghosts_done(struct ghosts *g)
{
    free(g->slots);
    *g = (struct ghosts){0};
}

/* The name's slot, or the free one where it would be. */
static struct ghost *slot_of(const struct ghosts *g, uint64_t name)
{
    size_t at = name & (g->slot_count - 1);
    while (g->slots[at].name != 0 && g->slots[at].name != name)
        at = (at + 1) & (g->slot_count - 1);
    return &g->slots[at];
}

/* Without the forgotten ones, at most half full. */
static void rebuild(struct ghosts *g, uint64_t most)
{
    struct ghosts old = *g;
    size_t known = 0;
    for (size_t i = 0; i < old.slot_count; i++)
        known += ghosts_age(&old, old.slots[i].name, most) != GHOSTS_UNKNOWN;
    g->slot_count = SLOTS_FIRST;
    while (g->slot_count < 2 * (known + 1))
        g->slot_count *= 2;
    g->slots = xcalloc(g->slot_count, sizeof *g->slots);
    g->used = known;
    for (size_t i = 0; i < old.slot_count; i++) {
        if (ghosts_age(&old, old.slots[i].name, most) != GHOSTS_UNKNOWN)
            *slot_of(g, old.slots[i].name) = old.slots[i];
    }
    free(old.slots);
}

void ghosts_add(struct ghosts *g, uint64_t name, uint64_t most)
{
    if (4 * (g->used + 1) > 3 * g->slot_count)
        rebuild(g, most);
    struct ghost *slot = slot_of(g, name != 0 ? name : 1);
    g->used += slot->name == 0;
    *slot = (struct ghost){.name = name != 0 ? name : 1, .turn = ++g->turn};
}

uint64_t ghosts_age(const struct ghosts *g, uint64_t name, uint64_t most)
{
    const struct ghost *slot = slot_of(g, name != 0 ? name : 1);
    if (slot->turn == 0 || g->turn - slot->turn >= most)
        return GHOSTS_UNKNOWN;
    return g->turn - slot->turn;
}

void ghosts_remove(struct ghosts *g, uint64_t name)
{
    struct ghost *slot = slot_of(g, name != 0 ? name : 1);
    slot->turn = 0;
}
