#!/usr/bin/env python3
"""fast.py chooses what belongs to the folders that changed."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from fast import choose  # noqa: E402


def a_test(name, suite, *cmd):
    return {"name": name, "suite": [f"dfc:{suite}"], "cmd": list(cmd)}


TESTS = [a_test("house", "tree", "python3", "/x/tests/house.py"),
         a_test("router", "unit", "/x/build/net/router_test"),
         a_test("smap", "unit", "/x/build/cluster/smap_test"),
         a_test("dfcctl_jobs", "unit", "python3", "/x/api/ctl/dfcctl_jobs_test.py"),
         a_test("sort_differential", "sim", "python3", "/x/tests/reference/sort_differential.py"),
         a_test("rename", "blackbox", "python3", "/x/build/../tests/blackbox/rename.py"),
         a_test("long_sim", "long", "/x/build/net/sim")]


class Fast(unittest.TestCase):
    def test_a_folder_brings_its_tests(self):
        self.assertEqual(choose(TESTS, {"net/http/router.c"}), ["house", "router"])
        self.assertEqual(choose(TESTS, {"api/dfc.c", "sort/task/plan.c"}),
                         ["dfcctl_jobs", "house", "sort_differential"])

    def test_the_tree_is_always_looked_at(self):
        self.assertEqual(choose(TESTS, {"README.md", "docs/README.md"}), ["house"])


if __name__ == "__main__":
    unittest.main()
