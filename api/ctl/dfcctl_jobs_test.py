#!/usr/bin/env python3
"""dfcctl's view of a cluster's nodes, and of sorts and other jobs: starts, waits, progress.

DFC_BUILD names the build directory.  Python's standard library only."""
import io
import json
import os
import select
import signal
import sys
import tarfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
from dfcctl_case import Case, SLOW, terminal  # noqa: E402


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

    def test_the_health_is_what_the_cluster_says(self):
        self.assertEqual(self.json("cluster", "health"), {"health": "green", "reasons": []})
        reason = {"health": "red", "node": "t1", "text": "the cluster has its own reason"}
        self.mock.verdict = {"health": "red", "reasons": [reason]}
        self.assertIn("Health: red;", self.text("cluster", "status"))
        self.assertIn(reason["text"], self.text("cluster", "health", code=1))
        self.assertEqual(self.json("cluster", "health", code=1), self.mock.verdict)

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
        self.assertEqual(self.json_error("sort", "start", code=2)["code"], "invalid_spec")
        self.run_ctl("sort", "start", code=2)
        self.assertIn("field 'input_bck' is missing (flag: --input-bucket)", self.err)

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
        self.assertRegex(self.err, r"^srt-\d+\n$")
        self.mock.job_end = "failed"
        out = self.text("sort", "start", "--input-bucket", "b", "--wait", code=1)
        self.assertRegex(out, r"^srt-\d+ failed\n$")
        self.assertIn("failed: shard 'a.tar' is missing\n", self.err)
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
        self.assertIn("failed: shard 'a.tar' is missing\n", self.err)
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

    def test_sort_flags_of_content_and_key_maps(self):
        self.run_ctl("sort", "start", "--algorithm", "content", "--extension", ".cls",
                     "--content-key-type", "int", "--missing-keys", "warn", "--unreadable-shards",
                     "ignore", "--allow-empty", "--ekm-file", "dfc://b/keys", "--ekm-file-sep", " ",
                     "--input-bucket", "b")
        spec = self.spec()
        self.assertEqual(spec["algorithm"],
                         {"kind": "content", "extension": ".cls", "content_key_type": "int"})
        self.assertEqual([
            spec[f] for f in ("ekm_file", "ekm_file_sep", "missing_keys", "unreadable_shards",
                              "allow_empty")
        ], ["dfc://b/keys", " ", "warn", "ignore", True])

    def test_sort_local_below_links(self):
        os.makedirs(self.path("real/deep"))
        os.makedirs(self.path("in"))
        os.symlink(self.path("real"), self.path("in/link"))
        self.tar("real/deep/a.tar", "1.txt")
        words = [
            "sort", "local", "--in",
            self.path("in"), "--out",
            self.path("out"), "--shard-size", "1MiB", "--output-format", "o-%d.tar"
        ]
        self.run_ctl(*words, "--prefix", "none", code=4)
        self.assertIn("prefix 'none' matches no '.tar' shard", self.err)
        self.run_ctl(*words, "--prefix", "link/deep/")
        self.assertEqual(self.members("out/o-0.tar"), ["1.txt"])
        os.symlink(self.path("in"), self.path("real/deep/loop"))
        os.remove(self.path("out/o-0.tar"))
        self.run_ctl(*words, "--prefix", "", code=2)
        self.assertIn("is a symbolic link to a directory above it", self.err)

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
        self.run_ctl(*words, "--output-format", "../f-%d.tar", code=2)
        self.assertIn("has the part '..'", self.err)
        self.write("in/c.tar", b"no tar")
        self.run_ctl(*words, "--output-format", "f-%d.tar", "-v", code=1)
        self.assertIn("(code shard_corrupt)", self.err)
        self.assertEqual(sorted(os.listdir(out)), ["o-0.tar", "x-0.tar", "y-0.tar"])
        self.run_ctl("sort", "local", "--in", self.path("in"), code=2)
        self.run_ctl("sort", "local", "--in", self.path("in"), "--out", out, code=2)
        self.assertIn("field 'input_format' is missing (flag: --template or --prefix)", self.err)
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
        self.assertIn(
            "1 MiB between targets (if owners built all shards: 2 MiB; if each were built "
            "where most of its bytes are: 5 MiB)", shown)
        self.assertIn("creating: read 4/5 shards (77 records), built 1/2 (1 KiB local, 3 MiB "
                      "from other targets), 2 KiB in work files", shown)

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
        self.assertIn("has not ended after", self.err)
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
        self.run_ctl("job", "abort", ident, "-v", code=1)
        self.assertIn("code job_state", self.err)
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


if __name__ == "__main__":
    unittest.main()
