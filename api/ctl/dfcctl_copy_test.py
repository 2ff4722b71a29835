#!/usr/bin/env python3
"""dfcctl cp to another key: one object, everything below a prefix, and what is refused.

DFC_BUILD names the build directory.  Python's standard library only."""
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
from dfcctl_case import Case, pattern  # noqa: E402

MIB = 1 << 20


class Copy(Case):
    def setUp(self):
        super().setUp()
        self.mock.create("b", {"d/k": b"data"})
        self.mock.create("c")

    def test_one_object(self):
        for size in (0, 1, 4 * MIB - 1, 4 * MIB, 9 * MIB + 1):
            data = pattern(size, size)
            self.write("f", data)
            self.run_ctl("put", "f", "b/from", "-m", "step=7", "--content-type", "text/x")
            doc = self.json("cp", "b/from", "c/x/to")
            self.assertEqual(doc, {"bucket": "c", "name": "x/to", "size": size})
            self.assertEqual(self.mock.objects("c"), {"x/to": data})
        copy = self.mock.buckets["c"][1]["x/to"]
        self.assertEqual((copy.content_type, {k.lower(): v for k, v in copy.meta.items()}),
                         ("text/x", {"step": "7"}))

    def test_names(self):
        self.run_ctl("cp", "b/d/k", "b/k2")
        self.run_ctl("cp", "b/d/k", "dfc://c/x/")
        self.mock.create("c", {"x/k": b"old", "a*": b"star"})
        self.run_ctl("cp", "b/d/k", "c/x/k")
        self.run_ctl("cp", "c/a\\*", "c/plain")
        self.assertEqual(self.mock.objects("b"), {"d/k": b"data", "k2": b"data"})
        self.assertEqual(self.mock.objects("c"), {"x/k": b"data", "a*": b"star", "plain": b"star"})

    def test_a_file_is_no_source(self):
        self.write("file", b"1")
        for to in ("b/k", "b"):
            self.run_ctl("cp", "file", to, code=2)
            self.assertIn("'put' stores files", self.err)

    def test_a_plog(self):
        head = pattern(300, 1)
        self.write("f", head)
        self.run_ctl("put", "f", "b/p/head", "--content-type", "application/vnd.dfc.plog+json")
        for words in (("b/p/head", "b/p/copy"), ("-r", "b/p", "c/p")):
            self.run_ctl("cp", *words, code=2)
            self.assertIn("dfcctl plog cp", self.err)
        self.assertEqual(self.mock.objects("b"), {"d/k": b"data", "p/head": head})
        self.assertEqual(self.mock.objects("c"), {})

    def test_onto_itself(self):
        for to in ("b/d/k", "b/d/", "dfc://b/d/k"):
            self.run_ctl("cp", "b/d/k", to, code=2)
            self.assertIn("onto itself", self.err)
        for words in (("b/d", "b/d"), ("b/d/", "b/d/e"), ("b/d/e", "b/d"), ("b", "b/x"),
                      ("b/x", "b/")):
            self.run_ctl("cp", "-r", *words, code=2)
            self.assertIn("names in common", self.err)
        self.run_ctl("cp", "-r", "b/d", "b/dd")
        self.assertEqual(self.mock.objects("b"), {"d/k": b"data", "dd/k": b"data"})

    def test_below_a_prefix(self):
        want = {"%03d/é %d" % (i % 5, i): pattern(i * 100, i) for i in range(60)}
        self.mock.create("b", {"d/" + k: v for k, v in want.items()} | {"dd": b"not", "d": b"not"})
        self.mock.page_limit = 7
        doc = self.json("cp", "-r", "b/d", "c/new", "-j", "5")
        self.assertEqual((doc["done"], doc["bytes"], doc["failed"]),
                         (60, sum(map(len, want.values())), []))
        self.assertEqual(self.mock.objects("c"), {"new/" + k: v for k, v in want.items()})
        self.mock.create("c")
        self.run_ctl("cp", "-r", "b", "c")
        self.assertEqual(self.mock.objects("c"), self.mock.objects("b"))

    def test_refusals(self):
        self.run_ctl("cp", "b/none", "c/x", code=3)
        self.run_ctl("cp", "-r", "b/none", "c/x", code=4)
        self.run_ctl("cp", "-r", "b/none", "c/x", "--allow-empty")
        self.run_ctl("cp", "b/d/k", "nobucket/x", code=3)
        self.run_ctl("cp", "b/d/*", "c/x", code=2)
        self.assertIn("is a pattern", self.err)
        self.run_ctl("cp", "b", "c/x", code=2)
        self.run_ctl("cp", "b/d/k", "c/x", "--prepend", "p", code=2)
        self.assertIn("--prepend is of the job", self.err)
        self.assertEqual(self.mock.objects("c"), {})

    def test_damage_and_change(self):
        data = pattern(9 * MIB)
        self.mock.create("b", {"d/k": data})
        self.mock.plan({"at": "target", "method": "GET", "do": "corrupt"})
        self.assertEqual(self.json_error("cp", "b/d/k", "c/x", code=1)["code"],
                         "checksum_mismatch")
        self.mock.plan({"at": "target", "method": "GET", "do": "cut", "bytes": 4 * MIB,
                        "change": "new"})
        self.assertEqual(self.json_error("cp", "b/d/k", "c/x", code=1)["code"],
                         "precondition_failed")
        self.assertEqual(self.mock.objects("c"), {})

    def test_repeats_what_broke_off(self):
        data = pattern(9 * MIB)
        self.mock.create("b", {"d/k": data})
        self.mock.plan({"at": "target", "method": "GET", "do": "cut", "bytes": 100},
                       {"at": "target", "method": "PUT", "do": "drop"})
        self.run_ctl("cp", "b/d/k", "c/x")
        self.assertEqual(self.mock.objects("c"), {"x": data})


if __name__ == "__main__":
    unittest.main()
