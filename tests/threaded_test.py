#!/usr/bin/env python3
"""Which tests are left out of the build with the thread sanitizer."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from threaded import STARTS, chosen, imports  # noqa: E402

IMPORTS = {
    "b/queue_test": "                 U pthread_create@GLIBC_2.34\n                 U free\n",
    "b/loop_test": "                 U uv_run\n",
    "b/table_test": "                 U pthread_mutex_lock@GLIBC_2.4\n                 U malloc\n",
}


def a_test(name, *cmd):
    return {"name": name, "cmd": list(cmd)}


class Threaded(unittest.TestCase):
    def test_programs_without_threads_are_left_out(self):
        tests = [a_test(p[2:-5], p) for p in IMPORTS]
        self.assertEqual(chosen(tests, IMPORTS.get), {"queue", "loop"})

    def test_scripts_stay(self):
        tests = [a_test("objects", "/usr/bin/python3", "objects.py"),
                 a_test("vectors", "/x/hrwref.py")]
        self.assertEqual(chosen(tests, None), {"objects", "vectors"})

    def test_a_name_that_two_have_stays_if_one_has_threads(self):
        tests = [a_test("list", "b/table_test"), a_test("list", "b/queue_test")]
        self.assertEqual(chosen(tests, IMPORTS.get), {"list"})

    def test_imports_of_a_program(self):
        self.assertIsNone(STARTS.search(imports("/bin/true")))


if __name__ == "__main__":
    unittest.main()
