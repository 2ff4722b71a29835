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

from lib import BUILD, check, equal, main, size_of, wait_for

OK, FAILED, USAGE, NOT_FOUND, NOTHING, UNREACHABLE, PARTIAL = 0, 1, 2, 3, 4, 5, 6


def run(c, *args, status=OK, **options):
    done = c.dfcctl(*args, **options)
    if done.returncode != status:
        check(
            False, f"dfcctl {' '.join(map(str, args))}: status {done.returncode}, wanted {status}: "
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
    job = run(c, "sort", "start", "--input-bucket", "shards", "--template", "s-{0..1}.tar",
              "--output-format", "o-%d.tar", "--shard-size", "1MiB", "--wait").stdout.split()[0]
    equal(
        run(c, "sort", "verify", job).stdout, "OK: 1 shard, 3 records compared, all equal\n",
        "what is right")
    doc = run_json(c, "sort", "verify", job)
    equal((doc["ok"], doc["compared"], doc["of"], doc["same_records"]), (True, 3, 3, True),
          f"what is right: {doc}")
    right = c.get("shards", "o-0.tar").expect(200).body
    c.put("shards", "o-0.tar", right[:1024] + right[2048:3072] + right[1024:2048] + right[3072:])
    doc = run_json(c, "sort", "verify", job, status=FAILED)
    equal((doc["same_records"], doc["same_order"]), (True, False), f"of another order: {doc}")
    equal(doc["difference"], "output shard 'o-0.tar' has 'c.txt' where record 'b' belongs",
          "difference")
    c.put("shards", "o-0.tar", right)
    c.put("shards", "o-7.tar", right)
    done = run(c, "sort", "verify", job, status=FAILED)
    check(
        "FAILED: 3 of 3 records compared\n1 shard beside the output matches its template; the "
        "first: 'o-7.tar'"
        in done.stdout, done.stdout)
    run(c, "rm", "shards/o-7.tar")
    second = c.get_json(f"/v1/jobs/{job}")["created_ms"] // 1000
    wait_for(lambda: time.time() >= second + 1,
             "another second: times of objects are told in seconds")
    c.put("shards", "s-1.tar", tar_of(b="other"))
    done = run(c, "sort", "verify", job, status=FAILED)
    equal(done.stdout,
          "NOT COMPARABLE: 1 input shard was overwritten after the sort; the first: 's-1.tar'\n",
          "an input is another")
    run(c, "rm", "shards/s-0.tar", "shards/s-1.tar")
    done = run(c, "sort", "verify", job, status=FAILED)
    equal((done.stdout, done.stderr),
          ("NOT COMPARABLE: 2 input shards do not exist any more; the first: 's-0.tar'\n", ""),
          "the input is gone")
    doc = run_json(c, "sort", "verify", job, status=FAILED)
    equal((doc["ok"], doc["comparable"], doc["of"], doc["shards"], doc["records"],
           doc["missing_inputs"]), (False, False, 3, 1, None, 2), f"the input is gone: {doc}")
    run(c, "sort", "verify", "srt-none", status=NOT_FOUND)


def test_sort_verify_says_what_it_could_not_compare(c):
    """An input by prefix that was put again, or is gone, leaves nothing to compare: that is no
    success."""
    c.create("in")
    c.create("out")
    shards = {"raw/0.tar": tar_of(c="3", a="1"), "raw/1.tar": tar_of(b="2")}
    for name, body in shards.items():
        c.put("in", name, body)
    job = run(c, "sort", "start", "--input-bucket", "in", "--prefix", "raw/", "--output-bucket",
              "out", "--output-format", "o-%d.tar", "--shard-size", "1MiB",
              "--wait").stdout.split()[0]
    run(c, "sort", "verify", job)
    run(c, "rm", "in/raw/1.tar")
    doc = run_json(c, "sort", "verify", job, status=FAILED)
    equal((doc["of"], doc["same_records"], doc["ok"]), (3, False, False),
          f"an input shard is gone: {doc}")
    check("the sort read 2 input shards with 3 records; 2 of these records are still there"
          in run(c, "sort", "verify", job, status=FAILED).stdout, "why not")
    second = c.get_json(f"/v1/jobs/{job}")["created_ms"] // 1000
    wait_for(lambda: time.time() >= second + 1, "another second")
    for name, body in shards.items():
        c.put("in", name, body)
    run(c, "rm", "out/o-0.tar")
    done = run(c, "sort", "verify", job, status=FAILED)
    check(
        done.stdout.startswith(
            "NOT COMPARABLE: 2 input shards were overwritten or added after the sort"),
        f"nothing was compared: {done.stdout}{done.stderr}")
    doc = run_json(c, "sort", "verify", job, status=FAILED)
    equal(
        (doc["compared"], doc["of"], doc["same_records"], doc["same_order"], doc["younger_inputs"]),
        (0, 3, False, False, 2), f"nothing was compared: {doc}")


def test_sort_verify_calls_no_output_stray_where_inputs_changed(c):
    """Of fewer records there would be fewer shards: those behind are the sort's own still."""
    c.create("some")
    c.create("sorted")
    for i in range(4):
        c.put("some", f"raw/{i}.tar", tar_of(**{f"r{i}": "x" * 900}))
    job = run(c, "sort", "start", "--input-bucket", "some", "--prefix", "raw/", "--output-bucket",
              "sorted", "--output-format", "out-{000000..000009}.tar", "--shard-size", "1KiB",
              "--wait").stdout.split()[0]
    equal(len(c.names("sorted")), 4, "output shards")
    run(c, "sort", "verify", job)
    second = c.get_json(f"/v1/jobs/{job}")["created_ms"] // 1000
    wait_for(lambda: time.time() >= second + 1,
             "another second: times of objects are told in seconds")
    c.put("some", "raw/9.tar", tar_of(later="1"))
    run(c, "sort", "verify", job)  # what was added takes nothing from what was sorted
    c.put("some", "raw/0.tar", tar_of(other="1"))
    done = run(c, "sort", "verify", job, status=FAILED)
    equal(
        done.stdout,
        "NOT COMPARABLE: 2 input shards were overwritten or added after the sort; the first: "
        "'raw/0.tar'\nthe sort read 4 input shards with 4 records; 3 of these records are still "
        "there to compare with\n", "one input is another")
    doc = run_json(c, "sort", "verify", job, status=FAILED)
    equal((doc["ok"], doc["comparable"], doc["shards"], doc["records"], doc["stray_shards"],
           doc["first_stray"], doc["difference"]), (False, False, 4, 3, None, "", ""),
          f"one input is another: {doc}")


def test_what_matches_nothing_is_an_error(c):
    """A typo in a prefix, template or glob is found by the script that has it."""
    c.create("there")
    c.create("copies")
    c.put("there", "a-1.tar", tar_of(a="1"))
    sort = ("--input-bucket", "there", "--output-bucket", "copies", "--output-format", "o-%d.tar",
            "--shard-size", "1MiB")
    for words in (("sort", "start", *sort, "--prefix", "zzz", "--wait"), ("sort", "plan", *sort,
                                                                          "--prefix", "zzz"),
                  ("sort", "start", *sort, "--template", "zzz-{0..3}.tar", "--missing-shards",
                   "ignore", "--wait"), ("bucket", "cp", "there", "copies", "--prefix", "zzz",
                                         "--wait"), ("cp", "there/zzz", "copies"), ("cp", "there/zzz", "copies", "--wait"),
                  ("cp", "there", "copies", "--template", "zzz-{0..3}",
                   "--wait"), ("rm", "there", "--prefix", "zzz", "--yes",
                               "--wait"), ("rm", "there", "--template", "zzz-{0..3}", "--yes",
                                           "--wait"), ("rm", "-r", "there/zzz/", "--yes"),
                  ("get", "-r", "there/zzz/", "/nonexistent"), ("get", "there/zzz*",
                                                                "/nonexistent"),
                  ("rm", "there/zzz*", "--yes"), ("cp", "there/zzz*",
                                                  "copies"), ("cp", "there/zzz?", "copies"),
                  ("ls", "there/zzz*"), ("ls", "there/zzz"), ("ls", "there", "--prefix", "zzz")):
        done = run(c, *words, status=NOTHING)
        check("zzz" in done.stderr or "listed" in done.stderr,
              f"{words}: it is said: {done.stderr}")
        check("(--allow-empty accepts that" in done.stderr and "allow_empty" not in done.stderr,
              done.stderr)
        run(c, *words, "--allow-empty")
    job = next(j for j in c.get_json("/v1/jobs?kind=copy")["jobs"] if j["state"] == "failed")
    equal(job["errors"][0]["code"], "nothing_matched", f"the job: {job}")
    equal(c.names("there"), ["a-1.tar"], "what is there stays")
    equal(run(c, "ls", "there/a-?.ta*", "-H").stdout.split()[-1], "a-1.tar", "a glob that matches")
    c.create("bare")
    run(c, "ls", "bare")
    run(c, "bucket", "cp", "bare", "copies", "--wait")
    run(c, "rm", "bare", "--prefix", "", "--yes", "--wait")


def test_exit_codes_tell_a_wrong_request_from_a_failed_job(c):
    c.create("codes")
    c.put("codes", "s-0.tar", b"no tar at all")
    words = ("sort", "start", "--input-bucket", "codes", "--output-format", "o-%d.tar",
             "--shard-size", "1MiB")
    run(c, *words, "--prefix", "s-", "--wait", status=FAILED)
    done = run(c, *words, "--prefix", "s-", "--algorithm", "content", status=USAGE)
    check("algorithm.extension" in done.stderr and "--extension" in done.stderr, done.stderr)
    run(c, *words, "--prefix", "s-", "--wrong", status=USAGE)
    run(c, "cp", "codes/s-0.tar", "codes/s-0.tar", status=USAGE)
    done = run(c, "job", "ls", "--kind", "sorts", status=USAGE)
    check("'sorts' is no kind of job: use one of sort, delete, copy" in done.stderr, done.stderr)
    check("srt-" in run(c, "job", "ls", "--kind", "sort").stdout, "a kind of job")


def test_slices_decide_the_copies(c):
    done = run(c, "bucket", "create", "both", "--copies", "3", "--ec", "2+1", status=USAGE)
    check("with ec 2+1 it is 2" in done.stderr and "leave" in done.stderr, done.stderr)
    equal([b["name"] for b in c.get_json("/v1/buckets")["buckets"] if b["name"] == "both"], [],
          "the bucket")


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


def part_size(directory):
    names = [n for n in os.listdir(directory)
             if n.startswith(".dfc-part-") and not n.endswith(".note")]
    return size_of(os.path.join(directory, names[0])) if names else 0


def killed_get(c, path, name, size):
    """A get that is killed in its middle; the size of the part that it leaves."""
    words = [os.path.join(BUILD, "dfcctl"), "get", name, path]
    directory = os.path.dirname(path)
    for _ in range(100):
        with subprocess.Popen(words, env=c.dfcctl_environment(), stdout=subprocess.DEVNULL) as p:
            while p.poll() is None and part_size(directory) < size // 4:
                pass
            p.kill()
        if part_size(directory) > 0:
            return part_size(directory)
        os.remove(path)
    raise AssertionError("no get was killed in its middle")


def test_a_get_that_is_killed(c):
    data = random.Random(2).randbytes(32 << 20)
    c.put("b", "big", data)
    with tempfile.TemporaryDirectory(prefix="dfc-test-") as d:
        path = os.path.join(d, "big")
        had = killed_get(c, path, "b/big", len(data))
        equal(run_json(c, "get", "b/big", path)["resumed"], had, "bytes that were not sent again")
        check(read_tree(d) == {"big": data}, "the file")
        had = killed_get(c, path, "b/big", len(data))
        c.put("b", "big", data[::-1])
        equal(run_json(c, "get", "b/big", path)["resumed"], 0, "of another version")
        check(read_tree(d) == {"big": data[::-1]}, "the file of the new version")
    run(c, "rm", "b/big")


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


def test_usage(c):
    sizes = {"x/a.txt": 1, "x/empty": 0, "x/sub/b.txt": 100000, "x/sub/deep/er/é 猫.bin": 1,
             "x/sub/.hidden": 1}
    many = sum(len(b"%d" % i) for i in range(150))
    doc = run_json(c, "du", "trees", "--depth", 2)
    rows = {e["name"]: (e["objects"], e["bytes"]) for e in doc["entries"]}
    check(rows["trees/x/many/"] == (150, many) and rows["trees/x/sub/"] == (3, 100002)
          and rows["trees/x/"] == (155, sum(sizes.values()) + many), f"du: {rows}")
    equal(rows["trees"], (len(c.names("trees")), doc["bytes"]), "the total")
    check("trees" in run(c, "du").stdout and "(all)" in run(c, "du").stdout, "du of all buckets")
    run(c, "du", "trees/none", status=NOTHING)


def test_copies_by_key(c):
    data = random.Random(3).randbytes(9 << 20)
    run(c, "bucket", "create", "sums", "--checksum", "md5")
    c.put("b", "first", data, headers={"Dfc-Meta-Colour": "blue"})
    run(c, "cp", "b/first", "sums/x/second")
    check(c.get("sums", "x/second").body == data, "the copy")
    check("blue" in json.dumps(run_json(c, "object", "head", "sums/x/second")), "its metadata")
    done = run_json(c, "cp", "-r", "trees/x", "sums/again")
    equal((done["done"], done["failed"]), (len(c.names("trees", prefix="x/")), []), "copies")
    equal([n[len("again/"):] for n in c.names("sums", prefix="again/")],
          [n[len("x/"):] for n in c.names("trees", prefix="x/")], "names")
    for name in ("b/first", "sums/x/second"):
        run(c, "rm", name)


def test_sync(c):
    def counts(*words, status=OK):
        doc = run_json(c, "sync", *words, status=status)
        return doc["done"], doc["existed"], doc["removed"], doc["failed_count"]

    run(c, "bucket", "create", "synced")
    run(c, "bucket", "create", "plain", "--checksum", "none")
    with tempfile.TemporaryDirectory(prefix="dfc-test-") as d:
        source, back = os.path.join(d, "in"), os.path.join(d, "back")
        tree = make_tree(source)
        n = len(tree)
        equal(counts(source, "dfc://synced/x"), (n, 0, 0, 0), "up")
        equal(counts(source, "dfc://synced/x"), (0, n, 0, 0), "up again")
        equal(counts("dfc://synced/x", back), (n, 0, 0, 0), "down")
        equal(counts("dfc://synced/x", back, "--quick"), (0, n, 0, 0), "down again")
        check(read_tree(back) == tree, "the tree")
        equal(counts("dfc://synced/x", "dfc://plain/y"), (n, 0, 0, 0), "across")
        equal(counts("dfc://synced/x", "dfc://plain/y"), (0, n, 0, 0), "across again")
        equal(counts("dfc://plain/y", back), (n, 0, 0, 0), "down without checksums")
        equal(counts("dfc://plain/y", back), (0, n, 0, 0), "and again, by times")
        os.remove(os.path.join(source, "a.txt"))
        with open(os.path.join(source, "empty"), "w", encoding="utf-8") as f:
            f.write("no more")
        equal(counts(source, "dfc://synced/x", "--delete", "--yes"), (1, n - 2, 1, 0), "changes")
        equal(counts("dfc://synced/x", back, "--delete", "--yes"), (1, n - 2, 1, 0), "changes here")
        check(read_tree(back) == read_tree(source), "both are the same")
    run(c, "sync", "dfc://synced/none", d, status=NOTHING)


def test_disks(c):
    doc = run_json(c, "df")
    equal([n["id"] for n in doc["nodes"]], ["t1", "t2"], "targets")
    for node in doc["nodes"]:
        check(node["mountpaths"] and node["total_bytes"] > 0, f"df: {node}")
        for part in [node, *node["mountpaths"]]:
            equal(part["total_bytes"] - part["available_bytes"], part["used_bytes"], "used")
    equal(doc["all"]["total_bytes"], sum(n["total_bytes"] for n in doc["nodes"]), "the cluster")
    check("(all)" in run(c, "df").stdout, "df for people")


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
    check("no node is called 't9'" in run(c, "node", "rm", "t9", status=NOT_FOUND).stderr,
          "what is not there needs no confirmation")


def test_sort(c):
    sample = os.path.join(tempfile.mkdtemp(prefix="dfc-test-"), "s")
    tool = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "deploy", "local",
                        "sample-dataset")
    subprocess.run([tool, sample, "--size", "1M"], check=True, stdout=subprocess.DEVNULL)
    run(c, "bucket", "create", "shuffled")
    run(c, "put", sample, "shuffled")
    shutil.rmtree(os.path.dirname(sample))
    flags = ("--input-bucket", "shuffled", "--prefix", "shard-", "--shard-size", "100KiB")
    run(c, "sort", "start", *flags, "--output-format", "o-%03d.tar", "--wait")
    check(len(c.names("shuffled", prefix="o-")) > 5, "output shards")
    failed = run(c, "sort", "start", *flags, "--output-format", "o-%03d.tar", "--wait",
                 status=FAILED)
    check("o-00" in failed.stderr and "dfcctl rm shuffled --prefix 'o-' --wait" in failed.stderr,
          f"the reason, and what to do: {failed.stderr}")
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
    spec = {"input_bck": {"name": "shuffled"}, "input_format": {"prefix": "shard-"},
            "output_format": "json-%03d.tar", "output_shard_size": "1MiB"}
    run(c, "sort", "start", "-", "--wait", input=json.dumps(spec))
    check(c.names("shuffled", prefix="json-"), "output of the JSON spec")
    run(c, "sort", "start", "-", "--wait", input="""\
# a comment
input_bck: {name: shuffled}
input_format:
  prefix: shard-
output_format: yaml-%03d.tar
output_shard_size: 1MiB
algorithm:
  kind: alphanumeric
  decreasing: true
""")
    check(c.names("shuffled", prefix="yaml-"), "output of the YAML spec")
    run(c, "sort", "start", "-", input="colour: blue\n", status=USAGE)


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
    equal([n["id"] for n in run_json(c, "df")["nodes"]], ["t1"], "df of the rest")


if __name__ == "__main__":
    main(targets=2)
