/* Who builds an output shard: pure.
 *
 * What building at a target costs the network is the bytes that must come there, which is all that
 * its own disks do not hold, plus the hop to the shard's final owner, which is the whole shard
 * unless the builder owns it.  The cheapest target builds; the owner wins ties, then the lower
 * number.
 *
 * (Without compression the owner always wins: it lacks at most the whole shard, and everybody else
 * pays at least that for the hop.  The rule is the general one, so that it stays true when output
 * is smaller than what goes into it.) */
#pragma once

#include <stdint.h>

struct placement {
    unsigned builder;
    uint64_t moved;          /* bytes over the network, as chosen */
    uint64_t moved_hrw;      /* had the owner built it */
    uint64_t moved_locality; /* had the target built it that holds most of its bytes */
};

/* held[i]: bytes of the shard's records on target i; `hop`: bytes that go to the owner from a
 * builder that is not the owner (the finished shard). */
struct placement place_shard(const uint64_t *held, unsigned targets, unsigned owner, uint64_t hop);
