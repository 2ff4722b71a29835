#!/usr/bin/env python3
"""Sorts over buckets whose large objects are in slices (ec/README.md): the same bytes as from whole objects,
also where a target is lost for good while they are read; an abort leaves nothing; who restarts reads none again."""

import io
import os
import tarfile

from ec import create, put, slice_files, slices_of_bucket
from lib import ENDED, check, equal, main, wait_for
from sort_copies import contents, copies_on_disk, repaired
from sort_errors import job_files
from sort_failures import restart, tar_of

SHARDS = 12
MIN_SIZE = 20000
LONG = 300


def spec_of(name, source="in", to="out", **more):
    return {"input_bck": {"name": source}, "output_bck": {"name": to}, "input_format": {"prefix": "s"},
            "output_format": name + "-%04d", "output_shard_size": "40KiB", **more}


def small_tar():
    """One record, which is kept whole."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("500-small.bin")
        info.size = 100
        tar.addfile(info, io.BytesIO(os.urandom(100)))
    return out.getvalue()


def finished(c, spec, records=SHARDS * 20 + 1):
    job = c.wait_job(c.sort(spec), seconds=LONG)
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(job["progress"]["records"], records, "records")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    return job


def empty(c):
    """The output bucket, as it was."""
    c.destroy("out")
    c.create("out", copies=2)


def test_the_same_as_of_whole_objects(c):
    create(c, "in", min_size=MIN_SIZE)
    c.create("whole")
    c.create("plain")
    c.create("out", copies=2)
    for i in range(SHARDS + 1):
        data = tar_of(i) if i < SHARDS else small_tar()
        c.put("whole", f"s{i:02d}.tar", data)
        put(c, "in", f"s{i:02d}.tar", data)
    equal(slices_of_bucket(c, "in"), 3 * SHARDS, "slices")
    finished(c, spec_of("works", "whole", "plain"))
    c.wanted = contents(c, "plain", "works")
    finished(c, spec_of("works"))
    equal(contents(c, "out", "works"), c.wanted, "the output")
    empty(c)


def test_a_shard_that_is_missing(c):
    shards = {"objnames": [f"s{i:02d}.tar" for i in range(SHARDS)] + ["s99.tar"]}
    job = c.wait_job(c.sort(spec_of("missing", input_format=shards)))
    equal((job["state"], job["errors"][0]["code"]), ("failed", "shard_missing"), "of a list")
    wait_for(lambda: not job_files(c), "the job's files are removed")


def pins(c):
    """The files that shards were brought to, and are being brought to."""
    found = []
    for path in job_files(c):
        try:
            found += [os.path.join(path, f) for f in os.listdir(path) if f.startswith("in-")]
        except (FileNotFoundError, NotADirectoryError):  # it goes, or is another's
            pass
    return found


def pins_of(c, target):
    return {p for p in pins(c) if p.startswith(c.node_dir(target))}


def test_an_abort_while_they_are_read_leaves_nothing(c):
    restart(c, "t1", "--arg=--faults=sort.extract=delay:1000")
    job_id = c.sort(spec_of("abort"))
    wait_for(lambda: pins(c), "a shard that is brought")
    c.call("DELETE", f"/v1/sort/abort?id={job_id}").expect(202)
    equal(c.wait_job(job_id)["state"], "aborted", "state")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    equal(copies_on_disk(c, "out"), [], "outputs")
    restart(c, "t1")


def test_who_restarts_has_what_was_brought(c):
    repaired(c)
    restart(c, "t2", "--arg=--faults=sort.create=kill@1")
    c.ended_by_test.add("t2")
    repaired(c)
    job_id = c.sort(spec_of("again"))
    wait_for(lambda: c.pid("t2") is None, "t2 dies over its first output")
    brought = pins_of(c, "t2")
    check(brought, "what t2 has brought")
    c.start("t2")
    seen = set()

    def ended():
        seen.update(pins_of(c, "t2"))
        return c.job(job_id)["state"] in ENDED

    wait_for(ended, "the end of the job", LONG)
    check(seen <= brought, f"brought once more: {seen - brought}")
    job = c.job(job_id)
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(contents(c, "out", "again"), c.wanted, "the output")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    empty(c)


def test_a_target_is_lost_for_good(c):
    """The others read the shards that it would have brought, too, without its slices."""
    repaired(c)
    restart(c, "t2", "--arg=--faults=sort.extract=kill@1")
    c.ended_by_test.add("t2")
    repaired(c)
    check(slice_files(c, "t2"), "slices of the target that dies")
    job = c.wait_job(c.sort(spec_of("lost")), seconds=LONG)
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(job["without"], ["t2"], "whom it went on without")
    equal(contents(c, "out", "lost"), c.wanted, "the output")
    c.start("t2")
    c.wait_node("t2", "active")
    wait_for(lambda: not job_files(c), "the job's files are removed", LONG)


if __name__ == "__main__":
    main(targets=4, args=("--proxy-arg=--jobs-away-wait=2s",))
