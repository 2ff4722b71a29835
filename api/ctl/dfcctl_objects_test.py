#!/usr/bin/env python3
"""dfcctl's transfers: single objects and directories, conditions, ranges, cuts and damage.

DFC_BUILD names the build directory.  Python's standard library only."""
import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
from dfcctl_case import Case, DFCCTL, pattern  # noqa: E402


class Objects(Case):
    def setUp(self):
        super().setUp()
        self.mock.create("b")

    def test_round_trip(self):
        for size in (0, 1, 16384, 16385, 1 << 20, (1 << 20) + 1, 3 << 20):
            data = pattern(size, size)
            self.write("f", data)
            doc = self.json("put", "f", "b/k", "-m", "step=1200", "--content-type", "text/x")
            self.assertEqual((doc["name"], doc["size"]), ("k", size))
            self.assertEqual(self.mock.objects("b"), {"k": data})
            self.run_ctl("get", "dfc://b/k", "g")
            self.assertEqual(self.read("g"), data)
            self.assertEqual(self.run_ctl("cat", "b/k"), data)
        info = self.json("object", "head", "b/k")
        self.assertEqual((info["size"], info["content_type"]), (3 << 20, "text/x"))
        self.assertEqual({k.lower(): v for k, v in info["meta"].items()}, {"step": "1200"})
        self.assertIn("modified", self.text("object", "head", "b/k"))

    def test_body_goes_once_and_to_the_target(self):
        for size in (100 << 10, 2 << 20):
            self.mock.log.clear()
            self.write("f", pattern(size))
            self.run_ctl("put", "f", "b/k")
            at_proxy = self.mock.requests(at="proxy", method="PUT")
            at_target = self.mock.requests(at="target", method="PUT")
            self.assertEqual([r["body"] for r in at_proxy], [None])
            self.assertEqual([r["body"] for r in at_target], [size])
            self.assertEqual(at_proxy[0]["headers"]["expect"], "100-continue")
            self.assertIn("dfcv=1.1", at_target[0]["path"])

    def test_checksum_is_sent_and_damage_refused(self):
        self.write("f", pattern(5000))
        self.run_ctl("put", "f", "b/k")
        sent = self.mock.requests(at="target")[0]["headers"]
        self.assertEqual(sent["dfc-checksum-type"], "xxh3")
        self.assertEqual(sent["dfc-checksum-value"],
                         self.mock.buckets["b"][1]["k"].checksum["value"])
        self.mock.plan({"at": "target", "method": "PUT", "do": "corrupt"})
        e = self.json_error("put", "f", "b/l", code=1)
        self.assertEqual(e["code"], "checksum_mismatch")
        self.assertNotIn("l", self.mock.objects("b"))

    def test_put_names(self):
        self.write("d/f", b"1")
        self.run_ctl("put", "d/f", "b")
        self.run_ctl("put", "d/f", "b/x/")
        self.run_ctl("put", "d/f", "dfc://b/x/y")
        self.assertEqual(sorted(self.mock.objects("b")), ["f", "x/f", "x/y"])
        for key in ("a b", "ü/ñ", "100%", "a?b#c&d=e", "..", "a/../b", "x//y", "t/", "+", "\\",
                    "~"):
            self.mock.buckets["b"][1].clear()
            with self.subTest(key):
                self.run_ctl("put", "-", "b/" + key if not key.endswith("/") else "b/" + key + "z",
                             stdin=b"q")
                want = key if not key.endswith("/") else key + "z"
                self.assertEqual(self.mock.objects("b"), {want: b"q"})
                self.assertEqual(self.run_ctl("cat", "b/" + want), b"q")

    def test_put_standard_input(self):
        for size in (0, 5, 256 << 10, (256 << 10) + 1, 3 << 20):
            data = pattern(size, size)
            self.mock.log.clear()
            self.run_ctl("put", "-", "b/k", stdin=data)
            self.assertEqual(self.mock.objects("b")["k"], data)
            self.assertEqual([r["body"] for r in self.mock.requests(at="target")], [size])
        with open(self.write("f", pattern(70000)), "rb") as f:
            p = subprocess.run([DFCCTL, "put", "-", "b/from-file"], stdin=f,
                               stdout=subprocess.DEVNULL, env=self.environment(), check=False)
        self.assertEqual(p.returncode, 0)
        self.assertEqual(self.mock.objects("b")["from-file"], pattern(70000))

    def test_put_that_cannot_be_repeated(self):
        big = pattern(1 << 20)
        self.mock.plan({"at": "target", "method": "PUT", "do": "status", "status": 503})
        self.run_ctl("put", "-", "b/k", stdin=big)  # refused before the body was invited
        self.assertEqual(self.mock.objects("b")["k"], big)
        self.mock.plan({"at": "target", "method": "PUT", "do": "drop"})
        self.run_ctl("put", "-", "b/gone", stdin=big, code=5)
        self.assertNotIn("gone", self.mock.objects("b"))
        self.mock.plan({"at": "target", "method": "PUT", "do": "corrupt"})
        e = self.json_error("put", "-", "b/damaged", stdin=big, code=1)
        self.assertEqual(e["code"], "checksum_mismatch")

    def test_put_conditions(self):
        self.write("f", b"1")
        self.run_ctl("put", "f", "b/k", "--if-absent")
        self.assertEqual(self.json_error("put", "f", "b/k", "--if-absent", code=1)["code"],
                         "precondition_failed")
        etag = self.json("object", "head", "b/k")["etag"]
        self.run_ctl("put", "f", "b/k", "--if-match", etag)
        self.run_ctl("put", "f", "b/k", "--if-match", etag, code=1)

    def test_put_errors(self):
        self.run_ctl("put", "missing", "b/k", code=1)
        self.assertIn("No such file", self.err)
        self.write("f", b"1")
        self.run_ctl("put", "f", "nobucket/k", code=3)
        self.assertIn("bucket 'nobucket' does not exist\n", self.err)
        self.run_ctl("put", "f", "b/k", "-m", "bad name=1", code=2)
        self.assertIn("is not a name for metadata", self.err)
        self.run_ctl("put", "f", "b/k", "-m", "n=a\r\nEvil: 1", code=2)
        self.assertEqual(self.mock.objects("b"), {})

    def test_get_destinations(self):
        self.mock.create("b", {"d/k": b"data"})
        self.run_ctl("get", "b/d/k")
        self.assertEqual(self.read("k"), b"data")
        os.mkdir(self.path("sub"))
        self.run_ctl("get", "b/d/k", "sub")
        self.assertEqual(self.read("sub/k"), b"data")
        self.assertEqual(self.run_ctl("get", "b/d/k", "-"), b"data")
        os.symlink("sub/k", self.path("link"))
        self.mock.create("b", {"d/k": b"newer"})
        self.run_ctl("get", "b/d/k", "link")
        self.assertTrue(os.path.islink(self.path("link")))
        self.assertEqual(self.read("sub/k"), b"newer")
        self.run_ctl("get", "b/d/k", "/dev/null")
        self.assertFalse(os.path.isfile("/dev/null"))
        self.run_ctl("get", "b/d/k", "no/such/dir/file", code=1)
        self.run_ctl("get", "b/d/k", "", code=2)
        self.assertIn("the path of the file to write is empty", self.err)

    def test_failed_get_leaves_nothing_and_keeps_the_old(self):
        self.write("k", b"old")
        self.run_ctl("get", "b/k", code=3)
        self.mock.create("b", {"k": pattern(50000)})
        self.mock.plan({"at": "target", "method": "GET", "do": "corrupt", "times": 10})
        self.assertEqual(self.json_error("get", "b/k", code=1)["code"], "checksum_mismatch")
        self.assertEqual(self.read("k"), b"old")
        self.assertEqual(self.files(), ["k"])

    def test_a_failure_here_names_no_node(self):
        self.mock.create("b", {"k": pattern(50000)})
        e = self.json_error("get", "b/k", "/dev/full", code=1)
        self.assertEqual(e["code"], "no_space")
        self.assertNotIn("node", e)

    def test_get_ranges(self):
        data = pattern(100000)
        self.mock.create("b", {"k": data, "empty": b""})
        self.assertEqual(self.run_ctl("cat", "b/k", "--offset", "10", "--length", "100"),
                         data[10:110])
        self.assertEqual(self.run_ctl("cat", "b/k", "--offset", "90k"), data[90 << 10:])
        self.assertEqual(self.run_ctl("cat", "b/k", "--length", "1"), data[:1])
        self.assertEqual(self.run_ctl("cat", "b/k", "--offset", "99999", "--length", "50"),
                         data[99999:])
        self.run_ctl("cat", "b/k", "--offset", "100000", "-v", code=1)
        self.assertIn("range_not_satisfiable", self.err)
        self.assertEqual(self.run_ctl("cat", "b/empty"), b"")

    def test_cut_download_resumes(self):
        data = pattern(1 << 20)
        self.mock.create("b", {"k": data})
        self.mock.plan(*[{"at": "target", "method": "GET", "do": "cut", "bytes": 100000}] * 8)
        self.run_ctl("get", "b/k", "f")
        self.assertEqual(self.read("f"), data)
        gets = self.mock.requests(at="target", method="GET")
        self.assertEqual(len(gets), 9)
        self.assertNotIn("range", gets[0]["headers"])
        for r in gets[1:]:
            self.assertEqual(r["headers"]["if-match"],
                             '"%s"' % self.mock.buckets["b"][1]["k"].version)
            self.assertRegex(r["headers"]["range"], r"^bytes=\d+-%d$" % (len(data) - 1))
        self.assertEqual(self.run_ctl("cat", "b/k", "--offset", "1000", "--length", "500000"),
                         data[1000:501000])

    def test_cut_range_resumes(self):
        data = pattern(1 << 20)
        self.mock.create("b", {"k": data})
        self.mock.plan({"at": "target", "method": "GET", "do": "cut", "bytes": 70000})
        self.assertEqual(self.run_ctl("cat", "b/k", "--offset", "1000", "--length", "500000"),
                         data[1000:501000])

    def test_object_that_changes_under_a_cut(self):
        self.mock.create("b", {"k": pattern(300000)})
        cut = {"at": "target", "method": "GET", "do": "cut", "bytes": 100000, "change": "new bytes"}
        self.mock.plan(cut)
        self.run_ctl("get", "b/k", "f")  # a file can begin anew
        self.assertEqual(self.read("f"), b"new bytes")
        self.mock.create("b", {"k": pattern(300000)})
        self.mock.plan(cut)
        self.run_ctl("cat", "b/k", "-v", code=1)  # a pipe cannot
        self.assertIn("precondition_failed", self.err)

    def test_damaged_download(self):
        data = pattern(300000)
        self.mock.create("b", {"k": data})
        self.mock.plan({"at": "target", "method": "GET", "do": "corrupt"})
        self.run_ctl("get", "b/k", "f")  # read once more
        self.assertEqual(self.read("f"), data)
        self.mock.plan({"at": "target", "method": "GET", "do": "corrupt"})
        self.run_ctl("cat", "b/k", "-v", code=1)
        self.assertIn("checksum_mismatch", self.err)
        self.mock.plan({"at": "target", "method": "GET", "do": "corrupt"})
        self.assertEqual(len(self.run_ctl("cat", "b/k", "--no-checksum")), len(data))

    def test_rm(self):
        self.mock.create("b", {"a": b"1", "x/1": b"1", "x/2": b"2"})
        self.assertEqual(self.json("rm", "b/a")["done"], 1)
        self.run_ctl("rm", "b/a", code=3)
        self.run_ctl("rm", "-r", "b/x/", code=2)
        self.assertEqual(len(self.mock.objects("b")), 2)
        self.run_ctl("rm", "b/x/1", "b/none", code=6)
        self.assertIn("b/none", self.err)
        self.run_ctl("rm", "-r", "b/x/", "--yes")
        self.assertEqual(self.mock.objects("b"), {})
        self.run_ctl("rm", "-ry", "nobucket/x", code=3)

    def test_rm_whose_reply_is_lost(self):
        self.mock.create("b", {"a": b"1"})
        self.mock.plan({"at": "target", "method": "DELETE", "do": "act"})
        self.run_ctl("rm", "b/a")
        self.assertEqual(len(self.mock.requests(at="target", method="DELETE")), 2)


class Directories(Case):
    def setUp(self):
        super().setUp()
        self.mock.create("b")

    def test_put_and_get(self):
        want = {}
        for i in range(120):
            name = "d%d/ü %d.bin" % (i % 7, i)
            want[name] = pattern(i * 37, i)
            self.write("src/" + name, want[name])
        os.mkdir(self.path("src/empty"))
        doc = self.json("put", "src", "b/pre", "-j", "6")
        self.assertEqual((doc["done"], doc["failed"], doc["bytes"]),
                         (120, [], sum(map(len, want.values()))))
        self.assertEqual(self.mock.objects("b"), {"pre/" + k: v for k, v in want.items()})
        self.mock.page_limit = 13
        self.mock.buckets["b"][1]["prefix-not-pre"] = self.mock.buckets["b"][1]["pre/d0/ü 0.bin"]
        self.run_ctl("get", "-r", "b/pre", "dst", "-j3")
        self.assertEqual({n: self.read("dst/" + n) for n in self.files("dst")}, want)
        self.run_ctl("get", "b/pre/d3/", "dst3")
        self.assertEqual(self.files("dst3"), sorted(n[3:] for n in want if n.startswith("d3/")))

    def test_put_several_and_mixed(self):
        self.write("one", b"1")
        self.write("dir/two", b"2")
        self.run_ctl("put", "one", "dir", "b")
        self.assertEqual(self.mock.objects("b"), {"one": b"1", "two": b"2"})

    def test_put_skips_nothing_silently(self):
        self.write("src/good", b"1")
        os.mkfifo(self.path("src/pipe"))
        os.symlink("good", self.path("src/link"))
        os.symlink(".", self.path("src/loop"))
        os.symlink("nowhere", self.path("src/dangling"))
        doc = self.json("put", "src", "b", code=6)
        self.assertEqual(sorted(self.mock.objects("b")), ["good", "link"])
        self.assertEqual(sorted(os.path.basename(f["name"]) for f in doc["failed"]),
                         ["dangling", "loop", "pipe"])
        self.assertEqual((doc["done"], doc["failed_count"]), (2, 3))
        self.run_ctl("put", "src", "b", code=6)
        for name in ("dangling", "loop", "pipe"):
            self.assertIn("src/" + name, self.err)

    def test_partial_failure(self):
        for i in range(20):
            self.write("src/%02d" % i, b"x")
        self.mock.plan({"at": "target", "method": "PUT", "path": "/1[35]", "do": "status",
                        "status": 507, "code": "no_space", "times": 2})
        doc = self.json("put", "src", "b", code=6)
        self.assertEqual((doc["done"], doc["failed_count"]), (18, 2))
        self.assertEqual({f["code"] for f in doc["failed"]}, {"no_space"})

    def test_hopeless_put_stops(self):
        for i in range(300):
            self.write("src/%03d" % i, b"x")
        doc = self.json("put", "src", "nobucket", "-j4", code=3)
        self.assertLess(doc["failed_count"], 60)
        self.assertEqual(doc["failed_count"] + doc["not_tried"], 300)

    def test_get_refuses_keys_that_leave_the_directory(self):
        bad = ["../up", "a/../../up", "/abs", "x//y", ".", "a/.", "dir/"]
        self.mock.create("b", {k: b"evil" for k in bad + ["good", "a/good"]})
        doc = self.json("get", "b", "dst", code=6)
        self.assertEqual(doc["done"], 2)
        self.assertEqual(sorted(f["name"] for f in doc["failed"]), sorted(bad))
        self.assertEqual(self.files("dst"), ["a/good", "good"])
        self.assertEqual(self.files(), ["dst/a/good", "dst/good"])

    def test_get_does_not_follow_links_out(self):
        os.mkdir(self.path("outside"))
        os.mkdir(self.path("dst"))
        os.symlink("../outside", self.path("dst/a"))
        self.mock.create("b", {"a/k": b"1", "ok": b"2"})
        doc = self.json("get", "b", "dst", code=6)
        self.assertEqual([f["name"] for f in doc["failed"]], ["a/k"])
        self.assertEqual(self.files("outside"), [])

    def test_get_object_and_directory_of_one_name(self):
        self.mock.create("b", {"a": b"1", "a/b": b"2", "c": b"3"})
        doc = self.json("get", "b", "dst", "-j1", code=6)
        self.assertEqual((doc["done"], doc["failed_count"]), (2, 1))

    def test_get_of_nothing(self):
        self.run_ctl("get", "-r", "nobucket", "dst", code=3)
        self.run_ctl("get", "-r", "b/none", "dst", code=4)
        self.assertFalse(os.path.exists(self.path("dst")), "a directory was made for nothing")
        self.assertEqual(self.json("get", "-r", "b/none", "dst", "--allow-empty")["done"], 0)

    def test_cat_and_head_take_no_patterns(self):
        self.run_ctl("cat", "b/d/f*.bin", code=3)
        self.assertIn("does not exist; this command takes no patterns (ls, get, rm and cp do)",
                      self.err)
        self.mock.create("b", {"f*": b"1"})
        self.assertEqual(self.run_ctl("cat", "b/f*"), b"1")
        self.run_ctl("cat", "none/f*", code=3)
        self.assertNotIn("pattern", self.err)

    def test_get_takes_patterns(self):
        self.mock.create("b",
                         {"d/f1": b"1", "d/f2": b"2", "d/g1": b"3", "d/f/x": b"4", "d/f*": b"5"})
        self.run_ctl("get", "b/d/f*", "dst", "--pattern")
        self.assertIn("4 objects match 'b/d/f*'", self.err)
        self.assertEqual(self.files("dst"), ["f*", "f/x", "f1", "f2"])
        self.run_ctl("get", "b/*1", "all")
        self.assertEqual(self.files("all"), ["d/f1", "d/g1"])
        self.run_ctl("get", "b/d/f\\*", "one")
        self.assertEqual(self.read("one"), b"5")
        self.run_ctl("get", "b/f[89]", "none", code=4)
        self.assertIn("no object matches (--allow-empty accepts that)", self.err)
        self.run_ctl("get", "b/f[89]", "none", "--allow-empty")
        self.assertFalse(os.path.exists(self.path("none")), "a directory was made for nothing")
        self.run_ctl("get", "-r", "b/d/f*", "dst", code=2)
        self.run_ctl("get", "b/d/f*", "-", "--pattern", code=2)
        self.run_ctl("get", "nobucket/f*", "dst", code=3)

    def test_rm_takes_patterns(self):
        self.mock.create("b", {"f1": b"", "f2": b"", "f3": b"", "f*": b"", "g1": b""})
        self.run_ctl("rm", "b/f[12]", code=2)
        self.assertIn("whose name matches 'f[12]'? Not a terminal", self.err)
        self.run_ctl("rm", "b/f[12]", "--yes")
        self.assertIn("2 objects match 'b/f[12]'", self.err)
        self.assertEqual(sorted(self.mock.objects("b")), ["f*", "f3", "g1"])
        self.run_ctl("rm", "b/f\\*")  # one name: nobody is asked
        self.assertEqual(sorted(self.mock.objects("b")), ["f3", "g1"])
        self.run_ctl("rm", "b/x*", "--yes", code=4)
        self.run_ctl("rm", "b/x*", "--yes", "--allow-empty")
        self.run_ctl("rm", "-r", "b/f*", "--yes", code=2)
        self.assertEqual(sorted(self.mock.objects("b")), ["f3", "g1"])

    def test_the_name_of_an_object_is_not_taken_for_a_pattern(self):
        objects = {"*": b"1", "img[1].jpg": b"2", "img1.jpg": b"3", "a\\?": b"4", "a?": b"5"}
        self.mock.create("b", objects)
        for key, escaped in (("*", "\\*"), ("img[1].jpg", "img\\[1].jpg"), ("a?", "a\\?")):
            for words in (("rm", "b/" + key, "--yes"), ("rm", "b/img?.jpg", "b/" + key, "--yes"),
                          ("get", "b/" + key, "dst"), ("cp", "b/" + key, "c")):
                with self.subTest(words):
                    self.run_ctl(*words, code=2)
                    self.assertIn("'b/%s' is the name of an object, and a pattern: write 'b/%s' "
                                  "for the object, or add --pattern" % (key, escaped), self.err)
                    self.assertEqual(self.mock.objects("b"), objects)
        self.assertEqual(self.files(), [])
        self.run_ctl("rm", "b/img\\[1].jpg")
        self.assertEqual(sorted(self.mock.objects("b")), ["*", "a?", "a\\?", "img1.jpg"])
        self.run_ctl("rm", "b/img[1].jpg", "--yes")  # no such object any more: a pattern
        self.assertEqual(sorted(self.mock.objects("b")), ["*", "a?", "a\\?"])
        self.run_ctl("rm", "b/a\\\\\\?")
        self.assertEqual(sorted(self.mock.objects("b")), ["*", "a?"])
        self.run_ctl("rm", "b/*", "--pattern", "--yes")
        self.assertEqual(self.mock.objects("b"), {})

    def test_a_pattern_needs_to_know_whether_an_object_has_the_name(self):
        self.mock.create("b", {"f*": b"1", "f1": b"2"})
        self.mock.plan({"at": "target", "method": "HEAD", "do": "status", "status": 500,
                        "times": 10})
        self.run_ctl("rm", "b/f*", "--yes", code=1)
        self.assertEqual(sorted(self.mock.objects("b")), ["f*", "f1"])

    def test_pattern_goes_with_a_pattern(self):
        self.mock.create("b", {"f": b"1"})
        for words in (("rm", "b/f"), ("get", "b/f"), ("cp", "b/f", "c"),
                      ("rm", "b", "--prefix", "f", "--yes"), ("cp", "b", "c", "--prefix", "f")):
            self.run_ctl(*words, "--pattern", code=2)
            self.assertIn("--pattern", self.err)
        self.assertEqual(sorted(self.mock.objects("b")), ["f"])

    def test_cp_of_a_pattern_that_matches_nothing(self):
        self.mock.create("b", {"f1": b""})
        for which in ("b/x*", "b/x?"):
            self.run_ctl("cp", which, "c", code=4)
            self.assertIn("no object matches", self.err)
            self.assertEqual(self.json("cp", which, "c", "--allow-empty"), {"id": None})

    def test_cp_of_one_object_that_does_not_exist(self):
        self.mock.create("b", {"f1": b""})
        for more in ((), ("--wait",)):
            self.run_ctl("cp", "b/none", "c", *more, code=4)
            self.assertIn("object 'b/none' does not exist (--allow-empty accepts that)", self.err)
        self.assertEqual(self.json_error("cp", "b/none", "c", code=4)["code"], "nothing_matched")
        self.run_ctl("cp", "nobucket/none", "c", code=3)
        self.assertIn("bucket 'nobucket' does not exist", self.err)
        self.assertNotIn("POST", {call["method"] for call in self.mock.log})

    def test_cp_does_not_begin_while_the_object_cannot_be_asked_for(self):
        self.mock.create("b", {"f1": b""})
        self.mock.plan({"at": "target", "method": "HEAD", "do": "status", "status": 500,
                        "times": 10})
        self.run_ctl("cp", "b/f1", "c", code=1)
        self.assertNotIn("POST", {call["method"] for call in self.mock.log})

    def test_head_tells_a_missing_bucket_from_a_missing_object(self):
        self.mock.create("b", {"k": b""})
        self.run_ctl("object", "head", "b/none", code=3)
        self.assertIn("object 'b/none' does not exist", self.err)
        self.assertNotIn("bucket", self.err)
        self.run_ctl("object", "head", "nobucket/k", code=3)
        self.assertIn("bucket 'nobucket' does not exist", self.err)

    def test_ls_takes_patterns(self):
        self.mock.create("b", {"f1": b"", "f2": b"", "f3": b"", "f[12]": b"", "g1": b""})
        for given, names in (("f[12]", "f1 f2"), ("f?", "f1 f2 f3"), ("*1", "f1 g1"),
                             ("f\\[12]", "f[12]")):
            doc = self.json("ls", "b/" + given)
            self.assertEqual([e["name"] for e in doc["entries"]], names.split(), given)
        doc = self.json("ls", "b", "--prefix", "f[")
        self.assertEqual([e["name"] for e in doc["entries"]], ["f[12]"])
        self.run_ctl("ls", "b/f[45]", code=4)
        self.assertIn("no object matches 'f[45]'", self.err)
        self.assertIn("--prefix takes a name as it is", self.err)

    def test_rm_of_nothing(self):
        self.run_ctl("rm", "-r", "b/none/", "--yes", code=4)
        self.assertIn("no object has a name that begins so", self.err)
        self.run_ctl("rm", "-r", "b/none/", "--yes", "--allow-empty")

    def test_put_of_nothing(self):
        os.mkdir(self.path("empt"))
        for words in (("put", "empt", "b"), ("put", "-r", "empt", "b/d/", "-q")):
            self.run_ctl(*words, code=4)
            self.assertEqual(
                self.err,
                "dfcctl: put 'empt': there is no file in it (--allow-empty accepts that)\n")
        doc = self.json("put", "empt", "b", code=4)
        self.assertEqual([f["code"] for f in doc["failed"]], ["nothing_matched"])
        self.assertEqual(self.text("put", "empt", "b", "--allow-empty"), "put: 0 done\n")

    def test_put_what_exists(self):
        self.write("src/a", b"1")
        self.run_ctl("put", "-r", "src", "b")
        self.write("src/b", b"2")
        doc = self.json("put", "src", "b", "--if-absent")
        self.assertEqual((doc["done"], doc["existed"], doc["failed_count"]), (1, 1, 0))
        self.assertEqual(self.text("put", "src", "b", "--if-absent"),
                         "put: 0 done, 2 existed already\n")
        self.run_ctl("put", "src/a", "b/a", "--if-absent", code=1)
        self.assertEqual(self.err, "dfcctl: put 'b/a': the object exists already\n")
        self.assertEqual(self.run_ctl("put", "src", "b", "-q"), b"")
        self.run_ctl("put", "src/a", "b/a", "-m", "owner=me", "-m", "Owner=you", code=2)
        self.assertIn("--meta: 'Owner' is given twice", self.err)


if __name__ == "__main__":
    unittest.main()
