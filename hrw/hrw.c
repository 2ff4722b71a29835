#include "hrw/hrw.h"

#include <stdbool.h>
#include <xxhash.h>

#include "common/cleanup.h"
#include "common/mem.h"

/* splitmix64's finaliser: a bijection of 64-bit numbers in which every bit of the input moves
 * every bit of the output. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

uint64_t hrw_seed(const char *id)
{
    return XXH3_64bits(id, strlen(id));
}

uint64_t hrw_key(uint64_t scope, const void *name, size_t len)
{
    return XXH3_64bits_withSeed(name, len, scope);
}

uint64_t hrw_neglog2(uint64_t h)
{
    const uint64_t most = 65ull << 56;
    if (h == 0)
        return most;
    unsigned shift = (unsigned)__builtin_clzll(h);
    uint64_t whole = 64 - shift;
    uint64_t m = shift == 0 ? h : (2 * h + 1) << (shift - 1);
    uint64_t fraction = 0;
    for (int bit = 55; bit >= 0; bit--) {
        unsigned __int128 square = (unsigned __int128)m * m;
        uint64_t two_or_more = (uint64_t)(square >> 127);
        fraction |= two_or_more << bit;
        m = (uint64_t)(square >> (63 + two_or_more));
    }
    return most - (whole << 56) - fraction;
}

/* A node as it stands for one key. */
struct candidate {
    size_t index;
    uint64_t hash;
    uint64_t neglog2; /* 0 until it is needed: the function is never 0 */
    uint32_t weight;
};

static struct candidate candidate_of(uint64_t key, const struct hrw_node *nodes, size_t index)
{
    return (struct candidate){
        .index = index,
        .hash = mix(key ^ mix(nodes[index].seed)),
        .weight = nodes[index].weight,
    };
}

static uint64_t candidate_neglog2(struct candidate *c)
{
    if (c->neglog2 == 0)
        c->neglog2 = hrw_neglog2(c->hash);
    return c->neglog2;
}

/* At most hrw_neglog2(c->hash), for the price of two shifts: -ln(1 - x) >= x, and so
 * -log2(1 - x) >= 1.25 x. */
static uint64_t candidate_neglog2_floor(const struct candidate *c)
{
    return (~c->hash >> 8) + (~c->hash >> 10);
}

static bool product_less(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return (unsigned __int128)a * b < (unsigned __int128)c * d;
}

/* Whether `a` stands before `b`, which has the lower index: that is, whether weight / neglog2 is
 * greater.  Equal weights need no logarithm, for hrw_neglog2 falls as the hash grows; and where
 * the cheap bound on a's logarithm already loses, the exact one loses as well. */
static bool candidate_beats(struct candidate *a, struct candidate *b)
{
    if (a->weight == b->weight)
        return a->hash > b->hash;
    uint64_t b_neglog2 = candidate_neglog2(b);
    if (product_less(a->weight, b_neglog2, b->weight, candidate_neglog2_floor(a)))
        return false;
    uint64_t a_neglog2 = candidate_neglog2(a);
    if (product_less(b->weight, a_neglog2, a->weight, b_neglog2))
        return true;
    bool tie = !product_less(a->weight, b_neglog2, b->weight, a_neglog2);
    return tie && a->hash > b->hash;
}

size_t hrw_best(uint64_t key, const struct hrw_node *nodes, size_t count)
{
    struct candidate best = {.index = SIZE_MAX};
    for (size_t i = 0; i < count; i++) {
        if (nodes[i].weight == 0)
            continue;
        struct candidate c = candidate_of(key, nodes, i);
        if (best.index == SIZE_MAX || candidate_beats(&c, &best))
            best = c;
    }
    return best.index;
}

/* Puts the candidate, whose index is greater than all there, into the order of at most `max` of
 * `used`, and returns how many there are then. */
static size_t rank_insert(struct candidate *top, size_t used, size_t max, struct candidate c)
{
    size_t at = used;
    while (at > 0 && candidate_beats(&c, &top[at - 1]))
        at--;
    if (at == max)
        return used;
    size_t kept = used < max ? used : max - 1;
    memmove(top + at + 1, top + at, (kept - at) * sizeof *top);
    top[at] = c;
    return kept + 1;
}

size_t hrw_rank(uint64_t key, const struct hrw_node *nodes, size_t count, size_t n, size_t *out)
{
    size_t max = n < count ? n : count;
    size_t used = 0;
    _cleanup_free_ struct candidate *top = xcalloc(max, sizeof *top);
    for (size_t i = 0; i < count && max > 0; i++) {
        if (nodes[i].weight != 0)
            used = rank_insert(top, used, max, candidate_of(key, nodes, i));
    }
    for (size_t i = 0; i < used; i++)
        out[i] = top[i].index;
    return used;
}
