#!/usr/bin/python3
"""Placement in Python against the vectors of hrw/, and floats against exact integers."""

import json
import os
import random
import unittest

from frame import ROOT
from dfc import _hrw

with open(os.path.join(ROOT, "hrw", "vectors.json"), encoding="utf-8") as f:
    VECTORS = json.load(f)


class HrwTest(unittest.TestCase):
    def test_neglog2(self):
        for row in VECTORS["neglog2"]:
            self.assertEqual(_hrw.neglog2(int(row["h"], 16)), int(row["value"], 16), row)

    def test_seeds_and_keys(self):
        for row in VECTORS["seeds"]:
            self.assertEqual(_hrw.seed(row["id"]), int(row["seed"], 16), row)
        for row in VECTORS["keys"]:
            self.assertEqual(_hrw.key(int(row["scope"], 16), row["name"].encode()),
                             int(row["key"], 16), row)

    def test_ranks(self):
        for row in VECTORS["ranks"]:
            nodes = [(_hrw.mix(_hrw.seed(name)), weight) for name, weight in row["nodes"]]
            self.assertEqual(_hrw.rank(int(row["key"], 16), nodes, len(row["rank"])), row["rank"])

    def test_the_first_where_weights_are_alike(self):
        draw = random.Random(6)
        for _ in range(300):
            seeds = [draw.getrandbits(64) for _ in range(draw.randrange(1, 9))]
            seeds += seeds[:draw.randrange(2)]  # of two that are the same, the first
            key = draw.getrandbits(64)
            self.assertEqual([_hrw.first(key, seeds)], _hrw.rank(key, [(s, 7) for s in seeds], 1))

    def test_scores_that_floats_cannot_tell_apart(self):
        """Hashes that follow one another, and weights nearly alike: the integers decide."""
        draw = random.Random(5)
        for _ in range(300):
            h = draw.getrandbits(64) | 1 << draw.randrange(64)
            rows = [((h + i) % 2**64, draw.choice((2**31 - 1, 2**31 - 2)), -i) for i in range(4)]
            exact = sorted(rows, reverse=True,
                           key=lambda r: (r[1] * 2**200 // _hrw.neglog2(r[0]), r[0], r[2]))
            self.assertEqual(_hrw._rank_by_score(rows, 4), [-r[2] for r in exact], rows)


if __name__ == "__main__":
    unittest.main()
