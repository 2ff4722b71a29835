#!/usr/bin/env python3
"""The reference and the data sets are programs, too: what can be said of them by hand."""

import collections
import io
import json
import os
import sys
import tarfile
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import make_dataset  # noqa: E402
import sortref  # noqa: E402
import sortref_compare  # noqa: E402
import sortref_names  # noqa: E402


def make_tar(path, names, fmt=tarfile.USTAR_FORMAT):
    with tarfile.open(path, "w", format=fmt) as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = len(name)
            tar.addfile(info, io.BytesIO(name.encode()))


def spec_of(**fields):
    return {"input_format": {"prefix": ""}, "output_format": "o-%d", "output_shard_size": "1K",
            **fields}


def fact_bag(datas):
    """The members of archives as a multiset, order and archive left aside; no directories."""
    facts = (f for data in datas for f in sortref_compare.member_facts(data) if f["type"] != b"5")
    return collections.Counter(json.dumps(f, sort_keys=True, default=repr) for f in facts)


class ByHand(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="dfc-sortref-")
        self.addCleanup(self.directory.cleanup)

    def shard(self, name, members):
        make_tar(os.path.join(self.directory.name, name), members)

    def sort(self, **fields):
        """{output name: its members' names}"""
        return {name: [f["name"] for f in sortref_compare.member_facts(data)]
                for name, data in sortref.sort_dataset(spec_of(**fields), self.directory.name)}

    def code(self, **fields):
        with self.assertRaises(sortref.SortError) as caught:
            self.sort(**fields)
        return caught.exception.code

    def test_orders_by_key_and_keeps_records_together(self):
        self.shard("a.tar", ["b.x", "c.x", "b.a"])
        self.shard("b.tar", ["a.seg.png", "a.cls"])
        # Two blocks a member: 1 KiB, so that each record fills a shard.
        self.assertEqual(self.sort(), {"o-0.tar": ["a.seg.png", "a.cls"],
                                       "o-1.tar": ["b.x", "b.a"], "o-2.tar": ["c.x"]})

    def test_decreasing_reverses_the_key_only(self):
        self.shard("a.tar", ["b.1", "a.1"])
        self.shard("b.tar", ["b.2"])
        down = self.sort(algorithm={"kind": "alphanumeric", "decreasing": True},
                         output_shard_size="1M")
        self.assertEqual(down, {"o-0.tar": ["b.1", "b.2", "a.1"]})

    def test_none_follows_the_request(self):
        self.shard("a.tar", ["b.1", "a.1"])
        self.shard("b.tar", ["c.2"])
        none = self.sort(algorithm={"kind": "none"}, output_shard_size="1M",
                         input_format={"objnames": ["b", "a.tar"]})
        self.assertEqual(none, {"o-0.tar": ["c.2", "b.1", "a.1"]})

    def test_shuffle_is_a_permutation_that_the_seed_decides(self):
        self.shard("a.tar", [f"{i}.x" for i in range(40)])
        orders = [self.sort(algorithm={"kind": "shuffle", "seed": seed},
                            output_shard_size="1M")["o-0.tar"] for seed in ("1", "1", "2")]
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0], orders[2])
        self.assertEqual(sorted(orders[0]), sorted(orders[2]))

    def test_divides_by_the_template_where_no_size_is_given(self):
        self.shard("a.tar", [f"{i}.x" for i in range(10)])
        got = self.sort(output_shard_size=0, output_format="o-{00..03}")
        self.assertEqual([len(v) for v in got.values()], [3, 3, 3, 1])
        self.assertEqual(list(got), ["o-00.tar", "o-01.tar", "o-02.tar", "o-03.tar"])

    def test_refuses_what_it_must(self):
        self.shard("a.tar", ["a.x", "a.x"])
        self.shard("b.tar", ["a.y", "b.y"])
        self.assertEqual(self.code(), "duplicate_record")
        self.assertEqual(self.code(input_format={"template": "{b..c}.tar"},
                                   **{"output_format": "o-%d"}), "shard_missing")
        self.assertEqual(self.code(input_format={"objnames": ["b"]}, output_format="o-{0..0}"),
                         "template_too_small")

    def test_later_duplicate_wins(self):
        self.shard("a.tar", ["a.x", "a.y", "a.x"])
        got = self.sort(duplicated_records="ignore")
        self.assertEqual(got, {"o-0.tar": ["a.y", "a.x"]})

    def test_templates(self):
        self.assertEqual(list(sortref_names.bash_names("s-{08..10}-{0..2..2}")),
                         ["s-08-0", "s-08-2", "s-09-0", "s-09-2", "s-10-0", "s-10-2"])
        self.assertEqual(list(sortref_names.at_names("s-@02")), ["s-00", "s-01", "s-02"])
        self.assertEqual(next(sortref_names.fmt_names("s-%04d.tar")), "s-0000.tar")


class Random(unittest.TestCase):
    def test_data_sets_repeat(self):
        with tempfile.TemporaryDirectory(prefix="dfc-sortref-") as d:
            for name in ("a", "b"):
                make_dataset.make_dataset(7, os.path.join(d, name))
            for name in os.listdir(os.path.join(d, "a")):
                with open(os.path.join(d, "a", name), "rb") as a:
                    with open(os.path.join(d, "b", name), "rb") as b:
                        self.assertEqual(a.read(), b.read())

    def test_every_member_comes_out_with_its_metadata(self):
        for seed in range(30):
            with self.subTest(seed=seed), tempfile.TemporaryDirectory(prefix="dfc-sortref-") as d:
                shards = make_dataset.make_dataset(seed, os.path.join(d, "in"))
                inputs = [open_bytes(os.path.join(d, "in", name)) for name in shards]
                spec = spec_of(output_shard_size="64K",
                               algorithm={"kind": "shuffle", "seed": str(seed)})
                outputs = dict(sortref.sort_dataset(spec, os.path.join(d, "in")))
                self.assertEqual(fact_bag(inputs), fact_bag(outputs.values()))


def open_bytes(path):
    with open(path, "rb") as f:
        return f.read()


if __name__ == "__main__":
    unittest.main()
