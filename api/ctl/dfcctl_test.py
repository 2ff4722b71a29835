#!/usr/bin/env python3
"""dfcctl's command line, buckets, lists and completion, against a cluster of Python that follows
the HTTP
contract and misbehaves on demand (api/testing).

DFC_BUILD names the build directory.  Python's standard library only."""
import json
import os
import shutil
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "api", "testing"))
from dfcctl_case import Case, DFCCTL, SLOW, terminal  # noqa: E402


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
            self.assertRegex(self.text(*words),
                             r"^dfcctl \d+\.\d+\.\d+( \([0-9a-f]+(\+changes)?\))?"
                             r", built \d{4}-\d\d-\d\d\n$")

    def test_documentation_is_made_from_the_table(self):
        with open(os.path.join(ROOT, "docs", "reference", "dfcctl.md"), "rb") as f:
            self.assertEqual(
                f.read(), self.run_ctl("help", "--markdown"),
                "docs/reference/dfcctl.md is stale: dfcctl help --markdown > "
                "docs/reference/dfcctl.md"
            )

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
        self.assertEqual(self.err, "dfcctl: bucket 'b' exists\n")
        self.run_ctl("bucket", "create", "b", "-v", code=1)
        self.assertRegex(self.err, r"\ndfcctl: \(code bucket_exists, node p1, request \S+\)\n$")
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
        self.mock.plan(
            {"method": "GET", "path": "what=cached", "do": "status", "status": 400, "times": 3})
        doc = self.json("bucket", "ls", code=6)
        self.assertEqual(doc["buckets"][0]["cached"],
                         {"objects": 0, "bytes": 0, "missing": ["t1", "t2"]})
        self.run_ctl("bucket", "ls", code=6)
        self.assertIn("'t1' does not report its objects", self.err)

    def test_names_with_the_scheme(self):
        self.run_ctl("bucket", "create", "dfc://b")
        self.assertEqual(list(self.mock.buckets), ["b"])
        self.run_ctl("bucket", "props", "dfc://b")
        self.run_ctl("bucket", "rm", "dfc://b", "--yes")
        self.assertEqual(self.mock.buckets, {})

    def test_backend_is_refused_by_name(self):
        e = self.json_error("bucket", "create", "b", "--backend", "tape://x", code=2)
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
        self.mock.plan({"method": "GET", "path": "/v1/objects/b", "do": "status", "status": 503,
                        "code": "node_unreachable"})
        self.run_ctl("ls", "b", "--retries", "0", code=5)
        self.assertIn("--partial lists what the other targets have", self.err)

    def test_a_prefix_of_nothing(self):
        for words in (["b/zzz"], ["b", "--prefix", "zzz"], ["b/zzz", "--delimiter",
                                                            "/"], ["b/zzz", "-n", "3"]):
            self.assertEqual(self.text("ls", *words, code=4), "")
            self.assertEqual(self.err, "dfcctl: no object has a name that begins with 'zzz' "
                                       "(--allow-empty accepts that)\n")
            self.assertEqual(self.json("ls", *words, "--allow-empty")["entries"], [])
        self.assertEqual(self.json("ls", "b/zzz", code=4)["entries"], [])
        self.assertEqual(json.loads(self.err)["error"]["code"], "nothing_matched")
        for words in (["b/"], ["b", "--prefix", ""], ["b/a", "--start-after", "a/zzz"],
                      ["b/zzz", "-n0"], ["b/zzz", "--partial"], ["b/a/", "--delimiter", "/"]):
            self.run_ctl("ls", *words)

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
        """Each look asks t1, then t2: nothing at the one, since it has not come yet, nothing at the
        other, which it has left."""
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

    def test_summary_of_a_bucket_that_does_not_exist(self):
        self.mock.create("b")
        self.run_ctl("storage", "summary", "b")
        self.run_ctl("storage", "summary", "c", code=3)
        self.assertIn("bucket 'c' does not exist", self.err)

    def test_ls_without_bucket_and_watch(self):
        self.assertIn("BUCKET", self.text("ls"))
        self.assertEqual(self.text("ls", "--watch=0.1", "--count", "3").count("BUCKET"), 3)


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

    def test_live_names_of_flags(self):
        self.mock.create("train")
        self.mock.create("test")
        self.assertEqual(self.offers("sort", "start", "--input-bucket", "tr"), ["train"])
        self.assertEqual(self.offers("sort", "start", "--output-bucket=t"),
                         ["--output-bucket=test", "--output-bucket=train"])
        self.assertEqual(self.offers("config", "show", "--node", "t"), ["t1", "t2"])

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
        evil = "e$(touch PWNED)"
        self.mock.create("evil", {evil: b""})
        self.assertEqual(
            subprocess.run([bash, "-c", "echo " + replies("dfcctl cat evil/e")[0]], cwd=self.dir,
                           stdout=subprocess.PIPE, check=True).stdout.decode(),
            "evil/" + evil + "\n")
        self.assertFalse(os.path.exists(self.path("PWNED")), "a completed name was run")

    def in_shell(self, shell, script):
        """The lines that a script prints, with the programs of this build in its PATH."""
        program = shutil.which(shell)
        if program is None:
            self.skipTest(f"there is no {shell}")
        env = self.environment(PATH=os.path.dirname(DFCCTL) + ":" + os.environ["PATH"],
                               HOME=self.dir)
        option = ["-f"] if shell == "zsh" else []
        out = subprocess.run([program, *option, "-c", script], cwd=self.dir, env=env,
                             stdout=subprocess.PIPE, check=True).stdout.decode()
        return out.split("\n")[:-1]

    def test_bash_completes_the_options_of_daemons(self):
        found = self.in_shell("bash", self.text("completion", "bash") + """
compopt() { :; }
_dfc_daemon dfc-targetd --mountpath_
_dfc_daemon dfc-targetd --mountpath-r
printf '%s\\n' "${COMPREPLY[@]}"
""")
        self.assertEqual(found, ["--mountpath-roots="])

    def test_zsh(self):
        self.mock.create("train", {"a/1": b""})
        script = self.text("completion", "zsh") + """
compadd() { while [[ $1 != -- ]]; do shift; done; shift; print -rl -- "$@" | grep -- "^$PREFIX" }
_files() { print files }
_gnu_generic() { print generic }
ask() { words=("$@"); CURRENT=$#; PREFIX=$words[$#]; _dfcctl }
"""

        def replies(*words):
            return self.in_shell("zsh", script + "ask " + " ".join(f"'{w}'" for w in words))

        self.assertEqual(replies("dfcctl", "bucket", "cr"), ["create"])
        self.assertEqual(replies("dfcctl", "cat", "dfc://train/a"), ["dfc://train/a/"])
        self.assertEqual(replies("dfcctl", "ls", "--output=j"), ["--output=json"])
        self.assertEqual(replies("dfcctl", "put", "fi"), ["files"])
        self.assertEqual(replies("dfc-proxyd", "--x"), ["generic"])

    def test_fish(self):
        self.mock.create("train", {"a/1": b""})
        self.write("file-here", b"")
        script = self.text("completion", "fish")

        def replies(line):
            return self.in_shell("fish", script + f"complete -C '{line}'")

        self.assertEqual(replies("dfcctl bucket cr"), ["create"])
        self.assertEqual(replies("dfcctl cat dfc://train/a"), ["dfc://train/a/"])
        self.assertEqual(replies("dfcctl ls --output=j"), ["--output=json"])
        self.assertEqual(replies("dfcctl put fi"), ["file-here"])
        self.assertIn("node", replies("dfcctl "))
        self.assertIn("--mountpath-roots=", replies("dfc-targetd --mountpath-r"))

    def test_a_shell_without_a_script_is_refused(self):
        self.run_ctl("completion", "tcsh", code=2)
        self.assertIn("only for bash, fish and zsh", self.err)


if __name__ == "__main__":
    unittest.main()
