#!/usr/bin/env python3
"""dfcctl get that is killed, and goes on: what was there is not sent twice.

DFC_BUILD names the build directory.  Python's standard library only."""
import fcntl
import json
import os
import random
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
from dfcctl_case import Case, SLOW, pattern  # noqa: E402

MIB = 1 << 20
SIZE = 6 * MIB


class Resume(Case):
    def setUp(self):
        super().setUp()
        self.data = pattern(SIZE)
        self.mock.create("b", {"d/k": self.data})

    def wait(self, condition):
        until = time.monotonic() + 60 * SLOW
        while not condition():
            self.assertLess(time.monotonic(), until, "in time")
            time.sleep(0.01)

    def parts(self, below="."):
        return [n for n in self.files(below) if ".dfc-" in n]

    def part(self):
        (name,) = [n for n in self.parts() if not n.endswith(".note")]
        return name

    def part_size(self):
        names = [n for n in self.parts() if ".dfc-part-" in n and not n.endswith(".note")]
        try:
            return os.path.getsize(self.path(names[0])) if names else 0
        except FileNotFoundError:
            return 0

    def kill_at(self, size, *words):
        """Starts the command, whose reply stops behind `size` bytes, and kills it there."""
        self.mock.plan({"at": "target", "method": "GET", "do": "hold", "bytes": size})
        p = self.start("get", "b/d/k", *words)
        self.wait(lambda: self.part_size() >= size)
        p.kill()
        p.communicate()

    def fill_part(self):
        """As if the program had been killed before it renamed the part."""
        name = self.part()
        self.write(name, self.data)

    def ranges(self):
        return [r["headers"].get("range") for r in self.mock.requests(at="target", method="GET")]

    def test_goes_on(self):
        self.kill_at(2 * MIB, "f")
        self.assertEqual(len(self.parts()), 2)
        self.assertFalse(os.path.exists(self.path("f")))
        self.mock.log.clear()
        doc = self.json("get", "b/d/k", "f")
        self.assertEqual((doc["size"], doc["resumed"]), (SIZE, 2 * MIB))
        self.assertEqual(self.read("f"), self.data)
        self.assertEqual(self.ranges(), ["bytes=%d-" % (2 * MIB)])
        self.assertEqual(self.files(), ["f"])

    def test_random_kills_send_nothing_twice(self):
        chosen = random.Random(7)
        have, asked = 0, 0
        for _ in range(6):
            more = chosen.randrange(1, (SIZE - have) // 2)
            self.mock.plan({"at": "target", "method": "GET", "do": "hold", "bytes": more})
            p = self.start("get", "b/d/k", "f")
            self.wait(lambda size=have + more: self.part_size() >= size)
            p.kill()
            p.communicate()
            have, asked = have + more, asked + more
        self.assertIn("from an earlier run", self.text("get", "b/d/k", "f"))
        self.assertEqual(self.read("f"), self.data)
        last = int(self.ranges()[-1][len("bytes="):-1])
        self.assertEqual(asked + SIZE - last, SIZE)  # bytes that were sent in all

    def test_whole_part(self):
        self.kill_at(MIB, "f")
        self.fill_part()
        self.mock.log.clear()
        self.assertEqual(self.json("get", "b/d/k", "f")["resumed"], SIZE)
        self.assertEqual(self.read("f"), self.data)
        self.assertEqual(self.ranges(), [])

    def test_changed_object_starts_anew(self):
        for whole, new in ((False, pattern(SIZE, 2)), (True, b"short"), (False, pattern(MIB, 3)),
                           (True, pattern(SIZE, 4))):
            self.mock.create("b", {"d/k": self.data})
            self.kill_at(2 * MIB, "f")
            if whole:
                self.fill_part()
            self.mock.create("b", {"d/k": new})
            self.assertEqual(self.json("get", "b/d/k", "f")["resumed"], 0)
            self.assertEqual(self.read("f"), new)
            self.assertEqual(self.parts(), [])

    def test_damaged_part_starts_anew(self):
        self.kill_at(2 * MIB, "f")
        with open(self.path(self.part()), "r+b") as f:
            f.write(b"\0\0\0\0")
        self.assertEqual(self.json("get", "b/d/k", "f")["resumed"], 0)
        self.assertEqual(self.read("f"), self.data)
        self.assertEqual(self.files(), ["f"])

    def test_notes_that_are_none(self):
        for text in (b"", b"{", b"[]", b'{"bucket": "b", "name": "d/k", "etag": 7, "size": -1}'):
            self.kill_at(MIB, "f")
            self.write(self.part() + ".note", text)
            self.assertEqual(self.json("get", "b/d/k", "f")["resumed"], 0)
            self.assertEqual(self.read("f"), self.data)
            self.assertEqual(self.files(), ["f"])

    def test_part_longer_than_the_object(self):
        self.kill_at(MIB, "f")
        with open(self.path(self.part()), "ab") as f:
            f.write(bytes(SIZE))
        self.assertEqual(self.json("get", "b/d/k", "f")["resumed"], 0)
        self.assertEqual(self.read("f"), self.data)

    def test_second_program_leaves_the_part_alone(self):
        self.kill_at(2 * MIB, "f")
        name = self.part()
        with open(self.path(name), "r+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assertEqual(self.json("get", "b/d/k", "f")["resumed"], 0)
            self.assertEqual(self.read("f"), self.data)
            self.assertEqual(os.path.getsize(self.path(name)), 2 * MIB)
        os.remove(self.path("f"))
        self.assertEqual(self.json("get", "b/d/k", "f")["resumed"], 2 * MIB)
        self.assertEqual(self.files(), ["f"])

    def test_two_at_once(self):
        running = [self.start("get", "b/d/k", "f") for _ in range(4)]
        for p in running:
            _, err = p.communicate(timeout=60 * SLOW)
            self.assertEqual((p.returncode, err), (0, b""))
        self.assertEqual(self.read("f"), self.data)
        self.assertEqual(self.files(), ["f"])

    def test_a_cluster_that_goes_away(self):
        self.mock.plan({"at": "target", "method": "GET", "do": "cut", "bytes": 2 * MIB},
                       *[{"at": "target", "do": "drop"}] * 20)
        self.run_ctl("get", "b/d/k", "f", "--retries", "2", code=5)
        self.assertEqual(os.path.getsize(self.path(self.part())), 2 * MIB)
        self.mock.steps.clear()
        self.assertEqual(self.json("get", "b/d/k", "f")["resumed"], 2 * MIB)
        self.assertEqual(self.read("f"), self.data)

    def test_object_that_is_gone(self):
        self.kill_at(2 * MIB, "f")
        self.mock.create("b")
        self.run_ctl("get", "b/d/k", "f", code=3)
        self.assertEqual(self.files(), [])

    def test_conditions_and_ranges(self):
        self.kill_at(2 * MIB, "f")
        self.run_ctl("get", "b/d/k", "f", "--if-match", '"other"', code=1)
        self.kill_at(2 * MIB, "f")
        self.mock.log.clear()
        self.run_ctl("get", "b/d/k", "f", "--length", "10")
        self.assertEqual(self.read("f"), self.data[:10])
        self.assertEqual(self.ranges(), ["bytes=0-9"])

    def test_directories_go_on(self):
        self.mock.create("b", {"d/k": self.data, "d/small": b"1"})
        self.mock.plan({"at": "target", "method": "GET", "path": "/d/k", "do": "hold",
                        "bytes": 3 * MIB})
        p = self.start("get", "-r", "b/d", "out")
        self.wait(lambda: os.path.exists(self.path("out/small"))
                  and self.part_size() == 3 * MIB)
        p.kill()
        p.communicate()
        self.mock.log.clear()
        self.run_ctl("get", "-r", "b/d", "out")
        self.assertEqual(self.files("out"), ["k", "small"])
        self.assertEqual(self.read("out/k"), self.data)
        self.assertIn("bytes=%d-" % (3 * MIB), self.ranges())

    def test_small_objects_leave_nothing(self):
        self.mock.create("b", {"s": pattern(MIB - 1)})
        self.mock.plan({"at": "target", "method": "GET", "do": "cut", "bytes": 1000},
                       *[{"at": "target", "do": "drop"}] * 20)
        self.run_ctl("get", "b/s", "f", "--retries", "1", code=5)
        self.assertEqual(self.files(), [])

    def test_a_note_says_the_version(self):
        self.kill_at(2 * MIB, "f")
        note = json.loads(self.read(self.part() + ".note"))
        info = self.json("object", "head", "b/d/k")
        self.assertEqual(note, {"bucket": "b", "name": "d/k", "etag": info["etag"], "size": SIZE,
                                "checksum_type": info["checksum"]["type"],
                                "checksum": info["checksum"]["value"]})


if __name__ == "__main__":
    unittest.main()
