#!/usr/bin/env python3
"""dfcctl put of large files: in parts, and on where an earlier run broke off.

DFC_BUILD names the build directory.  Python's standard library only."""
import json
import os
import sys
import time
import unittest
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
from dfcctl_case import Case, SLOW, pattern  # noqa: E402

MIB = 1 << 20
PART = 5 * MIB
SIZE = 4 * PART + 77
PUT = ("put", "--part-size", "5MiB")


class Upload(Case):
    def setUp(self):
        super().setUp()
        self.mock.create("b")
        self.data = pattern(SIZE)
        self.write("f", self.data)

    def parts_sent(self):
        """Numbers of the parts that targets have taken, in order."""
        sent = [urllib.parse.parse_qs(urllib.parse.urlsplit(r["path"]).query)
                for r in self.mock.requests(at="target", method="PUT")
                if r["path"].startswith("/v1/uploads/")]
        return sorted(int(q["part"][0]) for q in sent)

    def states(self):
        directory = self.path("cache/dfc/uploads")
        return os.listdir(directory) if os.path.isdir(directory) else []

    def refuse(self, method, path, status, code, times=1):
        self.mock.plan({"method": method, "path": path, "do": "status", "status": status,
                        "code": code, "times": times})

    def broken(self, *words, part=3):
        """A put whose part fails for good; the others may be sent or not."""
        self.mock.plan({"at": "target", "method": "PUT", "path": "part=%d&" % part, "do": "drop",
                        "times": 99})
        self.run_ctl(*PUT, *words, "f", "b/k", "--retries", "0", code=5)
        self.mock.steps.clear()
        have = sorted(next(iter(self.mock.uploads.open.values()))["parts"])
        self.mock.log.clear()
        return have

    def test_in_parts(self):
        doc = self.json(*PUT, "f", "b/k", "-m", "step=7", "--content-type", "text/x", "-j", "3")
        self.assertEqual((doc["size"], doc["resumed"]), (SIZE, 0))
        self.assertEqual(self.mock.objects("b"), {"k": self.data})
        self.assertEqual(self.parts_sent(), [1, 2, 3, 4, 5])
        stored = self.mock.buckets["b"][1]["k"]
        self.assertEqual((stored.content_type, {k.lower(): v for k, v in stored.meta.items()}),
                         ("text/x", {"step": "7"}))
        self.assertEqual((self.states(), self.mock.uploads.open), ([], {}))

    def test_sizes(self):
        for size, parts in ((PART, []), (PART + 1, [1, 2]), (2 * PART, [1, 2])):
            self.mock.log.clear()
            data = pattern(size, size)
            self.write("g", data)
            self.run_ctl(*PUT, "g", "b/g")
            self.assertEqual(self.mock.objects("b")["g"], data)
            self.assertEqual(self.parts_sent(), parts)
        self.run_ctl("put", "f", "b/k", "--part-size", "0")
        self.run_ctl("put", "f", "b/k")
        self.assertEqual(self.mock.uploads.begun, 2)
        for wrong in ("1", "4MiB", "6GiB"):
            self.run_ctl("put", "f", "b/k", "--part-size", wrong, code=2)
            self.run_ctl("sync", ".", "dfc://b", "--part-size", wrong, code=2)

    def test_goes_on(self):
        have = self.broken()
        self.assertNotIn(3, have)
        self.assertEqual(len(self.states()), 1)
        doc = self.json(*PUT, "f", "b/k")
        self.assertEqual(doc["resumed"], sum(PART if n < 5 else 77 for n in have))
        self.assertEqual(self.parts_sent(), sorted({1, 2, 3, 4, 5} - set(have)))
        self.assertEqual(self.mock.objects("b"), {"k": self.data})
        self.assertEqual((self.mock.uploads.begun, self.states()), (1, []))

    def test_killed(self):
        self.mock.plan({"at": "target", "method": "PUT", "path": "part=4&", "do": "stall",
                        "seconds": 600})
        p = self.start(*PUT, "f", "b/k", "-j", "1")
        until = time.monotonic() + 60 * SLOW
        while self.mock.steps:  # until the fourth part has come to its target
            self.assertLess(time.monotonic(), until, "three parts in time")
            time.sleep(0.01)
        p.kill()
        p.communicate()
        self.mock.log.clear()
        self.assertIn("sent by an earlier run", self.text(*PUT, "f", "b/k"))
        self.assertEqual(self.parts_sent(), [4, 5])  # bytes that are there are not sent again
        self.assertEqual(self.mock.objects("b"), {"k": self.data})

    def test_what_changed_starts_anew(self):
        for words in ((), ("-m", "a=b"), ("--content-type", "x/y"), ("--part-size", "6MiB")):
            self.broken()
            if not words:
                self.data = pattern(SIZE, 2)
                self.write("f", self.data)
            self.assertEqual(self.json(*PUT, *words, "f", "b/k")["resumed"], 0)
            self.assertEqual(self.mock.objects("b"), {"k": self.data})
            self.assertEqual((self.states(), self.mock.uploads.open), ([], {}))

    def test_parts_of_other_bytes_are_sent(self):
        have = self.broken()
        upload = next(iter(self.mock.uploads.open.values()))
        upload["parts"][have[0]] = pattern(PART, 9)
        self.run_ctl(*PUT, "f", "b/k")
        self.assertEqual(self.parts_sent(), sorted({1, 2, 3, 4, 5} - set(have[1:])))
        self.assertEqual(self.mock.objects("b"), {"k": self.data})

    def test_many_parts_are_listed_in_pages(self):
        have = self.broken(part=5)
        self.mock.page_limit = 2
        self.run_ctl(*PUT, "f", "b/k")
        self.assertEqual(self.parts_sent(), sorted({1, 2, 3, 4, 5} - set(have)))

    def test_an_upload_that_is_gone(self):
        self.broken()
        self.mock.uploads.open.clear()
        self.assertEqual(self.json(*PUT, "f", "b/k")["resumed"], 0)
        self.assertEqual(self.mock.objects("b"), {"k": self.data})
        self.broken()
        for text in (b"", b"{", b"[1]", b'{"upload": ""}'):
            self.write("cache/dfc/uploads/" + self.states()[0], text)
            self.assertEqual(self.json(*PUT, "f", "b/k")["resumed"], 0)
            self.broken()

    def lost_reply(self):
        """The object is stored, and put has not got the reply to its completion."""
        self.mock.plan({"at": "target", "method": "POST", "path": "upload=", "do": "act",
                        "times": 9})
        self.run_ctl(*PUT, "f", "b/k", "--retries", "0", code=5)
        self.mock.steps.clear()
        self.mock.log.clear()
        self.assertEqual((len(self.states()), self.mock.objects("b")), (1, {"k": self.data}))

    def test_a_completion_without_a_reply(self):
        self.lost_reply()
        doc = self.json(*PUT, "f", "b/k")
        self.assertEqual((doc["resumed"], self.parts_sent(), self.states()), (SIZE, [], []))
        self.lost_reply()
        self.mock.create("b", {"k": b"of somebody else"})
        self.assertEqual(self.json(*PUT, "f", "b/k")["resumed"], 0)
        self.assertEqual(self.mock.objects("b"), {"k": self.data})
        self.lost_reply()
        self.mock.uploads.done.clear()
        self.assertEqual(self.json(*PUT, "f", "b/k")["resumed"], 0)

    def test_a_completion_that_takes_long(self):
        self.refuse("POST", "upload=", 503, "not_ready", 2)
        self.json(*PUT, "f", "b/k", "--retries", "0")
        self.assertEqual(self.mock.objects("b"), {"k": self.data})
        self.lost_reply()
        self.refuse("GET", "upload=", 503, "not_ready")
        self.assertEqual(self.json(*PUT, "f", "b/k", "--retries", "0")["resumed"], SIZE)

    def test_its_target_is_away(self):
        self.broken()
        self.refuse("GET", "upload=", 503, "node_unreachable")
        self.assertEqual(self.json(*PUT, "f", "b/k", "--retries", "0")["resumed"], 0)
        self.assertEqual(self.mock.objects("b"), {"k": self.data})

    def test_no_right_to_read(self):
        self.refuse("HEAD", "/", 403, "access_denied", 9)
        doc = self.json(*PUT, "f", "b/k", "--if-absent")
        self.assertEqual((doc["size"], doc["checksum"]["value"]), (SIZE, ""))
        self.assertEqual(doc["etag"], self.mock.buckets["b"][1]["k"].etag)

    def test_failures_that_stay(self):
        self.mock.create("b", {"k": b"old"})
        for flags in (("--if-absent",), ("--if-match", '"x"')):
            self.run_ctl(*PUT, "f", "b/k", *flags, code=1)
            self.assertEqual((self.states(), self.parts_sent(), self.mock.uploads.open), ([], [], {}))
        self.run_ctl(*PUT, "f", "nobucket/k", code=3)
        self.assertEqual(self.states(), [])
        self.refuse("POST", "upload=", 412, "precondition_failed")
        self.run_ctl(*PUT, "f", "b/k", "--if-match", self.mock.buckets["b"][1]["k"].etag, code=1)
        self.assertEqual((self.states(), self.mock.uploads.open), ([], {}))

    def test_a_full_disk(self):
        self.refuse("PUT", "part=3&", 507, "no_space")
        self.run_ctl(*PUT, "f", "b/k", code=1)
        self.assertIn("no_space", self.err)
        self.assertGreater(self.json(*PUT, "f", "b/k")["resumed"], 0)

    def test_a_begin_that_is_refused(self):
        """The metadata leave no room for the tag: a whole put may have it."""
        self.refuse("POST", "/v1/uploads/", 400, "invalid_argument")
        self.json(*PUT, "f", "b/k")
        self.assertEqual((self.mock.objects("b"), self.parts_sent()), ({"k": self.data}, []))

    def test_a_release_without_uploads(self):
        self.mock.uploads = None
        self.assertEqual(self.json(*PUT, "f", "b/k")["resumed"], 0)
        self.assertEqual(self.mock.objects("b"), {"k": self.data})
        self.assertEqual(self.states(), [])

    def test_several_programs_at_once(self):
        running = [self.start(*PUT, "f", "b/k") for _ in range(3)]
        for p in running:
            _, err = p.communicate(timeout=60 * SLOW)
            self.assertEqual((p.returncode, err), (0, b""))
        self.assertEqual(self.mock.objects("b"), {"k": self.data})
        self.assertEqual((self.states(), self.mock.uploads.open), ([], {}))

    def test_directories(self):
        self.write("d/large", self.data)
        self.write("d/small", b"1")
        doc = self.json(*PUT, "d", "b/x")
        self.assertEqual((doc["done"], doc["bytes"]), (2, SIZE + 1))
        self.assertEqual(self.mock.objects("b"), {"x/large": self.data, "x/small": b"1"})
        self.assertEqual(self.parts_sent(), [1, 2, 3, 4, 5])

    def test_ls_and_abort(self):
        self.assertEqual(self.json("upload", "ls", "b"), {"uploads": []})
        self.broken()
        self.mock.uploads.begin("b", "k", {})
        self.mock.uploads.begin("b", "k2", {})
        rows = self.json("upload", "ls", "b")["uploads"]
        self.assertEqual([r["object"] for r in rows], ["k", "k", "k2"])
        self.mock.page_limit = 1
        self.assertEqual(self.json("upload", "ls", "dfc://b/k")["uploads"], rows)
        self.assertIn(rows[2]["upload"] + "  k2\n", self.text("upload", "ls", "b/k2"))
        self.run_ctl("upload", "ls", "b/x", code=4)
        self.assertEqual(self.json("upload", "ls", "b/x", "--allow-empty"), {"uploads": []})
        self.run_ctl("upload", "ls", "nobucket", code=3)
        self.run_ctl("upload", "abort", "b/k", rows[2]["upload"], code=3)
        self.assertEqual(self.text("upload", "abort", "b/k"),
                         "aborted %s\naborted %s\n" % (rows[0]["upload"], rows[1]["upload"]))
        self.assertEqual(self.json("upload", "abort", "b/k2", rows[2]["upload"]),
                         {"aborted": [rows[2]["upload"]]})
        self.run_ctl("upload", "abort", "b/k2", code=4)
        for wrong in (("ls",), ("abort", "b"), ("abort", "b/k", "1", "2")):
            self.run_ctl("upload", *wrong, code=2)

    def test_no_home(self):
        env = {k: v for k, v in self.environment().items() if k not in ("XDG_CACHE_HOME", "HOME")}
        out = self.run_ctl(*PUT, "f", "b/k", "-o", "json", env=env)
        self.assertEqual(json.loads(out)["size"], SIZE)


if __name__ == "__main__":
    unittest.main()
