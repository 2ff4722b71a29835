#!/usr/bin/python3
"""The logger of the package wirehead: swaps and snapshots of a ring, and the program."""

import io
import json
import os
import sys
import tempfile
import threading
import unittest
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

import frame
import dfc
from dfc.ring import Ring
from mock_rings import RingCluster

sys.path.insert(0, os.path.join(frame.ROOT, "python", "wirehead", "src"))
from wirehead import SwapLog, WireheadLogger, log  # noqa: E402 pylint: disable=C0413

CAP = 10


def head(*generations):
    return {"generations": [{"generation": number, "sealed_ms": ms} for number, ms in generations]}


class Out(io.StringIO):
    """Ends a loop with Ctrl-C after so many texts."""

    def __init__(self, texts):
        super().__init__()
        self.left = texts

    def flush(self):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


class SwapsTest(unittest.TestCase):
    def test_a_head_beside_what_is_known(self):
        first = log.swaps_of(head((3, 1000), (4, 3500)), [], "r")
        self.assertEqual(first, [SwapLog(1.0, None, None, 3, "r"), SwapLog(3.5, 1.0, 2.5, 4, "r")])
        self.assertEqual(log.swaps_of(head((3, 1000), (4, 3500)), first, "r"), [])
        self.assertEqual(log.swaps_of(head((4, 3500), (5, 4000)), first, "r"),
                         [SwapLog(4.0, 3.5, 0.5, 5, "r")])
        # Of generation 5 nothing is known.
        self.assertEqual(log.swaps_of(head((6, 9000)), first, "r"), [SwapLog(9.0, None, None, 6, "r")])
        self.assertEqual(log.swaps_of(head(), first, "r"), [])
        self.assertEqual(json.loads(first[1].to_jsonl()), {
            "swap_timestamp": 3.5, "prev_swap_timestamp": 1.0, "swap_duration": 2.5, "swap_count": 4,
            "db_name": "r"})


class LoggerTest(unittest.TestCase):
    def setUp(self):
        self.mock = RingCluster()
        self.mock.__enter__()
        self.addCleanup(self.mock.__exit__, None, None, None)
        self.made = self.mock.ring("r", CAP, keep=3)
        self.ring = Ring(dfc.Client(self.mock.endpoint, profile=""), "r")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.config = os.path.join(self.folder.name, "config.yaml")
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(f"ENDPOINT: {self.mock.endpoint}\nDBNAME: r\nSWAP_CAP: {CAP}\nSAMPLE: [data]\n")

    def push(self, count, at_ms=0):
        self.made.clock_ms = at_ms
        for i in range(count):
            self.ring.push({"data": b"%d" % i})

    def ran(self, *argv, out=None):
        out, said = out or io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(said):
            status = log.main([self.config, *argv])
        return status, out.getvalue(), said.getvalue()

    def test_history(self):
        self.assertEqual(self.ran(), (0, "No swaps recorded yet.\n", ""))
        self.push(CAP, 1000)
        self.push(CAP + 3, 4000)
        status, out, _ = self.ran()
        rows = [json.loads(line) for line in out.splitlines()]
        self.assertEqual((status, [r["swap_count"] for r in rows]), (0, [1, 2]))
        self.assertEqual([r["swap_duration"] for r in rows], [None, 3.0])
        logger = WireheadLogger(self.config)
        logger.history()
        self.push(5 * CAP, 5000)
        self.assertEqual([s.swap_count for s in logger.history()], [1, 2, 4, 5, 6, 7])

    def test_snapshots(self):
        logger = WireheadLogger(self.config, 0.5)
        empty = logger.snapshot()
        self.assertEqual((empty.swap_count, empty.samples_completed, empty.swap_timestamp,
                          empty.samples_per_s, empty.recent_swaps), (0, 0, None, 0, []))
        self.push(CAP, 1000)
        self.push(CAP + 5, 4000)
        with mock.patch("time.time", lambda: empty.timestamp + 5):
            full = logger.snapshot()
        self.assertEqual((full.swap_cap, full.fill_pct, full.write_docs, full.read_docs),
                         (CAP, 50.0, 5, 2 * CAP))
        self.assertEqual((full.samples_per_s, full.swaps_per_s), (5.0, 0.4))
        self.assertEqual((full.swap_duration, full.avg_swap_duration, full.swap_timestamp),
                         (3.0, 3.0, 4.0))
        self.assertEqual(full.time_since_last_swap, full.timestamp - 4.0)
        self.assertEqual(len(json.loads(full.to_jsonl())["recent_swaps"]), 2)
        self.assertIn("5 of 10 (50 %)", log.table(full))
        self.ring.clear()
        self.assertEqual(logger.snapshot().read_docs, 0)

    def test_the_daemon_prints_what_is_new(self):
        self.push(CAP, 1000)
        out = Out(2)
        pusher = threading.Timer(0.0, self.push, (2 * CAP, 7000))
        looks = []

        def sleep(_):
            looks.append(1)
            if len(looks) == 2:
                pusher.start()
                pusher.join()
        with mock.patch("wirehead.log.time.sleep", sleep):
            status, text, _ = self.ran("--daemon", out=out)
        self.assertEqual(status, 130)
        self.assertEqual([json.loads(line)["swap_count"] for line in text.splitlines()], [2, 3])

    def test_the_table(self):
        status, text, _ = self.ran("--tui", "--poll-interval=0.01", out=Out(2))
        self.assertEqual(status, 130)
        self.assertEqual(text.count("0 of 10"), 2)

    def test_what_is_wrong(self):
        self.assertRaises(dfc.Invalid, WireheadLogger, self.config, 0)
        status, _, said = self.ran("--poll-interval=-1")
        self.assertEqual((status, "wirehead: poll_interval" in said), (1, True))
        self.config = "/nonexistent.yaml"
        self.assertEqual(self.ran()[:2], (1, "No valid config specified, exiting\n"))


if __name__ == "__main__":
    unittest.main()
