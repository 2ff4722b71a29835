"""Weighted highest random weight, as hrw/hrw.h defines it; hrw/vectors.json are the tests.

Floats decide, and exact integers only where two scores are nearer than floats can tell.
"""

from __future__ import annotations

import math
from typing import List, Sequence, Tuple

import xxhash

_MASK = (1 << 64) - 1
_NEAR = 1e-9  #: relative distance of two scores below which floats do not decide


def seed(node: str) -> int:
    return int(xxhash.xxh3_64_intdigest(node.encode()))


def key(scope: int, name: bytes) -> int:
    return int(xxhash.xxh3_64_intdigest(name, seed=scope))


def mix(x: int) -> int:
    """The finaliser of splitmix64."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def neglog2(h: int) -> int:
    """-log2((h + 1/2) / 2^64) in Q8.56."""
    if h == 0:
        return 65 << 56
    e = (2 * h + 1).bit_length() - 1
    m = (2 * h + 1) << (63 - e) if e <= 63 else (2 * h + 1) >> (e - 63)
    f = 0
    for _ in range(56):
        s = m * m
        top = s >> 127
        f = 2 * f + top
        m = s >> 64 if top else s >> 63
    return (65 << 56) - ((e << 56) + f)


def rank(name: int, nodes: Sequence[Tuple[int, int]], count: int) -> List[int]:
    """Indices of the best `count` of (mixed seed, weight), best first; weight 0 never."""
    hashes = [(mix(name ^ mixed), weight, -i) for i, (mixed, weight) in enumerate(nodes) if weight]
    if len({weight for _, weight, _ in hashes}) <= 1:
        hashes.sort(key=lambda row: (row[0], row[2]), reverse=True)
        return [-i for _, _, i in hashes[:count]]
    return _rank_by_score(hashes, count)


def first(name: int, seeds: Sequence[int]) -> int:
    """The index that rank() has first, where all weights are the same.  mix() stands here once more,
    since a call of it costs as much as what it does."""
    best, found = -1, 0
    for i, x in enumerate(seeds):
        x ^= name
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
        x ^= x >> 31
        if x > best:
            best, found = x, i
    return found


def _score(h: int, weight: int) -> float:
    """weight / -log2(u) for u = (h + 1/2) / 2^64, near 1 by how much is missing to it."""
    if h < 1 << 63:
        return weight / -math.log2((h + 0.5) / 2.0**64)
    return weight / (-math.log1p(-((1 << 65) - (2 * h + 1)) / 2.0**65) / math.log(2))


_Row = Tuple[float, int, int, int]  # score, hash, weight, -index


def _is_better(a: _Row, b: _Row) -> bool:
    if abs(a[0] - b[0]) > _NEAR * max(a[0], b[0]):
        return a[0] > b[0]
    left, right = a[2] * neglog2(b[1]), b[2] * neglog2(a[1])  # the quotients, without a division
    return left > right if left != right else (a[1], a[3]) > (b[1], b[3])


def _rank_by_score(hashes: List[Tuple[int, int, int]], count: int) -> List[int]:
    best: List[_Row] = []
    for h, weight, i in hashes:
        row = (_score(h, weight), h, weight, i)
        at = len(best)
        while at > 0 and _is_better(row, best[at - 1]):
            at -= 1
        best.insert(at, row)
        del best[count:]
    return [-row[3] for row in best]
