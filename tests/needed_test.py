#!/usr/bin/env python3
"""Which files a build with sanitizers makes."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from needed import needed  # noqa: E402

TARGETS = [{"id": i, "filename": [f"/b/{i}"]} for i in ("daemon", "queue_test", "bench")]
TESTS = [
    {"name": "objects", "suite": ["dfc:blackbox", "dfc:blackbox-thread"], "depends": ["daemon"]},
    {"name": "list", "suite": ["dfc:blackbox"], "depends": ["daemon", "bench"]},
    {"name": "queue", "suite": ["dfc:unit"], "depends": ["queue_test"]},
]


class Needed(unittest.TestCase):
    def of(self, suites, names=()):
        return needed(TESTS, TARGETS, set(suites), set(names))

    def test_what_the_tests_of_a_suite_need(self):
        self.assertEqual(self.of(["blackbox-thread"]), ["/b/daemon"])
        self.assertEqual(self.of(["unit", "blackbox-thread"]), ["/b/daemon", "/b/queue_test"])

    def test_names_choose_among_them(self):
        self.assertEqual(self.of(["blackbox", "unit"], ["queue"]), ["/b/queue_test"])

    def test_what_matches_nothing_needs_nothing(self):
        self.assertEqual(self.of(["none"]), [])
        self.assertEqual(self.of(["unit"], ["objects"]), [])


if __name__ == "__main__":
    unittest.main()
