#!/usr/bin/env python3
"""dfcctl against a cluster that follows the HTTP contract and misbehaves on demand.

DFC_BUILD names the build directory.  Python's standard library only."""
import io
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
from mock_cluster import MockCluster  # noqa: E402

DFCCTL = os.path.join(os.environ.get("DFC_BUILD", os.path.join(ROOT, "build")), "dfcctl")
SLOW = float(os.environ.get("DFC_TEST_SLOW", "1"))


def pattern(size, seed=1):
    return random.Random(seed).randbytes(size)


class Case(unittest.TestCase):
    def setUp(self):
        self.mock = MockCluster()
        self.addCleanup(self.mock.close)
        self.dir = tempfile.mkdtemp(prefix="dfcctl-test-")
        self.addCleanup(shutil.rmtree, self.dir)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "DFC_ENDPOINT")}
        env["DFC_ENDPOINT"] = self.mock.endpoint
        env["http_proxy"] = "http://127.0.0.1:9"  # must be ignored
        env.update(more)
        return env

    def start(self, *words, **options):
        env = options.pop("env", None) or self.environment()
        return subprocess.Popen([DFCCTL, *words], cwd=self.dir, env=env, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def run_ctl(self, *words, code=0, stdin=b"", env=None):
        p = self.start(*words, env=env)
        out, err = p.communicate(stdin, timeout=60 * SLOW)
        self.assertEqual(p.returncode, code, "%s\nout: %s\nerr: %s" % (words, out[-2000:], err))
        self.out, self.err = out, err.decode()
        return out

    def text(self, *words, **options):
        return self.run_ctl(*words, **options).decode()

    def json(self, *words, **options):
        return json.loads(self.run_ctl(*words, "-o", "json", **options))

    def json_error(self, *words, **options):
        self.run_ctl(*words, "-o", "json", **options)
        self.assertEqual(self.out, b"")
        return json.loads(self.err)["error"]

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, data):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def files(self, below="."):
        found = []
        for at, _, names in os.walk(self.path(below)):
            found += [os.path.relpath(os.path.join(at, n), self.path(below)) for n in names]
        return sorted(found)


class CommandLine(Case):
    def test_without_arguments_help_and_usage(self):
        self.assertIn("object put (put)", self.text(code=2))
        self.assertIn("object put (put)", self.text("--help"))
        self.assertIn("Usage: dfcctl object put", self.text("object", "put", "--help"))
        self.assertIn("dfcctl put SOURCE...", self.text("put", "-h"))
        self.assertIn("bucket create", self.text("bucket", code=2))
        self.assertIn("bucket create", self.text("bucket", "--help"))
        self.assertIn("Usage: dfcctl job wait", self.text("help", "job", "wait"))

    def test_did_you_mean(self):
        for words, meant in ((["objct", "put"], "'object'"), (["bucket", "creat", "x"], "create"),
                             (["lss"], "'ls'"), (["ls", "--limt", "3"], "--limit")):
            self.run_ctl(*words, code=2)
            self.assertIn("did you mean", self.err)
            self.assertIn(meant, self.err)

    def test_wrong_command_lines(self):
        for words in (["bucket", "create"], ["bucket", "create", "a", "b"], ["ls", "-o", "xml"],
                      ["ls", "--limit"], ["ls", "--limit", "many"], ["ls", "--limit=-1"],
                      ["ls", "--yes"], ["nothing-like-it"], ["ls", "-Z"], ["put", "x"],
                      ["cat", "b/k", "--length", "0"], ["get", "b/", "--offset", "1"],
                      ["put", "-", "b"], ["put", "a", "b", "c/key"], ["object", "head", "b"],
                      ["rm", "b"], ["put", "x", "b/k", "--meta", "novalue"],
                      ["ls", "b/p", "--prefix", "q"], ["ls", "--watch=0"], ["ls", "--quiet=1"],
                      ["ls", "--endpoint", "ftp://x"], ["ls", "--endpoint", "http://h/path"],
                      ["ls", "--endpoint", ""], ["cat", "s3://b/k"]):
            self.run_ctl(*words, code=2)
            self.assertTrue(self.err.startswith("dfcctl: "), (words, self.err))
        self.assertEqual(self.mock.log, [])

    def test_usage_error_as_json(self):
        e = self.json_error("bucket", "create", code=2)
        self.assertEqual((e["code"], e["exit"]), ("invalid_argument", 2))

    def test_flags_anywhere_and_double_dash(self):
        self.mock.create("b", {"--limit": b"x"})
        self.assertEqual(self.run_ctl("--retries", "0", "cat", "--", "b/--limit"), b"x")
        self.assertEqual(self.run_ctl("-q", "object", "--units=raw", "cat", "b/--limit"), b"x")

    def test_version(self):
        for words in (["version"], ["--version"]):
            self.assertRegex(self.text(*words), r"^dfcctl \d+\.\d+\.\d+\n$")

    def test_documentation_is_made_from_the_table(self):
        with open(os.path.join(ROOT, "docs", "dfcctl.md"), "rb") as f:
            self.assertEqual(f.read(), self.run_ctl("help", "--markdown"),
                             "docs/dfcctl.md is stale: dfcctl help --markdown > docs/dfcctl.md")

    def test_full_standard_output_is_a_failure(self):
        with open("/dev/full", "wb") as full:
            p = subprocess.Popen([DFCCTL, "help"], stdout=full, stderr=subprocess.PIPE)
            err = p.communicate()[1]
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"No space left", err)


class Buckets(Case):
    def test_life(self):
        self.assertEqual(self.text("bucket", "create", "b", "--durability", "async"),
                         "created b\n")
        self.assertEqual(self.mock.buckets["b"][0]["durability"], "async")
        self.run_ctl("bucket", "create", "b", code=1)
        self.assertIn("bucket_exists", self.err)
        doc = self.json("bucket", "ls")
        self.assertEqual([b["name"] for b in doc["buckets"]], ["b"])
        lines = self.text("bucket", "ls").splitlines()
        self.assertRegex(lines[0], r"^BUCKET  COPIES  DURABILITY  CHECKSUM")
        self.assertRegex(lines[1], r"^b       1       async")
        self.run_ctl("bucket", "props", "b", "--verify-on-read", "true", "--copies=2")
        self.assertEqual(self.mock.buckets["b"][0]["verify_on_read"], True)
        self.assertEqual(self.json("bucket", "props", "b")["props"]["copies"], 2)
        self.run_ctl("bucket", "props", "none", code=3)

    def test_slices(self):
        self.run_ctl("bucket", "create", "b", "--ec", "4+2:64KiB")
        self.assertEqual(self.mock.buckets["b"][0]["ec"], "4+2:64KiB")
        self.mock.buckets["b"][0]["ec"] = {"data": 4, "parity": 2, "min_size": 65536}
        self.assertRegex(self.text("bucket", "ls").splitlines()[1], r"^b +ec 4\+2 +sync")

    def test_how_much_of_a_backend_is_here(self):
        self.mock.create("own", {"k": b"data"})
        self.json("bucket", "ls")
        self.assertEqual([r for r in self.mock.log if "what=cached" in r["path"]], [])
        self.mock.create("cache")
        self.mock.buckets["cache"][0]["backend"] = "http://h/"
        self.mock.summaries = [{"buckets": [{"name": "cache", "objects": 3, "bytes": 1024}]},
                               {"buckets": [{"name": "cache", "objects": 4, "bytes": 512}]}]
        buckets = {b["name"]: b for b in self.json("bucket", "ls")["buckets"]}
        self.assertEqual(buckets["cache"]["cached"], {"objects": 7, "bytes": 1536})
        self.assertNotIn("cached", buckets["own"])
        self.mock.summaries = [{"buckets": []}]
        self.assertRegex(self.text("bucket", "ls"), r"http://h/ +0 \(0 B\)")
        self.mock.plan({"method": "GET", "path": "what=cached", "do": "status", "status": 400, "times": 3})
        doc = self.json("bucket", "ls", code=6)
        self.assertEqual(doc["buckets"][0]["cached"], {"objects": 0, "bytes": 0, "missing": ["t1", "t2"]})
        self.run_ctl("bucket", "ls", code=6)
        self.assertIn("'t1' cannot tell what it has", self.err)

    def test_names_with_the_scheme(self):
        self.run_ctl("bucket", "create", "dfc://b")
        self.assertEqual(list(self.mock.buckets), ["b"])
        self.run_ctl("bucket", "props", "dfc://b")
        self.run_ctl("bucket", "rm", "dfc://b", "--yes")
        self.assertEqual(self.mock.buckets, {})

    def test_backend_is_refused_by_name(self):
        e = self.json_error("bucket", "create", "b", "--backend", "tape://x", code=1)
        self.assertEqual((e["code"], e["status"], e["node"]), ("not_supported", 501, "p1"))

    def test_rm_wants_confirmation(self):
        self.mock.create("b")
        self.run_ctl("bucket", "rm", "b", code=2)
        self.assertIn("--yes", self.err)
        self.assertIn("b", self.mock.buckets)
        self.assertEqual(self.json("bucket", "rm", "b", "--yes"), {"destroyed": ["b"]})
        self.assertEqual(self.mock.buckets, {})
        self.run_ctl("bucket", "rm", "b", "--yes", code=3)
        self.mock.create("b")
        self.run_ctl("bucket", "rm", "none", "b", "-y", code=6)

    def test_rm_asks_on_a_terminal(self):
        for answer, code, remains in ((b"n\n", 1, True), (b"\n", 1, True), (b"y\n", 0, False)):
            self.mock.create("b")
            output, got = terminal(self, ["bucket", "rm", "b"], answer)
            self.assertIn(b"Destroy bucket 'b' and everything in it? [y/N]", output)
            self.assertEqual((got, "b" in self.mock.buckets), (code, remains))


def terminal(case, words, keys=b"", **environment):
    """Run on a terminal of its own: everything that is shown, and the exit code."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(case.dir)
        os.execve(DFCCTL, [DFCCTL, *words], case.environment(TERM="xterm", **environment))
    if keys:
        os.write(fd, keys)
    shown = b""
    while True:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(fd)
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


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
        for key in ("a b", "ü/ñ", "100%", "a?b#c&d=e", "..", "a/../b", "x//y", "t/", "+", "\\", "~"):
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
                               stdout=subprocess.DEVNULL, env=self.environment())
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
        self.assertIn("bucket 'nobucket' does not exist (bucket_not_found, node t", self.err)
        self.run_ctl("put", "f", "b/k", "-m", "bad name=1", code=1)
        self.assertIn("is not a name for metadata", self.err)
        self.run_ctl("put", "f", "b/k", "-m", "n=a\r\nEvil: 1", code=1)
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
        self.run_ctl("cat", "b/k", "--offset", "100000", code=1)
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
        for before, r in zip(gets, gets[1:]):
            self.assertEqual(r["headers"]["if-match"], '"%s"' % self.mock.buckets["b"][1]["k"].version)
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
        self.run_ctl("cat", "b/k", code=1)  # a pipe cannot
        self.assertIn("precondition_failed", self.err)

    def test_damaged_download(self):
        data = pattern(300000)
        self.mock.create("b", {"k": data})
        self.mock.plan({"at": "target", "method": "GET", "do": "corrupt"})
        self.run_ctl("get", "b/k", "f")  # read once more
        self.assertEqual(self.read("f"), data)
        self.mock.plan({"at": "target", "method": "GET", "do": "corrupt"})
        self.run_ctl("cat", "b/k", code=1)
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
        self.assertEqual(self.json("get", "-r", "b/none", "dst")["done"], 0)


class Listing(Case):
    def setUp(self):
        super().setUp()
        keys = ["a", "a/b", "a/c", "b/1", "b/2", "ü", "z\x1b[31m"]
        self.mock.create("b", {k: k.encode() for k in keys})
        self.keys = sorted(keys, key=str.encode)

    def test_all_pages_in_order(self):
        for limit in (1, 2, 3, 100):
            self.mock.page_limit = limit
            doc = self.json("ls", "b")
            self.assertEqual([e["name"] for e in doc["entries"]], self.keys)
            self.assertEqual((doc["prefixes"], doc["incomplete"]), ([], False))

    def test_prefix_delimiter_start_after_limit(self):
        self.mock.page_limit = 2
        doc = self.json("ls", "b", "--delimiter", "/")
        self.assertEqual(doc["prefixes"], ["a/", "b/"])
        self.assertEqual([e["name"] for e in doc["entries"]], ["a", "z\x1b[31m", "ü"])
        self.assertEqual([e["name"] for e in self.json("ls", "b/a/")["entries"]], ["a/b", "a/c"])
        self.assertEqual([e["name"] for e in self.json("ls", "b", "--start-after", "a/c",
                                                       "-n", "2")["entries"]], ["b/1", "b/2"])
        self.assertEqual(self.json("ls", "b", "-n0")["entries"], [])

    def test_table_is_harmless(self):
        text = self.text("ls", "b")
        self.assertNotIn("\x1b", text)
        self.assertIn("z\\x1b[31m", text)
        self.assertRegex(text.splitlines()[0], r"^SIZE +MODIFIED +NAME$")
        self.assertEqual(len(self.text("ls", "b", "-H").splitlines()), len(self.keys))

    def test_empty_missing_and_partial(self):
        self.mock.create("empty")
        self.assertEqual(self.json("ls", "empty"),
                         {"entries": [], "prefixes": [], "incomplete": False})
        self.assertEqual(self.json_error("ls", "none", code=3)["code"], "bucket_not_found")
        self.assertTrue(self.json("ls", "b", "--partial")["incomplete"])
        self.run_ctl("ls", "b", "--partial")
        self.assertIn("incomplete", self.err)

    def test_failure_in_the_middle(self):
        self.mock.page_limit = 3
        self.mock.plan({"method": "GET", "path": "token=", "do": "status", "status": 500,
                        "code": "io_error"})
        doc = self.json("ls", "b", code=1)
        self.assertEqual((len(doc["entries"]), doc["incomplete"]), (3, True))
        self.assertEqual(json.loads(self.err)["error"]["code"], "io_error")

    def test_reader_that_goes_away(self):
        self.mock.create("b", {"%06d" % i: b"" for i in range(20000)})
        p = self.start("ls", "b")
        p.stdout.readline()
        p.stdout.close()
        self.assertEqual(p.stderr.read(), b"")
        p.stderr.close()
        p.stdin.close()
        self.assertIn(p.wait(timeout=30 * SLOW), (0, 1))

    def test_wait_sees_what_moves_between_targets(self):
        """Each look asks t1, then t2: nothing at the one, since it has not come yet, nothing at the other, which it has left."""
        def at(mark, pending=0):
            return {"buckets": [{"name": "b", "pending": pending}], "pending_mark": mark}

        self.mock.create("b")
        self.mock.summaries = [at("1"), at("7"),             # it moves from t2 to t1 meanwhile
                               at("2", pending=1), at("7"),
                               at("2"), at("7"),             # it moves back
                               at("2"), at("8"),
                               at("2"), at("8"), at("2"), at("8")]
        self.assertEqual(self.text("bucket", "wait", "b"), "b: nothing waits\n")
        asked = [r for r in self.mock.log if "what=summary" in r["path"]]
        self.assertEqual(len(asked), 12)
        self.mock.summaries = [at(str(i)) for i in range(1000)]
        self.run_ctl("bucket", "wait", "b", "--timeout", "1ms", code=5)
        self.assertIn("writes go on coming", self.err)

    def test_ls_without_bucket_and_watch(self):
        self.assertIn("BUCKET", self.text("ls"))
        self.assertEqual(self.text("ls", "--watch=0.1", "--count", "3").count("BUCKET"), 3)


class Trouble(Case):
    def setUp(self):
        super().setUp()
        self.mock.create("b", {"k": b"data"})

    def test_refusals_are_repeated(self):
        for step in ({"status": 503, "retry_after": 0}, {"status": 429, "retry_after": 1},
                     {"at": "target", "status": 503, "code": "overloaded"},
                     {"at": "target", "status": 409, "code": "stale_map"},
                     {"at": "target", "status": 504}):
            self.mock.plan(dict(step, do="status"))
            begin = time.monotonic()
            self.assertEqual(self.run_ctl("cat", "b/k"), b"data")
            self.assertGreaterEqual(time.monotonic() - begin, step.get("retry_after", 0))

    def test_attempts_are_bounded(self):
        self.mock.plan({"do": "status", "status": 503, "code": "not_ready", "times": 100})
        e = self.json_error("cat", "b/k", "--retries", "2", code=5)
        self.assertEqual((e["code"], e["status"], e["node"]), ("not_ready", 503, "p1"))
        self.assertEqual(len(self.mock.log), 3)

    def test_what_is_final_is_not_repeated(self):
        for status in (400, 401, 403, 404, 500, 501, 507):
            self.mock.log.clear()
            self.mock.plan({"do": "status", "status": status, "code": "x"})
            code = {401: 4, 403: 4, 404: 3}.get(status, 1)
            self.run_ctl("cat", "b/k", code=code)
            self.assertEqual(len(self.mock.log), 1, status)

    def test_a_creation_is_not_repeated_when_in_doubt(self):
        self.mock.plan({"method": "POST", "do": "act"})
        self.run_ctl("bucket", "create", "new", code=5)
        self.assertEqual(len(self.mock.requests(method="POST")), 1)
        self.mock.plan({"method": "POST", "do": "act"})
        self.run_ctl("sort", "start", "--input-bucket", "b", code=5)
        self.assertEqual(len(self.mock.jobs), 1)

    def test_a_refused_creation_is_repeated(self):
        self.mock.plan({"method": "POST", "do": "status", "status": 503})
        self.run_ctl("bucket", "create", "new")

    def test_a_file_is_put_again_after_a_cut(self):
        self.write("f", pattern(2 << 20))
        self.mock.plan({"at": "target", "method": "PUT", "do": "drop"})
        self.run_ctl("put", "f", "b/k")
        self.assertEqual(self.mock.objects("b")["k"], pattern(2 << 20))

    def test_a_conditional_put_is_not_put_again(self):
        self.write("f", b"1")
        self.mock.plan({"at": "target", "method": "PUT", "do": "act"})
        self.run_ctl("put", "f", "b/new", "--if-absent", code=5)
        self.assertEqual(len(self.mock.requests(at="target", method="PUT")), 1)

    def test_silence(self):
        self.mock.plan({"at": "target", "do": "stall", "seconds": 60, "times": 5})
        begin = time.monotonic()
        e = self.json_error("cat", "b/k", "--idle-timeout", "300ms", "--retries", "1", code=5)
        self.assertEqual(e["code"], "timeout")
        self.assertLess(time.monotonic() - begin, 20 * SLOW)

    def test_nobody_there(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
            e = self.json_error("ls", "--endpoint", "127.0.0.1:%d" % port, "--retries=0", code=5)
        self.assertEqual(e["code"], "network_error")
        self.assertNotIn("status", e)

    def test_next_endpoint(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            dead = "http://127.0.0.1:%d" % s.getsockname()[1]
            both = dead + ", " + self.mock.endpoint + "/"
            self.assertEqual(self.run_ctl("cat", "b/k", "--endpoint", both, "--retries", "1"),
                             b"data")

    def test_dead_target(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.mock.plan({"at": "proxy", "do": "status", "status": 307, "times": 2,
                            "location": "http://127.0.0.1:%d/v1/objects/b/k" % s.getsockname()[1]})
            self.assertEqual(self.run_ctl("cat", "b/k"), b"data")

    def test_redirect_loop_and_nowhere(self):
        self.mock.plan({"at": "proxy", "do": "status", "status": 307, "times": 100,
                        "location": "/v1/objects/b/k"})
        self.run_ctl("cat", "b/k", code=1)
        self.assertIn("redirects", self.err)
        self.mock.steps.clear()
        for location in ("ftp://x/y", "//host/x", ""):
            self.mock.plan({"at": "proxy", "do": "status", "status": 307, "location": location})
            self.run_ctl("cat", "b/k", code=1)
            self.assertIn("redirects to nowhere", self.err)

    def test_what_is_no_dfc(self):
        self.mock.plan({"do": "garbage", "times": 4})
        for words in (["bucket", "ls"], ["ls", "b"], ["job", "show", "j"], ["cluster", "status"]):
            self.run_ctl(*words, code=1)

    def test_an_endpoint_that_is_no_proxy(self):
        self.mock.plan({"do": "status", "status": 404, "code": "no_such_route"})
        self.run_ctl("bucket", "ls", code=1)
        self.assertIn("the endpoint has to be a proxy's public address", self.err)

    def test_interrupt(self):
        self.mock.plan({"at": "target", "do": "stall", "seconds": 60})
        p = self.start("get", "b/k", "f")
        deadline = time.monotonic() + 30 * SLOW
        while self.mock.steps and time.monotonic() < deadline:
            select.select([], [], [], 0.01)
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=30 * SLOW)
        self.assertEqual((p.returncode, self.files()), (130, []), err)

    def test_interrupt_of_standard_input(self):
        p = self.start("put", "-", "b/new")
        p.stdin.write(b"x")
        p.stdin.flush()
        deadline = time.monotonic() + 30 * SLOW
        while time.monotonic() < deadline:  # until it waits for more
            with open("/proc/%d/wchan" % p.pid) as f:
                if "pipe" in f.read():
                    break
            with open("/proc/%d/stat" % p.pid) as f:
                if f.read().rsplit(") ", 1)[1][0] == "S":
                    break
        p.send_signal(signal.SIGINT)
        err = p.communicate(timeout=30 * SLOW)[1]
        self.assertEqual(p.returncode, 130, err)
        self.assertNotIn("new", self.mock.objects("b"))


class ClusterAndJobs(Case):
    def test_status_and_nodes(self):
        text = self.text("cluster", "status")
        self.assertIn("Cluster mock, state 1.12, primary p1", text)
        self.assertRegex(text, r"NODE +ROLE +STATE +URL +TOTAL +AVAILABLE +SINCE")
        self.assertRegex(text, r"p1 \[P\]  proxy +active")
        self.assertIn("1 TiB", text)
        self.assertIn("Health: green; 1 of 1 proxies and 2 of 2 targets active", text)
        self.assertIn(str(1 << 40), self.text("node", "ls", "--units", "raw"))
        self.assertEqual(self.json("cluster", "status")["primary"], "p1")
        self.assertEqual(len(self.json("node", "ls")["nodes"]), 3)
        self.assertEqual(self.json("node", "show", "t2")["id"], "t2")
        self.assertEqual(self.json("node", "show", "t1", "--what", "stats")["what"], "stats")
        self.assertRegex(self.text("node", "show", "t1"), r"role +target")
        self.run_ctl("node", "show", "t9", code=3)

    def spec(self):
        return next(iter(self.mock.jobs.values()))["spec"]

    def test_sort_start_by_flags(self):
        ident = self.text("sort", "start", "--input-bucket", "in", "--template", "s-{0..9}.tar",
                          "--output-bucket", "out", "--output-format", "o-%06d.tar",
                          "--shard-size", "10KB", "--algorithm", "shuffle", "--seed", "7",
                          "--decreasing", "--dry-run", "--missing-shards", "warn",
                          "--description", "nightly", "--key-rule", "last_dot").strip()
        self.assertRegex(ident, r"^srt-\d+$")
        self.assertEqual(self.spec(), {
            "input_bck": {"name": "in"}, "output_bck": {"name": "out"},
            "input_format": {"template": "s-{0..9}.tar"}, "output_format": "o-%06d.tar",
            "output_shard_size": 10240, "dry_run": True, "missing_shards": "warn",
            "algorithm": {"kind": "shuffle", "seed": "7", "decreasing": True},
            "description": "nightly", "key_rule": "last_dot"})

    def test_sort_start_by_file(self):
        spec = {"input_bck": {"name": "in"}, "input_format": {"prefix": "p/"},
                "output_shard_size": "10KB", "algorithm": {"kind": "none"}, "dry_run": False,
                "max_mem_usage": "60%", "extract_concurrency_max_limit": 0}
        yaml = b"""# a comment
input_bck: {name: in}
input_format:
    prefix: p/
output_shard_size: 10KB
algorithm:
    kind: "none"
dry_run: false
max_mem_usage: 60%
extract_concurrency_max_limit: 0
"""
        self.write("s.json", json.dumps(spec).encode())
        self.write("s.yaml", yaml)
        for words, stdin in ((["s.json"], b""), (["s.yaml"], b""), (["-"], yaml)):
            self.mock.jobs.clear()
            self.assertIn("id", self.json("sort", "start", *words, stdin=stdin))
            self.assertEqual(self.spec(), spec)
        self.mock.jobs.clear()
        self.run_ctl("sort", "start", "s.yaml", "--algorithm", "shuffle", "--seed", "3")
        self.assertEqual(self.spec()["algorithm"], {"kind": "shuffle", "seed": "3"})
        self.assertEqual(self.json_error("sort", "start", code=1)["code"], "invalid_spec")

    def test_bad_specifications(self):
        for text in (b"{", b"- a\n- b\n", b"a: 1\na: 2\n", b"a: &x 1\nb: *x\n", b"a: !!int 1\n",
                     b"a: [1\n", b"--- {a: 1}\n--- {b: 2}\n", b"", b"? [a]\n: 1\n", b"a: \xff\n",
                     b"[" * 100, b'{"a":1,"a":2}', b"a:\n" + b" x" * 50 + b": 1\n  y: [}"):
            self.run_ctl("sort", "start", "-", stdin=text, code=2)
        self.run_ctl("sort", "start", "missing.yaml", code=1)
        self.run_ctl("sort", "start", "-", "--algorithm", "none", stdin=b"algorithm: 3\n", code=2)
        self.assertEqual(self.mock.log, [])

    def test_wait(self):
        out = self.text("sort", "start", "--input-bucket", "b", "--wait")
        self.assertRegex(out, r"^srt-\d+ finished\n$")
        self.mock.job_end = "failed"
        out = self.text("sort", "start", "--input-bucket", "b", "--wait", code=1)
        self.assertRegex(out, r"^srt-\d+ failed\n$")
        self.assertIn("failed: shard 'a.tar' is missing (shard_missing)", self.err)
        doc = self.json("sort", "start", "--input-bucket", "b", "--wait", code=1)
        self.assertEqual(doc["state"], "failed")
        self.mock.job_end = "finished"
        self.mock.job_warnings = ["t1: the input has no records"] + ["w"] * 30
        self.run_ctl("sort", "start", "--input-bucket", "b", "--wait")
        self.assertIn("warning: t1: the input has no records\n", self.err)
        self.assertIn("21 more warnings: dfcctl job show srt-", self.err)
        self.run_ctl("job", "wait", "srt-none", code=3)

    def test_sort_plan(self):
        shown = self.text("sort", "plan", "--input-bucket", "b")
        self.assertIn("dry run", shown)
        self.assertEqual(self.spec(), {"input_bck": {"name": "b"}, "dry_run": True})
        self.assertEqual(self.json("sort", "plan", "--input-bucket", "b")["state"], "finished")
        self.mock.job_end = "failed"
        self.run_ctl("sort", "plan", "--input-bucket", "b", code=1)
        self.assertIn("failed: shard 'a.tar' is missing (shard_missing)", self.err)
        self.run_ctl("sort", "plan", "--input-bucket", "b", "--wait", code=2)

    def tar(self, name, *members):
        with tarfile.open(self.write(name, b""), "w") as t:
            for member in members:
                info = tarfile.TarInfo(member)
                info.size = 3
                t.addfile(info, io.BytesIO(b"abc"))

    def members(self, name):
        with tarfile.open(self.path(name)) as t:
            return t.getnames()

    def test_sort_local(self):
        self.tar("in/a.tar", "3.txt", "1.txt")
        self.tar("in/b.tar", "2.txt", "4.txt")
        out = self.path("out")
        words = ("sort", "local", "--in", self.path("in"), "--out", out, "--prefix", "",
                 "--shard-size", "1MiB")
        shown = self.text(*words, "--output-format", "o-%d.tar")
        self.assertEqual(shown, "1 shards, 4 records, 4 KiB\n")
        self.assertEqual(os.listdir(out), ["o-0.tar"])
        self.assertEqual(self.members("out/o-0.tar"), ["1.txt", "2.txt", "3.txt", "4.txt"])
        self.assertEqual(self.json_error(*words, "--output-format", "o-%d.tar", code=1)["code"],
                         "object_exists")
        shown = self.text(*words, "--output-format", "s-%d.tar", "--algorithm", "shuffle",
                          "--dry-run")
        self.assertRegex(shown, "nothing is stored, seed [0-9]+\n$")
        self.assertEqual(os.listdir(out), ["o-0.tar"])
        keys = self.write("keys", b"1\tx-%d\n2\ty-%d\n3\tx-%d\n4\ty-%d\n")
        spec = self.write("s.yaml", b"ekm_file: " + keys.encode() + b"\n")
        doc = self.json(*words, spec, "--max-mem", "1MiB", "--threads", "1")
        self.assertEqual((doc["phase"], doc["plan"]["shards"]), ("done", 2))
        self.assertEqual(self.members("out/y-0.tar"), ["2.txt", "4.txt"])
        self.run_ctl(*words, "--output-format", "../f-%d.tar", code=1)
        self.assertIn("has the part '..'", self.err)
        self.assertIn("(invalid_argument)", self.err)
        self.write("in/c.tar", b"no tar")
        self.run_ctl(*words, "--output-format", "f-%d.tar", code=1)
        self.assertIn("(shard_corrupt)", self.err)
        self.assertEqual(sorted(os.listdir(out)), ["o-0.tar", "x-0.tar", "y-0.tar"])
        self.run_ctl("sort", "local", "--in", self.path("in"), code=2)
        self.run_ctl(*words, "--input-bucket", "b", code=2)

    def test_what_a_sort_shows(self):
        ident = self.text("sort", "start", "--input-bucket", "b").strip()
        self.mock.jobs[ident]["plan"] = {
            "shards": 3, "records": 60, "bytes": 3 << 20, "moved_bytes": 1 << 20,
            "moved_bytes_hrw": 2 << 20, "moved_bytes_locality": 5 << 20}
        self.mock.jobs[ident]["targets"] = {"t1": {"status": {
            "phase": "creating",
            "extract": {"shards": {"done": 4, "total": 5}, "records": 77, "spilled_bytes": 2048},
            "create": {"shards": {"done": 1, "total": 2},
                       "bytes": {"local": 1024, "remote": 3 << 20}}}}}
        shown = self.text("sort", "status", ident)
        self.assertIn("3 shards, 60 records, 3 MiB", shown)
        self.assertIn("1 MiB between targets (built by owners: 2 MiB; where most of it lies: "
                      "5 MiB)", shown)
        self.assertIn("creating: read 4/5 shards (77 records), built 1/2 (1 KiB of here, 3 MiB "
                      "of others), 2 KiB in work files", shown)

    def test_what_a_job_shows(self):
        self.mock.job_end = "failed"
        ident = self.text("sort", "start", "--input-bucket", "b", "--dry-run").strip()
        self.mock.jobs[ident]["targets"] = {"t1": {"status": {"phase": "merging"}}}
        self.run_ctl("job", "wait", ident, code=1)
        shown = self.text("sort", "status", ident)
        self.assertRegex(shown, r"\ndry run +nothing is stored\n")
        self.assertRegex(shown, r"\ntarget t1 +merging, when it ended\n")

    def test_wait_timeout_and_interrupt(self):
        self.mock.job_pace = 0
        ident = self.json("sort", "start", "--input-bucket", "b")["id"]
        self.run_ctl("job", "wait", ident, "--timeout", "200ms", code=5)
        self.assertIn("timeout", self.err)
        self.mock.log.clear()
        p = self.start("job", "wait", ident)
        deadline = time.monotonic() + 30 * SLOW
        while len(self.mock.log) < 2 and time.monotonic() < deadline:
            select.select([], [], [], 0.01)
        p.send_signal(signal.SIGINT)
        err = p.communicate(timeout=30 * SLOW)[1].decode()
        self.assertEqual(p.returncode, 130)
        self.assertIn("goes on", err)
        self.assertEqual(self.mock.jobs[ident]["state"], "queued")

    def test_jobs(self):
        ident = self.json("sort", "start", "--input-bucket", "b", "--description", "nightly")["id"]
        self.assertRegex(self.text("job", "ls"), r"%s +sort +queued +0%% .* nightly" % ident)
        self.assertEqual(self.json("job", "ls", "--state", "failed")["jobs"], [])
        self.assertEqual(len(self.json("sort", "ls", "--regex", "^night")["jobs"]), 1)
        self.assertEqual(self.json("sort", "status", "--regex", "day")["jobs"], [])
        shown = self.text("job", "show", ident, "--watch=0.1")
        self.assertIn("finished", shown)
        self.assertGreater(shown.count("state"), 2)
        self.assertRegex(self.text("sort", "status", ident), r"state +finished")
        self.run_ctl("job", "abort", ident, code=1)
        self.assertIn("job_state", self.err)
        self.run_ctl("sort", "rm", ident)
        self.run_ctl("sort", "status", ident, code=3)
        ident = self.json("sort", "start", "--input-bucket", "b")["id"]
        self.assertEqual(self.json("sort", "abort", ident), {"aborting": ident})
        self.assertEqual(self.mock.jobs[ident]["state"], "aborted")

    def test_progress_only_on_a_terminal(self):
        self.run_ctl("sort", "start", "--input-bucket", "b", "--wait")
        self.assertNotIn("\r", self.err)
        shown, code = terminal(self, ["sort", "start", "--input-bucket", "b", "--wait"])
        self.assertEqual(code, 0)
        self.assertRegex(shown, rb"srt-\d+ \[[#.]{24}\] +\d+% ")
        shown, code = terminal(self, ["sort", "start", "--input-bucket", "b", "--wait", "-q"])
        self.assertNotIn(b"[", shown)

    def test_colour_only_on_a_terminal(self):
        self.assertNotIn("\x1b", self.text("node", "ls"))
        self.assertIn(b"\x1b[32mactive", terminal(self, ["node", "ls"])[0])
        shown = terminal(self, ["node", "ls"], NO_COLOR="1")[0]
        self.assertIn(b"active", shown)
        self.assertNotIn(b"\x1b", shown)


class Completion(Case):
    def offers(self, *words):
        return self.text("__complete", "--", *words).split("\n")[:-1]

    def test_table(self):
        self.assertIn("bucket", self.offers("b"))
        self.assertEqual(self.offers("bucket", "c"), ["create", "cp"])
        self.assertEqual(self.offers("ls", "--lim"), ["--limit"])
        self.assertEqual(self.offers("ls", "-o", ""), ["table", "json"])
        self.assertEqual(self.offers("ls", "--output=j"), ["--output=json"])
        self.assertEqual(self.offers("put", ""), ["@files"])
        self.assertEqual(self.offers("help", "job"), ["job"])
        self.assertEqual(self.offers("nonsense", "x", "y"), [])
        self.assertNotIn("__complete", self.offers(""))

    def test_live_names(self):
        self.mock.create("train", {"a/1": b"", "a/2": b"", "k": b""})
        self.mock.create("test")
        ident = self.json("sort", "start", "--input-bucket", "b")["id"]
        self.assertEqual(self.offers("bucket", "rm", "t"), ["test", "train"])
        self.assertEqual(self.offers("cat", "tr"), ["train/"])
        self.assertEqual(self.offers("cat", "train/"), ["train/a/", "train/k"])
        self.assertEqual(self.offers("-o", "json", "cat", "dfc://train/a/"),
                         ["dfc://train/a/1", "dfc://train/a/2"])
        self.assertEqual(self.offers("node", "show", "t"), ["t1", "t2"])
        self.assertEqual(self.offers("job", "abort", ""), [ident])

    def test_bash(self):
        bash = shutil.which("bash")
        if bash is None:
            self.skipTest("there is no bash")
        self.mock.create("train", {"a/1": b""})
        self.write("file-here", b"")

        def replies(line):
            script = self.text("completion", "bash") + """
compopt() { :; }
COMP_LINE=%s COMP_POINT=${#COMP_LINE}
_dfcctl
printf '%%s\\n' "${COMPREPLY[@]}"
""" % json.dumps(line)
            env = self.environment(PATH=os.path.dirname(DFCCTL) + ":" + os.environ["PATH"])
            out = subprocess.run([bash, "-c", script], cwd=self.dir, env=env,
                                 stdout=subprocess.PIPE, check=True).stdout.decode()
            return out.split("\n")[:-1]

        self.assertEqual(replies("dfcctl bucket cr"), ["create"])
        self.assertEqual(replies("dfcctl cat dfc://train/a"), ["//train/a/"])
        self.assertEqual(replies("dfcctl ls --output=j"), ["json"])
        self.assertEqual(replies("dfcctl put fi"), ["file-here"])


if __name__ == "__main__":
    unittest.main()
