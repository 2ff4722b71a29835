#!/usr/bin/env python3
"""Jobs that delete or copy many objects: by list, template and prefix; aborted, and over a target's
death."""

import json
import os
import shutil
import tempfile
import threading

from lib import SANITIZED, check, equal, in_parallel, main, wait_for

SHARDS = [f"s-{i:03d}.tar" for i in range(60)]
# More than a batch for each target; under a sanitizer each of them takes ten times as long.
MANY = 1500 if SANITIZED else 6000


def start(c, bucket, action, value, node="p1"):
    reply = c.call("POST", f"/v1/buckets/{bucket}", {"action": action, "value": value}, node=node)
    return reply.expect(202).json()["id"]


def document(c, job_id):
    return c.get_json(f"/v1/jobs/{job_id}")


def ended(c, job_id):
    """The document of a job that has ended."""
    def reached():
        job = document(c, job_id)
        return job if job["state"] in ("finished", "failed", "aborted") else None

    return wait_for(reached, f"end of {job_id}")


def run(c, bucket, action, value):
    """The objects of the progress of a job that must finish."""
    job = ended(c, start(c, bucket, action, value))
    equal(job["state"], "finished", f"state of {action} {value}: {job['errors']}")
    equal(job["kind"], action, "kind")
    equal(job["progress"]["percent"], 100, "percent")
    return job["progress"]["objects"]


def fill(c, bucket, names, durability="async", **headers):
    c.create(bucket, durability=durability)
    in_parallel(lambda name: c.put(bucket, name, body_of(name), headers), names)


def body_of(name):
    return (name * 50).encode()


def test_delete_by_template(c):
    fill(c, "b", SHARDS)
    got = run(c, "b", "delete", {"template": "s-{010..019..3}.tar"})
    equal((got["done"], got["missing"], got["total"]), (4, 0, 4), "objects")
    left = [n for n in SHARDS if n not in ("s-010.tar", "s-013.tar", "s-016.tar", "s-019.tar")]
    equal(c.names("b"), left, "names")
    got = run(c, "b", "delete", {"template": "s-@099.tar"})
    equal((got["done"], got["missing"], got["failed"]), (56, 44, 0), "objects")
    equal(c.names("b"), [], "names")


def test_delete_by_list_and_prefix(c):
    names = ["a/1", "a/2", "a/b/3", "a", "ab", "é/ü", "z\\ \"q\""]
    in_parallel(lambda name: c.put("b", name, b"x"), names)
    got = run(c, "b", "delete", {"list": ["é/ü", "z\\ \"q\"", "nobody", "a"]})
    equal((got["done"], got["missing"]), (3, 1), "objects")
    equal(c.names("b"), ["a/1", "a/2", "a/b/3", "ab"], "names")
    got = run(c, "b", "delete", {"prefix": "a/", "description": "old"})
    equal(got["done"], 3, "objects")
    equal(c.names("b"), ["ab"], "names")
    for name in ("a/1", "é/ü"):
        c.get("b", name).expect(404, "object_not_found")


def test_nothing_to_do(c):
    """Where a request names something that is not there, that is an error, unless it says that it
    may be so."""
    for value in ({"prefix": "nothing/"}, {"list": ["nobody"]}, {"template": "none-{0..9}"}):
        job = ended(c, start(c, "b", "delete", value))
        equal((job["state"], job["errors"][0]["code"]), ("failed", "nothing_matched"),
              f"delete of {value}")
        got = run(c, "b", "delete", {**value, "allow_empty": True})
        equal(got["done"], 0, f"deleted by {value}")
    equal(run(c, "b", "delete", {"list": []})["done"], 0, "deleted by an empty list")
    value = {"to": "b", "prefix": "nothing/", "prepend": "x/"}
    job = ended(c, start(c, "b", "copy", value))
    check("no object matches prefix 'nothing/'" in job["errors"][0]["message"], job["errors"])
    equal(run(c, "b", "copy", {**value, "allow_empty": True})["done"], 0, "copied")
    equal(c.names("b"), ["ab"], "names")


def test_what_is_put_afterwards_stays(c):
    """Each object is put as soon as the job's request is answered, whatever the job does
    meanwhile."""
    names = [f"late/{i}" for i in range(40)]
    in_parallel(lambda name: c.put("b", name, b"old"), names)
    job_id = start(c, "b", "delete", {"prefix": "late/"})
    in_parallel(lambda name: c.put("b", name, b"new"), names)
    equal(ended(c, job_id)["state"], "finished", "state")
    equal(c.names("b", prefix="late/"), sorted(names), "names")
    for name in names:
        equal(c.get("b", name).expect(200).body, b"new", name)
    run(c, "b", "delete", {"prefix": ""})
    equal(c.names("b"), [], "names")


def test_copy_a_bucket(c):
    fill(c, "src", SHARDS, **{"Content-Type": "application/x-tar", "Dfc-Meta-Colour": "red"})
    big = os.urandom(3 * 1024 * 1024 + 17)
    c.put("src", "big", big)
    c.create("dst", checksum="sha256")
    got = run(c, "src", "copy", {"to": "dst"})
    equal((got["done"], got["skipped"]), (61, 0), "objects")
    equal(c.names("dst"), ["big"] + SHARDS, "names")
    equal(c.get("dst", "big").expect(200).body, big, "the large object")
    for name in SHARDS:
        reply = c.get("dst", name).expect(200)
        equal(reply.body, body_of(name), name)
        equal(reply.headers["Content-Type"], "application/x-tar", "type")
        equal(reply.headers["Dfc-Meta-Colour"], "red", "metadata")
        equal(reply.headers["Dfc-Checksum-Type"], "sha256", "checksum type")


def test_copy_passes_over_what_is_the_same(c):
    c.create("same")
    equal(run(c, "src", "copy", {"to": "same"})["done"], 61, "objects")
    versions = {n: c.object("HEAD", "same", n).headers["Dfc-Version"] for n in SHARDS}
    c.put("src", SHARDS[0], b"another")
    c.object("DELETE", "same", SHARDS[1]).expect(204)
    c.put("same", SHARDS[2], b"changed here")
    got = run(c, "src", "copy", {"to": "same"})
    equal((got["done"], got["skipped"]), (3, 58), "objects")
    equal(c.get("same", SHARDS[0]).body, b"another", SHARDS[0])
    equal(c.get("same", SHARDS[2]).body, body_of(SHARDS[2]), SHARDS[2])
    for name in SHARDS[3:]:
        equal(c.object("HEAD", "same", name).headers["Dfc-Version"], versions[name], name)


def test_copy_some_under_other_names(c):
    c.create("some")
    got = run(c, "src", "copy", {"to": "some", "template": "s-{000..003}.tar", "prepend": "p/"})
    equal(got["done"], 4, "objects")
    equal(c.names("some"), [f"p/s-00{i}.tar" for i in range(4)], "names")
    got = run(c, "src", "copy", {"to": "some", "list": ["big", "none"]})
    equal((got["done"], got["missing"]), (1, 1), "objects")
    # Within one bucket, where the copies have the prefix, too: each object once.
    got = run(c, "some", "copy", {"to": "some", "prefix": "p/", "prepend": "p/"})
    equal(got["done"], 4, "objects")
    equal(c.names("some", prefix="p/p/"), [f"p/p/s-00{i}.tar" for i in range(4)], "names")
    equal(c.names("some", prefix="p/p/p/"), [], "copies of copies")


def test_damage_is_not_copied(c):
    """One damaged original fails the job by its name; the others are copied."""
    c.create("hurt", durability="async")
    names = [f"h{i}" for i in range(20)]
    in_parallel(lambda name: c.put("hurt", name, b"right" * 100), names)
    path = next(p for t in c.targets() for p in c.object_files(t)
                if b"h7\0" in os.getxattr(p, "user.dfc"))
    with open(path, "r+b") as f:
        f.write(b"wrong")
    c.create("from_hurt")
    job = ended(c, start(c, "hurt", "copy", {"to": "from_hurt"}))
    equal(job["state"], "failed", "state")
    equal(job["errors"][0]["code"], "checksum_mismatch", "code")
    check("'h7'" in job["errors"][0]["message"], job["errors"])
    check("what was copied before the end stays" in job["warnings"], job["warnings"])
    equal(c.names("from_hurt"), sorted(set(names) - {"h7"}), "names")
    for name in set(names) - {"h7"}:
        equal(c.get("from_hurt", name).expect(200).body, b"right" * 100, name)


def test_refusals(c):
    def refuse(bucket, action, value, status, code, text=None):
        c.call("POST", f"/v1/buckets/{bucket}", {"action": action, "value": value}).expect(
            status, code, text)

    refuse("b", "delete", {}, 400, "invalid_spec", "list")
    refuse("b", "delete", {"template": "s-{0..9"}, 400, "invalid_spec", "template")
    refuse("b", "delete", {"template": "s-{9..0}"}, 400, "invalid_spec", "template")
    refuse("b", "delete", {"template": "s.tar"}, 400, "invalid_spec", "no range")
    refuse("b", "delete", {"template": "s-%d"}, 400, "invalid_spec", "no end")
    refuse("b", "delete", {"list": ["a"], "prefix": "b"}, 400, "invalid_spec", "only one")
    refuse("b", "delete", {"list": [""]}, 400, "invalid_name", "list[0]")
    refuse("b", "delete", {"prefx": "b"}, 400, "invalid_json", "prefx")
    refuse("none", "delete", {"prefix": ""}, 404, "bucket_not_found")
    refuse("-", "delete", {"prefix": ""}, 400, "invalid_name")
    refuse("b", "copy", {"prefix": ""}, 400, "invalid_json", "to")
    refuse("b", "copy", {"to": "none"}, 404, "bucket_not_found")
    refuse("b", "copy", {"to": "b"}, 400, "invalid_argument", "prepend")
    refuse("b", "evict", {"prefix": ""}, 400, "invalid_argument", "evict")
    names = [f"{i:0100d}" for i in range(50000)]
    refuse("b", "delete", {"list": names}, 413, "too_large")


def test_destroyed_under_way(c):
    c.create("gone", durability="async")
    in_parallel(lambda i: c.put("gone", str(i), b"x" * 100), range(500))
    c.create("to_gone")
    job_id = start(c, "gone", "copy", {"to": "to_gone"})
    c.destroy("to_gone")
    job = ended(c, job_id)
    if job["state"] != "finished":
        equal(job["errors"][0]["code"], "bucket_not_found", f"code of {job['errors']}")


def slow_disks(c, point, milliseconds=20):
    """Every pass of this point takes a while, so that a job is met at its work."""
    for target in c.targets():
        c.restart(target, *([f"--arg=--faults={point}=delay:{milliseconds}"] if point else []))


class Held:
    """A job `archive` of this bucket waits from the third batch on that a target reads."""

    def __init__(self, c, bucket):
        self.directory = tempfile.mkdtemp(prefix="dfc-held-")
        self.path = os.path.join(self.directory, bucket)
        for target in c.targets():
            c.restart(target, f"--arg=--faults=disk.read[{bucket}]=hold:{self.directory}@3+")

    def __enter__(self):
        with open(self.path, "w", encoding="utf-8"):
            return self

    def __exit__(self, *what):
        shutil.rmtree(self.directory)


def begun(c, job_id):
    def some():
        job = document(c, job_id)
        return job["progress"]["objects"]["done"] > 5 or job["state"] == "finished"

    wait_for(some, f"beginning of {job_id}")
    equal(document(c, job_id)["state"], "running", "state")


def test_abort(c):
    names = [f"n{i:04d}" for i in range(1000)]
    fill(c, "many", names)
    slow_disks(c, "disk.rename")
    job_id = start(c, "many", "delete", {"prefix": "n"})
    begun(c, job_id)
    c.call("DELETE", f"/v1/jobs/{job_id}").expect(202)
    job = ended(c, job_id)
    equal(job["state"], "aborted", "state")
    check("what was deleted before the end stays deleted" in job["warnings"], job["warnings"])
    left = c.names("many")
    check(0 < len(left) < len(names), f"{len(left)} of {len(names)} are left")
    equal(job["progress"]["objects"]["done"], len(names) - len(left), "deleted")
    equal(c.names("many"), left, "names a moment later")


def test_a_target_dies_under_a_delete(c):
    job_id = start(c, "many", "delete", {"prefix": "n"})
    begun(c, job_id)
    c.kill("t2")
    c.wait_node("t2", "unreachable")
    equal(document(c, job_id)["state"], "running", "state without t2")
    c.start("t2")
    equal(ended(c, job_id)["state"], "finished", "state")
    equal(c.names("many"), [], "names")


def test_a_target_dies_under_a_copy(c):
    c.create("copied")
    slow_disks(c, "disk.rename", 300)
    job_id = start(c, "src", "copy", {"to": "copied"})
    begun(c, job_id)
    c.kill("t3")
    c.wait_node("t3", "unreachable")
    equal(document(c, job_id)["state"], "running", "state without t3")
    c.start("t3")
    job = ended(c, job_id)
    equal(job["state"], "finished", f"state; {job['errors']}")
    slow_disks(c, None)
    equal(c.names("copied"), c.names("src"), "names")
    for name in SHARDS[1:]:
        equal(c.get("copied", name).expect(200).body, body_of(name), name)


def test_the_proxy_dies(c):
    c.create("copied2")
    job_id = start(c, "src", "copy", {"to": "copied2"})
    c.kill("p1")
    c.start("p1")
    equal(ended(c, job_id)["state"], "finished", "state")
    equal(c.names("copied2"), c.names("src"), "names")


def test_many(c):
    """Copied and deleted while others are read and put; neighbours stay."""
    names = [f"k/{i:05d}" for i in range(MANY)]
    c.create("thousands", durability="async")
    in_parallel(lambda name: c.put("thousands", name, b"x" * 100), names)
    c.put("thousands", "k", b"neighbour")
    c.put("thousands", "k0", b"neighbour")
    c.create("thousands2", durability="async")
    equal(run(c, "thousands", "copy", {"to": "thousands2", "prefix": "k/"})["done"], MANY, "copied")
    equal(c.names("thousands2", limit=10000), names, "names of the copies")
    stop = threading.Event()
    wrong = []

    def read():
        while not stop.is_set():
            if c.get("thousands", "k0").body != b"neighbour":
                wrong.append("k0")

    reader = threading.Thread(target=read)
    reader.start()
    got = run(c, "thousands", "delete", {"template": f"k/{{00000..{MANY - 1:05d}}}"})
    stop.set()
    reader.join()
    equal((got["done"], got["missing"], got["failed"]), (MANY, 0, 0), "objects")
    equal(c.names("thousands"), ["k", "k0"], "names")
    equal(wrong, [], "reads that failed meanwhile")
    equal(len(c.names("thousands2", limit=10000)), MANY, "copies")
    equal(run(c, "thousands2", "delete", {"prefix": ""})["done"], MANY, "deleted by prefix")


def test_dfcctl(c):
    def ctl(*args, code=0, **options):
        done = c.dfcctl(*args, **options)
        equal(done.returncode, code, f"dfcctl {args}: {done.stdout} {done.stderr}")
        return done

    c.create("ctl")
    equal(ctl("bucket", "cp", "src", "ctl", "--wait").stdout.split()[1], "finished", "bucket cp")
    equal(c.names("ctl"), c.names("src"), "names")
    ctl("cp", "src/big", "ctl", "--prepend", "one/", "--wait")
    equal(c.names("ctl", prefix="one/"), ["one/big"], "names")
    done = ctl("cp", "src/s-00[0-4].tar", "ctl", "--prepend", "pat/", "--wait")
    check("5 objects match 's-00[0-4].tar'" in done.stderr, f"how many: {done.stderr}")
    equal(c.names("ctl", prefix="pat/"), [f"pat/s-00{i}.tar" for i in range(5)],
          "names of a pattern")
    done = ctl("cp", "src/s-01*", "ctl", "--prepend", "pre/")
    job_id = done.stdout.strip()
    check(f"dfcctl job wait {job_id}" in done.stderr, f"what goes on: {done.stderr}")
    ctl("job", "wait", job_id)
    equal(c.names("ctl", prefix="pre/"), [f"pre/s-01{i}.tar" for i in range(10)],
          "names of a prefix")
    ctl("rm", "ctl/p*/s-0*", "--yes")
    ctl("rm", "ctl", "--template", "s-{000..029}.tar", "--yes", "--wait")
    equal(len(c.names("ctl", prefix="s-")), 30, "names left")
    ctl("rm", "ctl", "--list", "-", "--yes", "--wait", input="big\n\ns-030.tar\n")
    check("big" not in c.names("ctl"), "removed by list")
    done = ctl("-o", "json", "rm", "ctl", "--prefix", "s-", "--yes", "--wait")
    equal(json.loads(done.stdout)["progress"]["objects"]["done"], 29, "removed by prefix")
    equal(c.names("ctl"), ["one/big"], "names")
    ctl("rm", "ctl", "--prefix", "", code=2)  # nobody can be asked
    ctl("rm", "ctl", "--prefix", "a", "--list", "-", "--yes", code=2, input="")
    ctl("rm", "ctl/one", "--prefix", "a", "--yes", code=2)
    ctl("rm", "ctl/one/big", "--wait", code=2)
    ctl("cp", "src", "ctl", code=2)
    ctl("rm", "ctl", "--template", "no-range", "--yes", code=2)
    job_id = ctl("rm", "ctl", "--prefix", "o", "--yes").stdout.strip()
    ctl("job", "wait", job_id)
    check("1 of 1 objects" in ctl("job", "show", job_id).stdout, "job show")
    check(job_id in ctl("job", "ls", "--kind", "delete").stdout, "job ls --kind")


if __name__ == "__main__":
    main(targets=3)
