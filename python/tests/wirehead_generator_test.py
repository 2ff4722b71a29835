#!/usr/bin/python3
"""The generator of the package wirehead: each sample is stored once, whatever the cluster replies."""

import io
import os
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from unittest import mock

import frame
import dfc.ring
from mock_rings import RingCluster

sys.path.insert(0, os.path.join(frame.ROOT, "python", "wirehead", "src"))
from wirehead import WireheadGenerator, generator  # noqa: E402 pylint: disable=C0413


class Pushes(unittest.TestCase):
    def setUp(self):
        self.mock = RingCluster()
        self.mock.__enter__()
        self.addCleanup(self.mock.__exit__, None, None, None)
        self.made = self.mock.ring("r", 10)
        self.mock.buckets["r"][0]["ring"] = {"cap": 10}
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "config.yaml")
            with open(config, "w", encoding="utf-8") as f:
                f.write(f"ENDPOINT: {self.mock.endpoint}\nDBNAME: r\nSWAP_CAP: 10\nSAMPLE: [data]\n")
            with redirect_stdout(io.StringIO()):
                self.generator = WireheadGenerator(iter([]), config)
        self.generator.ring._client.close()
        client = dfc.Client(self.mock.endpoint, profile="", attempts=1)
        self.addCleanup(client.close)
        self.generator.ring = dfc.ring.Ring(client, "r")
        patched = mock.patch.object(generator, "RETRY_SECONDS", 0.0)
        patched.start()
        self.addCleanup(patched.stop)

    def push(self):
        """One sample: the numbers of its tries, and what was said."""
        seen = len(self.pushes())
        with redirect_stdout(io.StringIO()) as out:
            self.generator.push([{"kind": "data", "chunk": b"x"}])
        return [r["path"].split("&dfcb")[0] for r in self.pushes()[seen:]], out.getvalue()

    def pushes(self):
        return self.mock.requests(at="target", method="POST")

    def stored(self):
        return sum(map(len, self.made.lanes.values()))

    def test_in_doubt_the_number_stays(self):
        """The reply is lost, then others refuse: the sample is stored once."""
        self.mock.plan({"at": "target", "method": "POST", "do": "act"},
                       {"at": "target", "method": "POST", "do": "status", "status": 503},
                       {"at": "target", "method": "POST", "do": "act"})
        paths, said = self.push()
        self.assertEqual((len(paths), len(set(paths)), self.stored()), (4, 1, 1))
        self.assertGreaterEqual(said.count("Generator error"), 2)
        paths, said = self.push()
        self.assertEqual((len(paths), said, self.stored()), (1, "", 2))

    def test_an_answer_that_breaks_off(self):
        whole = dfc.ring.read_json

        def broken(reply):
            document = whole(reply)
            if len(self.pushes()) == 1:
                raise dfc.Unreachable("the reply broke off")
            return document

        with mock.patch.object(dfc.ring, "read_json", broken):
            paths, _ = self.push()
        self.assertEqual((len(paths), len(set(paths)), self.stored()), (2, 1, 1))

    def test_what_is_refused_goes_to_another_target(self):
        self.mock.plan({"at": "target", "method": "POST", "do": "status", "status": 503})
        paths, said = self.push()
        self.assertEqual((len(set(paths)), self.stored()), (2, 1))
        self.assertEqual(said.count("Generator error"), 1)

    def test_a_full_disk(self):
        """It waits for room longer than a push does."""
        self.mock.plan({"at": "target", "method": "POST", "do": "status", "status": 507,
                        "code": "no_space"})
        patient = self.generator.ring.push

        def push(sample, **options):
            return patient(sample, full_timeout=0.0, **options)

        with mock.patch.object(self.generator.ring, "push", push):
            paths, said = self.push()
        self.assertEqual((len(set(paths)), self.stored()), (2, 1))
        self.assertEqual(said.count("Generator error"), 1)
        self.mock.plan({"at": "target", "method": "POST", "do": "status", "status": 400,
                        "code": "bad_sample"})
        self.assertRaises(dfc.Invalid, self.push)


if __name__ == "__main__":
    unittest.main()
