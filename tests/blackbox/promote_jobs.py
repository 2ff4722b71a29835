#!/usr/bin/env python3
"""The job `promote`: files on the targets' machines become objects; nothing outside of the root, and
nothing lost."""

import os
import random
import shutil
import tempfile

from lib import Cluster, check, equal, in_parallel, main
from object_jobs import begun, document, ended, run, slow_disks, start

ROOT = tempfile.mkdtemp(prefix="dfc-promote-")
ARGS = [f"--target-arg=--promote-root={ROOT}"]
BUCKETS = {"plain": {"durability": "sync"}, "two": {"copies": 2},
           "sliced": {"ec": {"data": 2, "parity": 1, "min_size": 1000}}}


class WithFiles(Cluster):
    """Its targets share one machine, and so the root."""

    def remove(self):
        super().remove()
        shutil.rmtree(ROOT)


def write(folder, files):
    for name, data in files.items():
        path = os.path.join(ROOT, folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)


def samples(seed=5):
    rng = random.Random(seed)
    files = {f"{i % 7}/{i:03}.bin": rng.randbytes(rng.randrange(1, 60000)) for i in range(150)}
    files.update({"empty": b"", "a b/100%?#": b"odd", "large": rng.randbytes(5 << 20)})
    return files


FILES = samples()


def objects(c, bucket, prefix=""):
    names = c.names(bucket, prefix=prefix, limit=10000)
    return dict(in_parallel(lambda n: (n, c.get(bucket, n).expect(200).body), names))


def value(path, **more):
    return {"path": os.path.join(ROOT, path) if path else ROOT, **more}


def failed(c, bucket, value, code):
    job = ended(c, start(c, bucket, "promote", value))
    equal((job["state"], job["errors"][0]["code"]), ("failed", code), f"end of {value}")
    return job


def test_files_become_objects(c):
    write("set", FILES)
    for bucket, props in BUCKETS.items():
        c.create(bucket, **props)
        got = run(c, bucket, "promote", value("set", node="t1", prepend="new/"))
        equal((got["done"], got["failed"]), (len(FILES), 0), "files")
        found = objects(c, bucket)
        check(found == {"new/" + n: d for n, d in FILES.items()}, f"{bucket}: other objects")
    got = run(c, "plain", "promote", value("set", prepend="new/"))
    equal((got["done"], got["skipped"]), (0, 3 * len(FILES)), "by all targets, what is there")
    run(c, "plain", "promote", value("set/large", node="t2", prepend="one/"))
    equal(c.names("plain", prefix="one/"), ["one/large"], "a single file")


def test_what_is_there_stays(c):
    c.put("plain", "new/empty", b"mine")
    got = run(c, "plain", "promote", value("set", node="t1", prepend="new/"))
    equal((got["done"], got["skipped"]), (0, len(FILES)), "files")
    equal(c.get("plain", "new/empty").body, b"mine", "the object")
    got = run(c, "plain", "promote", value("set", node="t1", prepend="new/", overwrite=True))
    equal((got["done"], got["skipped"]), (1, len(FILES) - 1), "files")
    equal(c.get("plain", "new/empty").body, b"", "the object")


def test_move(c):
    write("moved", {"a": b"a", "deep/b": b"b", "kept": b"file"})
    c.put("plain", "m/kept", b"object")
    run(c, "plain", "promote", value("moved", node="t1", prepend="m/", move=True))
    equal(objects(c, "plain", "m/"), {"m/a": b"a", "m/deep/b": b"b", "m/kept": b"object"}, "objects")
    left = [os.path.join(at, n) for at, _, names in os.walk(os.path.join(ROOT, "moved"))
            for n in names]
    equal(left, [os.path.join(ROOT, "moved", "kept")], "files that are left")
    c.create("loose", durability="async")
    failed(c, "loose", value("moved", node="t1", move=True), "not_supported")
    check(os.path.exists(left[0]), "the file is gone")


def test_nothing_outside_of_the_root(c):
    write("links", {"file": b"file"})
    os.symlink("/etc/passwd", os.path.join(ROOT, "links", "link"))
    os.symlink("/etc", os.path.join(ROOT, "links", "dir"))
    os.mkfifo(os.path.join(ROOT, "links", "fifo"))
    c.create("links")
    job = failed(c, "links", value("links", node="t1"), "invalid_argument")
    equal(job["progress"]["objects"]["failed"], 3, "what is no file")
    equal(objects(c, "links"), {"file": b"file"}, "objects")
    for path in ("/etc/passwd", ROOT + "-beside", c.dir):
        job = failed(c, "links", {"path": path, "node": "t1"}, "invalid_argument")
        check("promote_root" in job["errors"][0]["message"], job["errors"])
    failed(c, "links", value("links/dir/passwd", node="t1"), "invalid_argument")
    failed(c, "links", value("links/link", node="t1"), "invalid_argument")


def test_nothing_to_do(c):
    job = failed(c, "plain", value("none"), "nothing_matched")
    check("none" in job["errors"][0]["message"], job["errors"])
    equal(run(c, "plain", "promote", value("none", allow_empty=True))["done"], 0, "files")


def test_refusals(c):
    def refuse(value, status, code, text):
        c.call("POST", "/v1/buckets/plain", {"action": "promote", "value": value}).expect(
            status, code, text)

    refuse({}, 400, "invalid_json", "path")
    for path in ("", "x", "/a/../b", "/a//b", "/"):
        refuse({"path": path}, 400, "invalid_spec", "path")
    refuse({"path": ROOT, "node": "p1"}, 404, "node_not_found", "p1")
    refuse({"path": ROOT, "node": "t9"}, 404, "node_not_found", "t9")
    refuse({"path": ROOT, "prefix": "x"}, 400, "invalid_json", "prefix")


def test_dfcctl(c):
    done = c.dfcctl("bucket", "promote", "plain", os.path.join(ROOT, "set"), "--node", "t3", "--prepend",
                    "ctl/", "--wait")
    equal(done.returncode, 0, f"dfcctl bucket promote: {done.stdout} {done.stderr}")
    equal(len(c.names("plain", prefix="ctl/", limit=1000)), len(FILES), "objects")


def test_abort_and_again(c):
    files = {f"{i:04}": b"%d" % i for i in range(600)}
    write("many", files)
    c.create("many", durability="async")
    slow_disks(c, "disk.rename", 20)
    job_id = start(c, "many", "promote", value("many", node="t1"))
    begun(c, job_id)
    c.call("DELETE", f"/v1/jobs/{job_id}").expect(202)
    equal(ended(c, job_id)["state"], "aborted", "state")
    job_id = start(c, "many", "promote", value("many", node="t1"))
    begun(c, job_id)
    c.kill("t1")
    c.wait_node("t1", "unreachable")
    equal(document(c, job_id)["state"], "running", "state without t1")
    c.start("t1")
    equal(ended(c, job_id)["state"], "finished", "state")
    slow_disks(c, None)
    check(objects(c, "many") == files, "other objects than files")


def test_not_without_a_root(c):
    c.restart("t2", "--arg=--promote-root=")
    job = failed(c, "plain", value("set"), "not_supported")
    check("'t2'" in job["errors"][0]["message"], job["errors"])
    c.restart("t2", f"--arg=--promote-root={c.node_dir('t2')}")
    job = failed(c, "plain", {"path": os.path.join(c.node_dir("t2"), "mp1"), "node": "t2"},
                 "invalid_argument")
    check("mountpath" in job["errors"][0]["message"], job["errors"])


if __name__ == "__main__":
    main(WithFiles, args=ARGS)
