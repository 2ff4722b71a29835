#!/usr/bin/env python3
"""Each kind of secret is found where it is, and nothing else is."""

import json
import os
import sys
import tempfile
import unittest
from types import SimpleNamespace

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from leaks import leaks  # noqa: E402

KEY, SECRET = "ab" * 32, "s" * 40
TOKEN = "dfc1." + "A" * 90 + "." + "B" * 43


class Leaks(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.TemporaryDirectory()
        self.write("cluster.key", KEY + "\n")
        self.write("p1/root.json", json.dumps({"access_key": "DFC", "secret_key": SECRET}))
        self.write("logs/p1.log", "began\n")

    def tearDown(self):
        self.top.cleanup()

    def path(self, name):
        return os.path.join(self.top.name, name)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def found(self):
        return leaks(SimpleNamespace(dir=self.top.name, key_file=self.path("cluster.key"),
                                     nodes=["p1"], node_dir=self.path))

    def test_a_clean_cluster(self):
        self.write("p1/state.json", '{"url": "http://h/o?dfca=", "format": "dfc1."}')
        self.write("p1/mp1/o", TOKEN)
        self.assertEqual(self.found(), [])

    def test_each_secret(self):
        proof = "?dfca=" + "C" * 80
        for text, what in ((KEY, "the cluster key"), (SECRET, "root's secret"), (TOKEN, "a token"),
                           (proof, "a proof in a URL"), (proof.replace("dfca", "dfcu"),
                                                         "a proof in a URL")):
            for name in ("logs/p1.log", "p1/state.json", "p1/jobs/j-1.json"):
                self.write(name, f"before {text} after")
                self.assertEqual(self.found(), [f"{self.path(name)} has {what}"])
                self.write(name, "")


if __name__ == "__main__":
    unittest.main()
