/* Weighted highest random weight (rendezvous hashing), integers only.
 *
 * Every (key, node) pair has a 64-bit hash h; u = (h + 1/2) / 2^64 is uniform in (0, 1).  The
 * node with the greatest  weight / -log2(u)  owns the key; the next ones are its further copies.
 * With equal weights that is plain HRW; with unequal ones each node gets its share, and changing
 * one weight moves keys only from or to that node.
 * (Thaler & Ravishankar 1998; the weighted score: Schindelhauer & Schomaker 2005.)
 *
 * -log2(u) is computed in fixed point (hrw_neglog2, below), and scores are compared by 128-bit
 * cross-multiplication, so that every machine and language agrees: vectors are in
 * hrw/vectors.json.  Ties go to the greater h, then to the lower index.
 *
 *   key hash   = XXH3-64(key bytes, seed = scope)     scope: the bucket id, or 0
 *   pair hash  = mix(key hash ^ mix(node seed))       mix: the finaliser of splitmix64 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hrw_node {
    uint64_t seed;   /* hrw_seed(id) */
    uint32_t weight; /* 0: never chosen */
};

uint64_t hrw_seed(const char *id); /* XXH3-64 of the id */
uint64_t hrw_key(uint64_t scope, const void *name, size_t len);

/* -log2((h + 1/2) / 2^64) = 65 - log2(2h + 1), in Q8.56 (8 bits before the point, 56 after), by
 * this algorithm and no other:
 *
 *     if h = 0: return 65 * 2^56
 *     e = floor(log2(2h + 1))                        0..64
 *     m = floor((2h + 1) * 2^(63 - e))               the mantissa, in Q1.63: 2^63 <= m < 2^64
 *     f = 0
 *     56 times: s = m * m                            exact, 128 bits
 *               f = 2 f + (s >= 2^127)
 *               m = floor(s / 2^64) if s >= 2^127, else floor(s / 2^63)
 *     return 65 * 2^56 - (e * 2^56 + f)
 *
 * All roundings go down, so that the result is at least the true value, by less than 2^-55; it is
 * never 0, and it never grows with h: of two mantissas the greater has a 1 at the first digit where
 * they part.  Therefore equal weights may be decided by the hashes alone. */
uint64_t hrw_neglog2(uint64_t h);

/* Index of the best node; SIZE_MAX where every weight is 0. */
size_t hrw_best(uint64_t key, const struct hrw_node *nodes, size_t count);
/* The indices of the n best, best first, into out; returns how many (fewer than n when fewer have
 * weight). */
size_t hrw_rank(uint64_t key, const struct hrw_node *nodes, size_t count, size_t n, size_t *out);
