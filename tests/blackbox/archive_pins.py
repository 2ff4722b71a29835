#!/usr/bin/env python3
"""Objects change and go while a job `archive` reads them, targets die: the archive has what was
pinned, and no pin stays."""

import glob
import io
import os
import tarfile

from lib import check, equal, in_parallel, main, wait_for
from object_jobs import Held, begun, document, ended, slow_disks, start

COUNT = 600
NAMES = [f"m/{i:05}" for i in range(COUNT)]
SIZE = 12_000_000 // COUNT  # bytes: all are many batches of the builder
CHANGED = 90  # while the job runs
BUCKETS = {"one": {}, "two": {"copies": 2}}


def old(name):
    return name.encode() * (SIZE // len(name))


def new(name):
    return b"changed " + name.encode()


def fill(c, bucket):
    in_parallel(lambda name: c.put(bucket, name, old(name)), NAMES)


def links(c):
    """The job directories and the pins on all mountpaths."""
    return [p for t in c.targets() for p in glob.glob(
        os.path.join(c.node_dir(t), "mp*", ".dfc", "jobs", "*", "**"), recursive=True)]


def pins(c):
    return [p for p in links(c) if os.path.basename(p).startswith("in-")]


def no_link_stays(c):
    wait_for(lambda: not links(c), "the end of the job's files")


def members(c, bucket, name):
    body = c.get(bucket, name).expect(200).body
    with tarfile.open(fileobj=io.BytesIO(body)) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar}


def change(c, bucket):
    """The last names are read last: each third is overwritten, deleted, or stays."""
    late = NAMES[-CHANGED:]
    in_parallel(lambda name: c.put(bucket, name, new(name)), late[::3])
    in_parallel(lambda name: c.object("DELETE", bucket, name).expect(204), late[1::3])
    in_parallel(lambda name: c.put(bucket, name, b"twice"), late[::9])
    return late[::3], late[1::3]


def test_the_archive_has_what_was_pinned(c):
    for bucket, props in BUCKETS.items():
        c.create(bucket, durability="async", **props)
        fill(c, bucket)
    for bucket in BUCKETS:
        equal(pins(c), [], "pins before the job")
        with Held(c, bucket):
            job_id = start(c, bucket, "archive", {"prefix": "m/", "archive": "all.tar"})
            begun(c, job_id)
            equal(pins(c), [], "pins of objects that nobody has changed")
            changed, deleted = change(c, bucket)
            equal(document(c, job_id)["state"], "running", "state after the changes")
            wanted = len(changed) + len(deleted)
            equal(len(pins(c)), wanted, f"pins of {wanted} changed objects in '{bucket}'")
        job = ended(c, job_id)
        equal((job["state"], job["redone"]["attempts"]), ("finished", 0), f"end: {job['errors']}")
        check(members(c, bucket, "all.tar") == {n: old(n) for n in NAMES}, "not what was pinned")
        no_link_stays(c)
        c.get(bucket, changed[1]).expect(200)
        c.get(bucket, deleted[0]).expect(404)


def test_an_abort_leaves_no_pin(c):
    fill(c, "one")
    slow_disks(c, "disk.read", 200_000 // COUNT)  # it has not ended when the abort reaches it
    job_id = start(c, "one", "archive", {"prefix": "m/", "archive": "late.tar"})
    begun(c, job_id)
    change(c, "one")
    check(pins(c), "no pin of a changed object")
    c.call("DELETE", f"/v1/jobs/{job_id}").expect(202)
    equal(ended(c, job_id)["state"], "aborted", "state")
    no_link_stays(c)
    c.get("one", "late.tar").expect(404)


def test_a_target_dies_and_objects_change(c):
    """Its pins were in memory: an object that nobody has changed is the same; one that was is
    archived as it is after the restart, or as it was pinned."""
    fill(c, "one")
    owner = c.owner("one", "died.tar")
    with Held(c, "one"):
        job_id = start(c, "one", "archive", {"prefix": "m/", "archive": "died.tar"})
        begun(c, job_id)
        changed, deleted = change(c, "one")
        victim = next(t for t in c.targets() if t != owner)
        c.kill(victim)
        c.wait_node(victim, "unreachable")
        c.start(victim)
        c.wait_node(victim, "active")
        again = [n for n in changed if c.owner("one", n) == victim]
        check(again, f"{victim} has none of the changed objects")
        c.put("one", again[0], b"after the restart")
    job = ended(c, job_id)
    equal(job["state"], "finished", f"state; {job['errors']}")
    found = members(c, "one", "died.tar")
    for name in NAMES:
        allowed = [old(name)]
        allowed += [new(name), b"twice", b"after the restart"] if name in changed else []
        allowed += [None] if name in deleted else []
        check(found.get(name) in allowed, f"'{name}' has {(found.get(name) or b'?')[:20]}")
    no_link_stays(c)


if __name__ == "__main__":
    main()
