#!/usr/bin/env python3
"""dfcctl: what people and scripts do with it."""

import io
import json
import os
import random
import shutil
import subprocess
import tarfile
import tempfile
import time

from lib import check, equal, main, wait_for

OK, FAILED, USAGE, NOT_FOUND, UNREACHABLE, PARTIAL = 0, 1, 2, 3, 5, 6


def run(c, *args, status=OK, **options):
    done = c.dfcctl(*args, **options)
    if done.returncode != status:
        check(False, f"dfcctl {' '.join(map(str, args))}: status {done.returncode}, wanted {status}: "
                     f"{done.stdout}{done.stderr}")
    return done


def run_json(c, *args, **options):
    out = run(c, *args, "-o", "json", **options).stdout
    try:
        return json.loads(out)
    except ValueError:
        return [json.loads(line) for line in out.splitlines()]


def test_help_and_usage(c):
    for args in (("help",), ("--help",), ("help", "object", "put"), ("sort", "start", "--help"),
                 ("version",), ("completion", "bash")):
        check(run(c, *args).stdout, f"{args} prints nothing")
    for args in (("objct", "ls"), ("object", "frobnicate"), ("put",), ("ls", "--nonsense"),
                 ("bucket", "create"), ("ls", "-o", "xml"), ("ls", "b", "--limit", "ten")):
        done = run(c, *args, status=USAGE)
        check(done.stderr and not done.stdout, f"{args}: a wrong command line is explained")
    check("object" in run(c, "objct", "ls", status=USAGE).stderr, "a misspelt noun is corrected")


def test_buckets(c):
    run(c, "bucket", "create", "b")
    run(c, "bucket", "create", "b", status=FAILED)
    run(c, "bucket", "create", "quick", "--durability", "async", "--checksum", "md5")
    equal(c.get_json("/v1/buckets/quick")["props"]["checksum"], "md5", "checksum")
    check("quick" in run(c, "bucket", "ls").stdout, "bucket ls")
    check("quick" in json.dumps(run_json(c, "bucket", "ls")), "bucket ls -o json")
    run(c, "bucket", "props", "quick", "--durability", "sync")
    equal(c.get_json("/v1/buckets/quick")["props"]["durability"], "sync", "durability")
    run(c, "bucket", "rm", "quick", status=USAGE)
    run(c, "bucket", "rm", "quick", "--yes")
    run(c, "bucket", "props", "quick", status=NOT_FOUND)


def tar_of(**contents):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, text in contents.items():
            info = tarfile.TarInfo(name + ".txt")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def test_sort_verify(c):
    c.create("shards")
    c.put("shards", "s-0.tar", tar_of(c="3", a="1"))
    c.put("shards", "s-1.tar", tar_of(b="2"))
    job = run(c, "sort", "start", "--input-bucket", "shards", "--template", "s-{0..1}.tar", "--output-format",
              "o-%d.tar", "--shard-size", "1MiB", "--wait").stdout.split()[0]
    shown = run(c, "sort", "verify", job).stdout
    equal(shown, f"{job}: 1 shards, 3 records: the input's, each in its place\n", "what is right")
    right = c.get("shards", "o-0.tar").expect(200).body
    c.put("shards", "o-0.tar", right[:1024] + right[2048:3072] + right[1024:2048] + right[3072:])
    doc = run_json(c, "sort", "verify", job, status=FAILED)
    equal((doc["same_records"], doc["same_order"]), (True, False), f"of another order: {doc}")
    equal(doc["difference"], "output shard 'o-0.tar' has 'c.txt' where record 'b' belongs", "difference")
    c.put("shards", "o-0.tar", right)
    second = c.get_json(f"/v1/jobs/{job}")["created_ms"] // 1000
    wait_for(lambda: time.time() >= second + 1, "another second: times of objects are told in seconds")
    c.put("shards", "s-1.tar", tar_of(b="other"))
    done = run(c, "sort", "verify", job, status=FAILED)
    check("not the input's\n" in done.stdout and "where record 'b' belongs, with other" in done.stdout, done.stdout)
    check("1 input shards are younger than the sort, 's-1.tar' the first" in done.stderr, done.stderr)
    run(c, "rm", "shards/s-1.tar")
    done = run(c, "sort", "verify", job, status=FAILED)
    check("'shards/s-1.tar' does not exist" in done.stderr, done.stderr)
    run(c, "sort", "verify", "srt-none", status=NOT_FOUND)


def test_one_object(c):
    with tempfile.TemporaryDirectory(prefix="dfc-test-") as d:
        source, back = os.path.join(d, "s.bin"), os.path.join(d, "back.bin")
        data = random.Random(1).randbytes(3000000)
        with open(source, "wb") as f:
            f.write(data)
        run(c, "put", source, "b/dir/s.bin", "-m", "colour=blue", "--content-type", "x/y")
        run(c, "get", "b/dir/s.bin", back)
        with open(back, "rb") as f:
            check(f.read() == data, "the object came back changed")
        run(c, "put", source, "dfc://b/", "-q")
    head = run_json(c, "object", "head", "b/dir/s.bin")
    check("blue" in json.dumps(head) and "x/y" in json.dumps(head), f"head: {head}")
    equal(c.names("b"), ["dir/s.bin", "s.bin"], "names")
    check(run(c, "cat", "b/s.bin", text=False).stdout == data, "cat")
    check(run(c, "get", "b/s.bin", "-", "--offset", "10", "--length", "5", text=False).stdout
          == data[10:15], "a range")
    run(c, "object", "put", "-", "b/stdin", input="from stdin")
    equal(c.get("b", "stdin").body, b"from stdin", "contents")
    run(c, "rm", "b/stdin")
    run(c, "rm", "b/stdin", status=NOT_FOUND)
    run(c, "get", "b/nothing", "-", status=NOT_FOUND)
    run(c, "get", "nobucket/x", "-", status=NOT_FOUND)
    run(c, "object", "put", "-", "b/s.bin", "--if-absent", input="x", status=FAILED)


def make_tree(top):
    tree = {"a.txt": b"a", "empty": b"", "sub/b.txt": b"b" * 100000, "sub/deep/er/é 猫.bin": b"c",
            "sub/.hidden": b"h"}
    tree.update({f"many/{i:03d}": b"%d" % i for i in range(150)})
    for name, data in tree.items():
        path = os.path.join(top, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
    return tree


def read_tree(top):
    found = {}
    for at, _, files in os.walk(top):
        for name in files:
            path = os.path.join(at, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, top)] = f.read()
    return found


def test_whole_directories(c):
    run(c, "bucket", "create", "trees")
    with tempfile.TemporaryDirectory(prefix="dfc-test-") as d:
        tree = make_tree(os.path.join(d, "in"))
        run(c, "put", os.path.join(d, "in"), "trees/x", "-j", 4)
        equal(c.names("trees"), sorted((f"x/{n}" for n in tree), key=str.encode), "names")
        run(c, "get", "-r", "trees/x", os.path.join(d, "out"))
        got = read_tree(os.path.join(d, "out"))
        check(got == tree, f"the tree came back changed: {sorted(set(got) ^ set(tree))[:5]}")
        os.symlink("nowhere", os.path.join(d, "in", "dangling"))
        done = run(c, "put", os.path.join(d, "in"), "trees/y", status=PARTIAL)
        check("dangling" in done.stderr, "what was not stored is named")
        equal(len(c.names("trees", prefix="y/")), len(tree), "the rest is stored")


def test_names_that_would_leave_the_directory(c):
    run(c, "bucket", "create", "evil")
    for name in ("../out", "/etc/dfc-test", "ok", "a/../../b"):
        c.put("evil", name, b"x")
    with tempfile.TemporaryDirectory(prefix="dfc-test-") as d:
        inner = os.path.join(d, "inner")
        done = run(c, "get", "-r", "evil", inner, status=PARTIAL)
        equal(read_tree(d), {"inner/ok": b"x"}, "files")
        check("../out" in done.stderr, "refused names are listed")


def test_lists(c):
    equal(run(c, "ls", "trees/x/sub/", "-H").stdout.count("\n"), 3, "lines")
    lines = run(c, "ls", "trees", "--prefix", "x/", "--delimiter", "/", "-H").stdout
    check("x/sub/" in lines and "deep" not in lines, f"folded: {lines}")
    equal(run(c, "ls", "trees", "-n", 7, "-H").stdout.count("\n"), 7, "lines with a limit")
    check("trees" in run(c, "ls").stdout, "ls without a bucket lists buckets")
    page = run_json(c, "ls", "trees", "--prefix", "x/many/")
    check("x/many/149" in json.dumps(page), "ls -o json")


def test_remove_many(c):
    run(c, "rm", "-r", "trees/y/", status=USAGE)
    run(c, "rm", "-r", "trees/y/", "--yes")
    equal(c.names("trees", prefix="y/"), [], "names below y/")
    check(c.names("trees", prefix="x/"), "names below x/")


def test_cluster_and_nodes(c):
    check("p1" in run(c, "cluster", "status").stdout, "cluster status")
    equal(sorted(n["id"] for n in run_json(c, "cluster", "status")["nodes"]), ["p1", "t1", "t2"],
          "nodes")
    equal(run(c, "node", "ls", "-H").stdout.count("\n"), 3, "lines of node ls")
    check("t1" in run(c, "node", "show", "t1").stdout, "node show")
    run(c, "node", "show", "t9", status=NOT_FOUND)
    run(c, "node", "show", "t1", "--what", "mountpaths")
    run(c, "node", "rm", "t1", status=USAGE)
    check("active" in run(c, "node", "rm", "t1", "--yes", status=FAILED).stderr, "a node that runs")
    run(c, "node", "rm", "t9", "--yes", status=NOT_FOUND)


def test_sort(c):
    sample = os.path.join(tempfile.mkdtemp(prefix="dfc-test-"), "s")
    tool = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "deploy", "local",
                        "sample-dataset")
    subprocess.run([tool, sample, "--size", "1M"], check=True, stdout=subprocess.DEVNULL)
    run(c, "bucket", "create", "in")
    run(c, "put", sample, "in")
    shutil.rmtree(os.path.dirname(sample))
    flags = ("--input-bucket", "in", "--prefix", "shard-", "--shard-size", "100KiB")
    run(c, "sort", "start", *flags, "--output-format", "o-%03d.tar", "--wait")
    check(len(c.names("in", prefix="o-")) > 5, "output shards")
    failed = run(c, "sort", "start", *flags, "--output-format", "o-%03d.tar", "--wait", status=FAILED)
    check("o-00" in failed.stderr, f"the reason: {failed.stderr}")
    job = run(c, "sort", "start", *flags, "--output-format", "p-%03d.tar", "--algorithm", "shuffle",
              "--seed", "9", "--description", "by flags").stdout.strip()
    run(c, "job", "wait", job, "--timeout", "60s")
    equal(run_json(c, "sort", "status", job)["state"], "finished", "state")
    check("by flags" in run(c, "sort", "ls", "--regex", "by fl").stdout, "sort ls --regex")
    check(job in run(c, "job", "ls", "--state", "finished").stdout, "job ls")
    run(c, "sort", "abort", job, status=FAILED)
    run(c, "sort", "rm", job)
    run(c, "job", "show", job, status=NOT_FOUND)


def test_specs_in_yaml_and_json(c):
    spec = {"input_bck": {"name": "in"}, "input_format": {"prefix": "shard-"},
            "output_format": "json-%03d.tar", "output_shard_size": "1MiB"}
    run(c, "sort", "start", "-", "--wait", input=json.dumps(spec))
    check(c.names("in", prefix="json-"), "output of the JSON spec")
    run(c, "sort", "start", "-", "--wait", input="""\
# a comment
input_bck: {name: in}
input_format:
  prefix: shard-
output_format: yaml-%03d.tar
output_shard_size: 1MiB
algorithm:
  kind: alphanumeric
  decreasing: true
""")
    check(c.names("in", prefix="yaml-"), "output of the YAML spec")
    run(c, "sort", "start", "-", input="colour: blue\n", status=FAILED)


def test_a_cluster_that_is_not_there(c):
    run(c, "ls", "--endpoint", "http://127.0.0.1:9", "--retries", 0, status=UNREACHABLE)
    done = run(c, "cluster", "status", env={"DFC_ENDPOINT": "nonsense"}, status=USAGE)
    check("nonsense" in done.stderr, "the endpoint is named")


def test_a_node_is_taken_out(c):
    c.kill("t2")
    c.wait_node("t2", "unreachable")
    equal(run_json(c, "node", "rm", "t2", "--yes"), {"removed": "t2"}, "what it prints")
    equal(sorted(n["id"] for n in run_json(c, "node", "ls")["nodes"]), ["p1", "t1"], "nodes")
    run(c, "ls", "trees")


if __name__ == "__main__":
    main(targets=2)
