#!/usr/bin/env python3
"""dfcctl sync: directories and prefixes, in each direction.

DFC_BUILD names the build directory.  Python's standard library only."""
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
from dfcctl_case import Case, pattern  # noqa: E402

TREE = {"a": b"1", "a-b/c": b"22", "a/b": b"333"}  # sorted as names, not as directories
FILES = {"a-b/c": b"22", "a/b": b"333", "a/é": b"4444", "z": pattern(100000)}


class Sync(Case):
    def setUp(self):
        super().setUp()
        self.mock.create("b")
        self.mock.create("c")

    def tree(self, below):
        return {n: self.read(os.path.join(below, n)) for n in self.files(below)}

    def write_all(self, below, files):
        for name, data in files.items():
            self.write(os.path.join(below, name), data)

    def sync(self, *words, **options):
        doc = self.json("sync", *words, **options)
        return doc["done"], doc["existed"], doc["removed"], doc["failed_count"]

    def sent(self, method):
        return len(self.mock.requests(at="target", method=method))

    def test_up(self):
        self.write_all("src", FILES)
        self.assertEqual(self.sync("src", "dfc://b/p"), (4, 0, 0, 0))
        self.assertEqual(self.mock.objects("b"), {"p/" + n: d for n, d in FILES.items()})
        self.mock.log.clear()
        self.assertEqual(self.sync("src", "dfc://b/p/"), (0, 4, 0, 0))
        self.assertEqual((self.sent("PUT"), self.sent("GET"), self.sent("HEAD")), (0, 0, 0))
        self.write("src/z", pattern(100000, 2))
        self.write("src/a/é", b"longer")
        self.assertEqual(self.sync("src", "dfc://b/p"), (2, 2, 0, 0))
        self.assertEqual(self.mock.objects("b")["p/z"], pattern(100000, 2))
        self.assertEqual(self.mock.objects("b")["p/a/é"], b"longer")

    def test_down(self):
        self.mock.create("b", {"p/" + n: d for n, d in FILES.items()} | {"pp": b"not", "p": b"not"})
        self.mock.page_limit = 2
        self.assertEqual(self.sync("dfc://b/p", "dst"), (4, 0, 0, 0))
        self.assertEqual(self.tree("dst"), FILES)
        self.assertEqual(os.stat(self.path("dst/z")).st_mtime, 1700000000)
        self.mock.log.clear()
        self.assertEqual(self.sync("dfc://b/p", "dst"), (0, 4, 0, 0))
        self.assertEqual(self.sent("GET"), 0)
        self.write("dst/a/b", b"edi")
        self.assertEqual(self.sync("dfc://b/p", "dst"), (1, 3, 0, 0))
        self.assertEqual(self.tree("dst"), FILES)

    def test_across(self):
        self.mock.create("b", {"p/" + n: d for n, d in TREE.items()})
        self.mock.create("c", {"q/" + n: d for n, d in (TREE | {"a": b"2", "x": b""}).items()})
        self.assertEqual(self.sync("dfc://b/p", "dfc://c/q"), (1, 2, 0, 0))
        self.assertEqual(self.sync("dfc://b/p", "dfc://c/q", "--delete", "--yes"), (0, 3, 1, 0))
        self.assertEqual(self.mock.objects("c"), {"q/" + n: d for n, d in TREE.items()})
        self.mock.log.clear()
        self.assertEqual(self.sync("dfc://b/p", "dfc://c/q"), (0, 3, 0, 0))
        self.assertEqual((self.sent("PUT"), self.sent("GET")), (0, 0))
        for words in (("dfc://b/p", "dfc://b/p/x"), ("dfc://b", "dfc://b"), ("dfc://b/p", "dfc://b")):
            self.run_ctl("sync", *words, code=2)
            self.assertIn("names in common", self.err)

    def test_delete(self):
        self.write_all("src", FILES)
        self.mock.create("b", {"p/gone": b"", "p/a/gone": b"", "q": b"stays"})
        self.assertEqual(self.sync("src", "dfc://b/p"), (4, 0, 0, 0))
        self.run_ctl("sync", "src", "dfc://b/p", "--delete", code=2)
        self.assertIn("--yes", self.err)
        self.assertEqual(self.sync("src", "dfc://b/p", "--delete", "--yes"), (0, 4, 2, 0))
        self.assertEqual(self.mock.objects("b"),
                         {"p/" + n: d for n, d in FILES.items()} | {"q": b"stays"})

    def test_delete_here(self):
        self.mock.create("b", {"p/keep": b"1", "p/dir": b"now a file", "p/file/x": b"now a dir"})
        self.write_all("dst", {"keep": b"1", "dir/x": b"", "dir/y/z": b"", "file": b"", "o/p/q": b""})
        os.mkdir(self.path("dst/empty"))
        # The file 'dir' fails as long as the directory is there.
        self.assertEqual(self.sync("dfc://b/p", "dst", "--delete", "--yes", code=6), (1, 1, 4, 1))
        self.assertEqual(self.sync("dfc://b/p", "dst", "--delete", "--yes")[2:], (0, 0))
        self.assertEqual(self.tree("dst"), {"keep": b"1", "dir": b"now a file",
                                            "file/x": b"now a dir"})
        self.assertEqual(sorted(os.listdir(self.path("dst"))), ["dir", "empty", "file", "keep"])

    def test_dry_run(self):
        self.write_all("src", FILES)
        self.mock.create("b", {"z": FILES["z"], "old": b"", "a/b": b"---"})
        before = self.mock.objects("b")
        out = self.text("sync", "src", "dfc://b", "--delete", "--dry-run")
        self.assertEqual(sorted(out.splitlines()[:-1]),
                         ["remove old", "send a-b/c", "send a/b", "send a/é"])
        self.assertEqual(out.splitlines()[-1], "sync: 3 to send (9 B), 1 the same, 1 to remove")
        self.assertEqual(self.mock.objects("b"), before)
        self.assertEqual(self.sync("dfc://b", "dst", "--dry-run"), (3, 0, 0, 0))
        self.assertEqual(self.files(), ["src/" + n for n in sorted(FILES)])

    def test_exclude(self):
        self.write_all("src", FILES | {"x.tmp": b"", "d/y.tmp": b""})
        self.mock.create("b", {"old.tmp": b"", "old": b""})
        self.assertEqual(self.sync("src", "dfc://b", "--exclude", "*.tmp", "--exclude", "a/*",
                                   "--delete", "--yes"), (2, 0, 1, 0))
        self.assertEqual(sorted(self.mock.objects("b")), ["a-b/c", "old.tmp", "z"])
        self.assertEqual(self.sync("src", "dfc://c", "--exclude", "*"), (0, 0, 0, 0))

    def test_quick(self):
        self.mock.create("b", {"k": b"12345"})
        self.assertEqual(self.sync("dfc://b", "dst"), (1, 0, 0, 0))
        self.write("dst/k", b"abcde")
        os.utime(self.path("dst/k"), (1700000000, 1700000000))
        self.assertEqual(self.sync("dfc://b", "dst", "--quick"), (0, 1, 0, 0))
        self.assertEqual(self.read("dst/k"), b"abcde")
        self.assertEqual(self.sync("dfc://b", "dst"), (1, 0, 0, 0))
        self.assertEqual(self.read("dst/k"), b"12345")
        os.utime(self.path("dst/k"), (1800000000, 1800000000))
        self.assertEqual(self.sync("dfc://b", "dst", "--quick"), (0, 1, 0, 0))  # by its bytes
        self.assertEqual(self.sync("dst", "dfc://b", "--quick"), (0, 1, 0, 0))

    def test_nothing_outside(self):
        bad = ["../up", "/abs", "a/../../up", "x//y", ".", "dir/"]
        self.mock.create("b", {k: b"evil" for k in bad} | {"good": b"1", "link/in": b"evil",
                                                           "leaf": b"new"})
        self.write("outside/in", b"safe")
        os.mkdir(self.path("dst"))
        os.symlink("../outside", self.path("dst/link"))
        os.symlink("../outside/in", self.path("dst/leaf"))
        self.write("outside/other", b"safe")
        self.assertEqual(self.sync("dfc://b", "dst", "--delete", "--yes", code=6),
                         (2, 0, 0, len(bad) + 1))
        self.assertEqual(self.tree("outside"), {"in": b"safe", "other": b"safe"})
        self.assertEqual(self.read("dst/leaf"), b"new")
        self.assertFalse(os.path.islink(self.path("dst/leaf")))
        self.assertTrue(os.path.islink(self.path("dst/link")))
        self.assertEqual(self.files(), ["dst/good", "dst/leaf", "outside/in", "outside/other"])

    def test_links_and_pipes_of_the_source(self):
        self.write("src/good", b"1")
        os.symlink("good", self.path("src/link"))
        os.symlink("nowhere", self.path("src/dangling"))
        os.mkfifo(self.path("src/pipe"))
        self.mock.create("b", {"old": b""})
        self.assertEqual(self.sync("src", "dfc://b", "--delete", "--yes", code=6), (2, 0, 0, 2))
        self.assertEqual(sorted(self.mock.objects("b")), ["good", "link", "old"])

    def test_nothing_there(self):
        os.mkdir(self.path("empty"))
        self.mock.create("b", {"k": b""})
        self.run_ctl("sync", "empty", "dfc://b", "--delete", "--yes", code=4)
        self.run_ctl("sync", "dfc://c/none", "dst", code=4)
        self.assertEqual(list(self.mock.objects("b")), ["k"])
        self.assertEqual(self.sync("empty", "dfc://b", "--allow-empty", "--delete", "--yes"),
                         (0, 0, 1, 0))
        self.run_ctl("sync", "missing", "dfc://b", code=2)
        self.run_ctl("sync", "empty", "dst", code=2)
        self.run_ctl("sync", "", "dfc://b", code=2)
        self.run_ctl("sync", "dfc://nobucket", "dst", code=3)
        self.write("src/k", b"")
        self.run_ctl("sync", "src", "dfc://nobucket", code=3)

    def test_failures_are_counted(self):
        self.write_all("src", {"%02d" % i: b"x" for i in range(20)})
        self.mock.plan({"at": "target", "method": "PUT", "path": "/1[35]", "do": "status",
                        "status": 507, "code": "no_space", "times": 2})
        self.assertEqual(self.sync("src", "dfc://b", code=6), (18, 0, 0, 2))
        self.assertEqual(self.sync("src", "dfc://b"), (2, 18, 0, 0))

    def test_a_list_that_breaks_off_removes_nothing_more(self):
        self.mock.create("b", {"%02d" % i: b"" for i in range(9)})
        self.write_all("dst", {"%02d" % i: b"" for i in range(12)})
        self.mock.page_limit = 4
        self.mock.plan({"method": "GET", "path": "token=", "do": "status", "status": 500})
        self.sync("dfc://b", "dst", "--delete", "--yes", code=6)
        self.assertEqual(len(self.files("dst")), 12)

    def test_internal_names(self):
        files = {"a.vdsc": b"table", ".dfc-unique/ab/abcd": b"content", ".dfc-plog/0/s/1": b"segment"}
        self.mock.create("b", files)
        self.assertEqual(self.sync("dfc://b", "dst"), (3, 0, 0, 0))
        self.assertEqual(self.sync("dfc://b", "dst", "--delete", "--yes"), (0, 3, 0, 0))
        self.assertEqual(self.tree("dst"), files)
        self.assertEqual(self.sync("dst", "dfc://c", "--delete", "--yes"), (3, 0, 0, 0))
        self.assertEqual(self.sync("dst", "dfc://c", "--delete", "--yes"), (0, 3, 0, 0))
        os.unlink(self.path("dst/.dfc-plog/0/s/1"))
        self.assertEqual(self.sync("dst", "dfc://c", "--delete", "--yes"), (0, 2, 0, 0))
        self.assertEqual(self.sync("dst/.dfc-plog", "dfc://c/.dfc-plog/", "--delete", "--yes", "--allow-empty"),
                         (0, 0, 1, 0))
        self.run_ctl("get", "-r", "b", "part")
        self.assertEqual(self.files("part"), ["a.vdsc"])

    def test_parts_are_of_no_side(self):
        self.write("src/k", b"1")
        self.write("src/.dfc-part-0123456789abcdef", b"part")
        self.write("src/d/.dfc-0a1b2c3d4e", b"of a get that was killed")
        self.assertEqual(self.sync("src", "dfc://b"), (1, 0, 0, 0))
        self.mock.create("b", {"k": b"1"})
        self.assertEqual(self.sync("dfc://b", "src", "--delete", "--yes"), (0, 1, 0, 0))
        self.assertEqual(self.files("src"), [".dfc-part-0123456789abcdef", "d/.dfc-0a1b2c3d4e", "k"])


if __name__ == "__main__":
    unittest.main()
