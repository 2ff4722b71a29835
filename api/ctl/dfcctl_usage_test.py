#!/usr/bin/env python3
"""dfcctl du and df: sums of names, and how full the disks are.

DFC_BUILD names the build directory.  Python's standard library only."""
import json
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
from dfcctl_case import Case  # noqa: E402

NOT_ANSWERED = {"do": "status", "status": 503, "code": "node_unreachable"}


class Du(Case):
    def setUp(self):
        super().setUp()
        self.mock.create("b", {"a": b"1", "x/1": b"22", "x/y/2": b"333", "x-/3": b"4444",
                               "z/4": b""})

    def rows(self, *words, **options):
        doc = self.json("du", *words, **options)
        self.assertEqual(sorted(doc), ["bytes", "entries", "incomplete", "objects"])
        return [(e["name"], e["objects"], e["bytes"]) for e in doc["entries"]]

    def test_totals(self):
        self.assertEqual(self.text("du", "b"), "OBJECTS     SIZE        NAME\n"
                                               "5           10 B        b\n")
        self.assertEqual(self.text("du", "dfc://b/x/", "-H", "--units", "raw"),
                         "2           5           b/x/\n")
        self.assertEqual(self.rows("b/x"), [("b/x", 3, 9)])
        self.assertEqual(self.rows("b/*[0-9]"), [("b/*[0-9]", 4, 9)])

    def test_folders(self):
        self.assertEqual(self.rows("b", "--depth", "1"),
                         [("b/x-/", 1, 4), ("b/x/", 2, 5), ("b/z/", 1, 0), ("b", 5, 10)])
        self.assertEqual(self.rows("b/x", "--depth", "2"),
                         [("b/x-/", 1, 4), ("b/x/y/", 1, 3), ("b/x/", 2, 5), ("b/x", 3, 9)])
        self.assertEqual(self.rows("b/x/", "--depth", "99"), [("b/x/y/", 1, 3), ("b/x/", 2, 5)])
        self.mock.page_limit = 1
        self.assertEqual(self.rows("b/x/*", "--depth", "1"), [("b/x/y/", 1, 3), ("b/x/*", 2, 5)])

    def test_all_buckets(self):
        self.mock.create("c", {"q/1": b"12345"})
        self.mock.create("empty")
        self.assertEqual(self.rows(), [("b", 5, 10), ("c", 1, 5), ("empty", 0, 0)])
        doc = self.json("du")
        self.assertEqual((doc["objects"], doc["bytes"], doc["incomplete"]), (6, 15, False))
        self.assertEqual(self.text("du", "-H").splitlines()[-1].split(), ["6", "15", "B", "(all)"])
        self.mock.plan(dict(NOT_ANSWERED, path="/v1/objects/c", times=9))
        self.assertEqual(self.rows("--retries", "0", code=6), [("b", 5, 10), ("empty", 0, 0)])
        self.assertIn("list 'c'", json.loads(self.err)["error"]["message"])

    def test_nothing_there(self):
        self.run_ctl("du", "none", code=3)
        for word in ("b/none/", "b/none*"):
            self.assertEqual(self.text("du", word, code=4), "")
            self.assertIn("'%s' (--allow-empty accepts that)" % word[2:], self.err)
            self.assertEqual(self.rows(word, "--allow-empty"), [(word, 0, 0)])
        self.mock.create("empty")
        self.assertEqual(self.rows("empty"), [("empty", 0, 0)])
        self.run_ctl("du", "/x", code=2)

    def test_partial_lists(self):
        self.assertTrue(self.json("du", "b", "--partial")["incomplete"])
        self.run_ctl("du", "b", "--partial")
        self.assertIn("the sums are incomplete", self.err)

    def test_no_sum_of_a_list_that_fails(self):
        self.mock.page_limit = 3
        self.mock.plan({"method": "GET", "path": "token=", "do": "status", "status": 500})
        out = self.text("du", "b", "--depth", "1", code=1)
        self.assertNotIn("b/z", out)
        self.assertNotIn(" b\n", out)


class Df(Case):
    def setUp(self):
        super().setUp()
        disk = {"total_bytes": 4 << 30, "available_bytes": 1 << 30}
        self.mock.shown = {
            "mountpaths": {"mountpaths": [
                dict(disk, path="/d1", state="enabled"),
                {"path": "/d2", "state": "disabled"}]},
            "stats": disk}

    def test_table(self):
        lines = [line.split() for line in self.text("df").splitlines()]
        self.assertEqual(lines[0], ["NODE", "PATH", "STATE", "SIZE", "USED", "AVAILABLE", "USE%"])
        self.assertEqual(lines[1], "t1 /d1 enabled 4 GiB 3 GiB 1 GiB 75%".split())
        self.assertEqual(lines[2], "t1 /d2 disabled - - - -".split())
        self.assertEqual(lines[3], "t1 (all) - 4 GiB 3 GiB 1 GiB 75%".split())
        self.assertEqual(lines[-1], "(all) (all) - 8 GiB 6 GiB 2 GiB 75%".split())

    def test_json(self):
        doc = self.json("df")
        room = {"total_bytes": 4 << 30, "used_bytes": 3 << 30, "available_bytes": 1 << 30}
        self.assertEqual([n["id"] for n in doc["nodes"]], ["t1", "t2"])
        self.assertEqual(doc["nodes"][0], dict(room, id="t1", mountpaths=[
            dict(room, path="/d1", state="enabled"), {"path": "/d2", "state": "disabled"}]))
        self.assertEqual(doc["all"], {k: 2 * v for k, v in room.items()})
        self.assertEqual(doc["missing"], [])

    def test_a_target_that_does_not_answer(self):
        self.mock.plan(dict(NOT_ANSWERED, at="target", path="what=stats"))
        doc = self.json("df", "--retries", "0", code=6)
        self.assertEqual(([n["id"] for n in doc["nodes"]], doc["missing"]), (["t2"], ["t1"]))
        self.assertEqual(doc["all"]["used_bytes"], 3 << 30)
        self.mock.plan(dict(NOT_ANSWERED, at="target", path="what=mountpaths"))
        self.run_ctl("df", "--retries", "0", code=6)
        self.assertIn("target 't1' does not report its disks", self.err)


if __name__ == "__main__":
    unittest.main()
