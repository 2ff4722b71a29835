#!/usr/bin/env python3
"""The judge of run.py: lists that are wrong, and tests that end otherwise."""

import sys
import unittest

sys.dont_write_bytecode = True

from run import Lists, lines_of  # noqa: E402

NAMES = ["f.py::list_one", "f.py::list_two", "f.py::acl_one"]
LISTS = Lists(["f.py::list_one", "f.py::list_two"], ["f.py::acl_*"])


class Judge(unittest.TestCase):
    def test_lists_that_are_right(self):
        self.assertEqual(list(LISTS.mistakes(NAMES)), [])

    def test_a_test_is_in_one_list(self):
        self.assertEqual(list(LISTS.mistakes(NAMES + ["f.py::new"])),
                         ["f.py::new is in 0 lists, and belongs in one"])
        self.assertEqual(list(Lists(NAMES, ["f.py::acl_*"]).mistakes(NAMES)),
                         ["f.py::acl_one is in 2 lists, and belongs in one"])

    def test_a_line_fits_a_test(self):
        self.assertEqual(list(Lists([*NAMES, "f.py::gone"], ["g.py::*"]).mistakes(NAMES)),
                         ["f.py::gone: no such test", "g.py::*: fits no test"])

    def test_brackets_of_a_name_are_plain(self):
        lists = Lists(["f.py::copy[a-1]"], ["f.py::copy[b-*", "f.py::list[1]"])
        self.assertEqual(list(lists.mistakes(["f.py::copy[a-1]", "f.py::copy[b-1]",
                                              "f.py::list[1]"])), [])

    def test_each_test_ends_as_its_list_says(self):
        self.assertEqual(list(LISTS.surprises({"f.py::list_one": True, "f.py::acl_one": False})), [])
        self.assertEqual(list(LISTS.surprises({"f.py::list_one": False, "f.py::acl_one": True})),
                         ["f.py::acl_one is in 'refused', and passes",
                          "f.py::list_one is in 'allow', and fails"])


class Files(unittest.TestCase):
    def test_the_lists_of_the_tree(self):
        allow, refused = lines_of("allow"), lines_of("refused")
        self.assertEqual(list(Lists(allow, refused).mistakes(allow)),
                         [f"{line}: fits no test" for line in refused])
        self.assertEqual(len(allow), len(set(allow)))


if __name__ == "__main__":
    unittest.main()
