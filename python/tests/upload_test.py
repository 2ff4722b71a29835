#!/usr/bin/python3
"""Files in parts, at a cluster of Python that misbehaves when it is told to (api/testing)."""

import os
import random
import tempfile
import unittest
from unittest import mock

import frame  # noqa: F401
import dfc
from dfc import _upload
from mocked import MockedTest

PART = 5 << 20
DATA = random.Random(1).randbytes(2 * PART + 70_001)


class UploadTest(MockedTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "file")
        self.write(DATA)

    def write(self, data):
        with open(self.path, "wb") as f:
            f.write(data)

    def put(self, name="o", **options):
        return self.bucket.put_file(name, self.path, part_size=PART, **options)

    def parts_sent(self):
        """Numbers of parts whose bytes a target took."""
        return sorted(int(row["path"].partition("&part=")[2][:1]) for row in self.mock.log
                      if row["method"] == "PUT" and "/uploads/" in row["path"] and row["body"])

    def test_a_small_file_is_one_put(self):
        for size in (0, 1, PART):
            self.write(DATA[:size])
            self.assertEqual(self.put(f"{size}", meta={"k": "v"}).size, size)
            self.assertEqual(self.bucket.get(f"{size}"), DATA[:size])
        self.assertEqual(self.mock.uploads.begun, 0)

    def test_a_large_file_goes_in_parts(self):
        for threads in (1, 4):
            info = self.put("a b/\u00e9", meta={"k": "v"}, content_type="text/x", threads=threads)
            self.assertEqual((info.size, info.meta), (len(DATA), {"k": "v"}))
        self.assertEqual(self.bucket.get("a b/\u00e9"), DATA)
        self.assertEqual(self.bucket.head("a b/\u00e9").meta, {"k": "v"})
        self.assertEqual(self.parts_sent(), [1, 1, 2, 2, 3, 3])
        self.assertFalse(self.mock.uploads.open)

    def test_a_part_that_fails_is_sent_again_alone(self):
        for step in ({"do": "drop"}, {"do": "act"}, {"do": "damage"},
                     {"do": "status", "status": 503}):
            self.mock.log.clear()
            self.mock.plan({"at": "target", "method": "PUT", "path": "/uploads/.*part=2", **step})
            self.put()
            self.assertEqual(self.bucket.get("o"), DATA, step)
            sent = self.parts_sent()
            self.assertEqual((sent.count(1), sent.count(3)), (1, 1), step)

    def test_a_failure_that_is_final_aborts(self):
        self.mock.plan({"at": "target", "method": "PUT", "path": "part=1", "do": "status",
                        "status": 507, "code": "no_space"})
        with self.assertRaises(dfc.Error) as caught:
            self.put(threads=1)
        self.assertEqual(caught.exception.code, "no_space")
        self.assertEqual(self.parts_sent(), [])
        self.mock.plan({"at": "target", "method": "PUT", "path": "part=2", "do": "damage",
                        "times": 3})
        with self.assertRaisesRegex(dfc.Corrupt, "part 2"):
            self.put()
        self.assertFalse(self.mock.uploads.open)
        with self.assertRaises(dfc.NotFound):
            self.bucket.head("o")

    def test_conditions(self):
        self.put(if_absent=True)
        with self.assertRaises(dfc.Precondition):
            self.put(if_absent=True)
        self.assertFalse(self.mock.uploads.open)

    def test_a_target_that_lost_bytes_gets_all_again(self):
        self.mock.plan({"at": "target", "method": "POST", "path": "upload=", "do": "status",
                        "status": 400, "code": "invalid_part"})
        self.put()
        self.assertEqual(self.bucket.get("o"), DATA)
        self.assertEqual(self.parts_sent(), [1, 1, 2, 2, 3, 3])

    def test_a_file_that_becomes_shorter(self):
        with mock.patch("os.pread", lambda *_: b""), self.assertRaisesRegex(dfc.Invalid, "shorter"):
            self.put()
        self.assertFalse(self.mock.uploads.open)

    def test_sizes_of_parts(self):
        self.assertEqual(_upload.part_size(1 << 30, PART), PART)
        size = (PART * _upload.PARTS_MAX) + 1
        self.assertLessEqual(-(-size // _upload.part_size(size, PART)), _upload.PARTS_MAX)
        for wrong in ({"part_size": PART - 1}, {"part_size": PART, "threads": 0}):
            with self.assertRaises(dfc.Invalid):
                self.bucket.put_file("o", self.path, **wrong)


if __name__ == "__main__":
    unittest.main()
