#!/usr/bin/env python3
"""Every test of the suite `long` says how long it takes: else ./test.sh --long has no plan."""

import json
import os
import subprocess
import sys
import unittest

import plan


class PlanTest(unittest.TestCase):
    def test_each_long_test_of_the_build_says_how_long_it_takes(self):
        text = subprocess.run(["meson", "introspect", os.environ["DFC_BUILD"], "--tests"],
                              check=True, capture_output=True, text=True).stdout
        rows = plan.rows(json.loads(text))
        self.assertIn("long_sim", dict(rows))
        self.assertTrue(all(minutes > 0 for _, minutes in rows))

    def test_one_that_does_not_is_named(self):
        with self.assertRaisesRegex(SystemExit, "long_x.*DFC_LONG_MINUTES"):
            plan.rows([{"name": "long_x", "suite": ["dfc:long"], "env": {}}])


if __name__ == "__main__":
    sys.exit(unittest.main())
