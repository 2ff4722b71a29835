#!/usr/bin/env python3
"""The judge of the suites, and how their output is read."""

import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "blackbox"))

import pjdfstest  # noqa: E402
import xfstests  # noqa: E402
from lib import Failed  # noqa: E402
from suite import judge, lines_of, surprises, unknown  # noqa: E402

TAP = f"""1..5
ok 1
not ok 2 - tried 'unlink a', expected 0, got ENOENT
not ok 3 {pjdfstest.EXPECTED} not on Linux
ok 4
"""
REPORT = """<testsuite><testcase name="generic/001" time="1"></testcase>
<testcase name="generic/002" time="1"><failure message="bad" type="TestFail" /></testcase>
<testcase name="generic/003" time="1"><skipped message="no" /></testcase></testsuite>"""


class Judge(unittest.TestCase):
    def test_each_test_ends_as_the_list_says(self):
        results = {"a:1": True, "a:2": False, "b:1": False}
        self.assertEqual(list(surprises(results, ["a:2", "b:*"])), [])
        self.assertEqual(list(surprises(results, ["a:*"])),
                         ["a:1 is excluded, and passes", "b:1 fails"])

    def test_a_line_fits_a_test(self):
        self.assertEqual(list(unknown({"a:1": True}, ["a:*", "b:1"])), ["b:1: no such test"])

    def test_no_result_is_a_failure(self):
        self.assertRaises(Failed, judge, {}, [], True)

    def test_the_lists_of_the_tree(self):
        for name in ("pjdfstest.excluded", "xfstests.excluded"):
            lines = lines_of(name)
            self.assertEqual(len(lines), len(set(lines)))


class Output(unittest.TestCase):
    def test_of_pjdfstest(self):
        self.assertEqual(pjdfstest.results_of("x/00.t", TAP),
                         {"x/00.t:1": True, "x/00.t:2": False, "x/00.t:3": True, "x/00.t:4": True,
                          "x/00.t:5": False})
        self.assertEqual(pjdfstest.results_of("x/00.t", ""), {"x/00.t:1": False})

    def test_of_xfstests(self):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as report:
            report.write(REPORT)
            report.flush()
            self.assertEqual(xfstests.results_of(report.name),
                             ({"generic/001": True, "generic/002": False}, {"generic/003"}))


if __name__ == "__main__":
    unittest.main()
