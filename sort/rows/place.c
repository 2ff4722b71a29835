#include "sort/rows/place.h"

#include <assert.h>

struct costs {
    const uint64_t *held;
    uint64_t total;
    unsigned owner;
    uint64_t hop;
};

static uint64_t cost_at(const struct costs *c, unsigned target)
{
    return c->total - c->held[target] + (target == c->owner ? 0 : c->hop);
}

struct placement place_shard(const uint64_t *held, unsigned targets, unsigned owner, uint64_t hop)
{
    assert(owner < targets);
    struct costs c = {.held = held, .owner = owner, .hop = hop};
    for (unsigned i = 0; i < targets; i++)
        c.total += held[i];
    unsigned cheapest = owner;
    unsigned fullest = owner;
    for (unsigned i = 0; i < targets; i++) {
        if (cost_at(&c, i) < cost_at(&c, cheapest))
            cheapest = i;
        if (held[i] > held[fullest])
            fullest = i;
    }
    return (struct placement){
        .builder = cheapest,
        .moved = cost_at(&c, cheapest),
        .moved_hrw = cost_at(&c, owner),
        .moved_locality = cost_at(&c, fullest),
    };
}
