#!/usr/bin/env python3
"""Sorts over buckets with several copies: the same bytes as with one; every output on all its owners at
the commit, and seen by nobody before; nothing left anywhere after an abort; targets that die in any
phase and come back.

DFC_COPIES (2): copies of the buckets; the number of targets is that of --targets.  DFC_POINTS
(sort.finish): where targets die."""

import hashlib
import os

from copies import setting
from lib import ENDED, check, equal, main, wait_for
from sort_chaos import Watcher
from sort_errors import job_files
from sort_failures import POINTS, restart, tar_of, with_faults

COPIES = int(os.environ.get("DFC_COPIES", 2))
SHARDS = 16


def spec_of(name, source="in", to="out"):
    return {"input_bck": {"name": source}, "output_bck": {"name": to},
            "input_format": {"prefix": "s"}, "output_format": name + "-%04d",
            "output_shard_size": "40KiB", "algorithm": {"kind": "shuffle", "seed": "7"}}


def create(c, bucket, copies):
    body = {"action": "create", "value": {"copies": copies, "durability": "async"}}
    c.call("POST", f"/v1/buckets/{bucket}", body).expect(201)


def repaired(c):
    """No target lags: a sort's targets wait for their repair before they look for input."""
    def done():
        nodes = c.get_json("/v1/cluster")["nodes"]
        return all(n["state"] == "active" and n.get("lag", "none") == "none" for n in nodes
                   if n["role"] == "target")
    wait_for(done, "all targets are repaired", 120)


def contents(c, bucket, name):
    """By number: the same for every sort of these inputs."""
    return [hashlib.sha256(c.get(bucket, shard).expect(200).body).hexdigest()
            for shard in c.names(bucket, prefix=name + "-")]


def copies_on_disk(c, bucket):
    part = f"/.dfc/obj/{c.get_json('/v1/buckets/' + bucket)['id']}/"
    return [path for target in c.targets() for path in c.object_files(target) if part in path]


def whole(c, name, job, wanted):
    equal(job["state"], "finished", f"state of {name}; {job['errors']}")
    equal(contents(c, "out", name), wanted, f"output of {name}")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    equal(len(copies_on_disk(c, "out")), COPIES * len(wanted), "copies of the output")
    c.destroy("out")
    create(c, "out", COPIES)


def test_the_same_as_with_one_copy(c):
    setting(c, "repair_delay", "0s")
    for bucket, copies in (("one", 1), ("plain", 1), ("in", COPIES), ("out", COPIES)):
        create(c, bucket, copies)
    for i in range(SHARDS):
        data = tar_of(i)
        c.put("one", f"s{i:02d}.tar", data)
        c.put("in", f"s{i:02d}.tar", data)
    job = c.wait_job(c.sort(spec_of("works", "one", "plain")))
    equal(job["state"], "finished", f"state with one copy; {job['errors']}")
    c.wanted = contents(c, "plain", "works")
    for source, to in (("in", "plain"), ("one", "out"), ("in", "out")):
        job = c.wait_job(c.sort(spec_of(f"{source}-{to}", source, to)))
        equal(job["state"], "finished", f"state of {source} to {to}; {job['errors']}")
        equal(contents(c, to, f"{source}-{to}"), c.wanted, f"output of {source} to {to}")
        equal(job["progress"]["records"], SHARDS * 20, "records")
    equal(len(copies_on_disk(c, "out")), 2 * COPIES * len(c.wanted), "copies of the output")


def test_an_abort_leaves_nothing(c):
    """Some outputs are on all their owners by then, and nobody has seen them."""
    with_faults(c, "sort.finish=delay:300")
    repaired(c)
    before = len(copies_on_disk(c, "out"))
    watcher = Watcher(c, "out")
    names = set(c.names("out"))
    watcher.start()
    job_id = c.sort(spec_of("abort"))
    wait_for(lambda: len(copies_on_disk(c, "out")) >= before + COPIES, "copies that are hidden")
    c.call("DELETE", f"/v1/sort/abort?id={job_id}").expect(202)
    equal(c.wait_job(job_id)["state"], "aborted", "state")
    watcher.stop()
    equal(watcher.seen - names, set(), "names that were seen")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    equal(len(copies_on_disk(c, "out")), before, "copies after the abort")
    with_faults(c, "")
    c.destroy("out")
    create(c, "out", COPIES)


def test_a_key_map_with_copies(c):
    lines = "".join(f"{i:03d}-\t{'low' if i < 500 else 'high'}-%02d.tar\n" for i in range(1000))
    c.put("in", "keys.map", "".join("^" + line for line in lines.splitlines(True)).encode())
    spec = {**spec_of("map"), "ekm_file": "dfc://in/keys.map"}
    del spec["output_format"]
    job = c.wait_job(c.sort(spec))
    equal(job["state"], "finished", f"state; {job['errors']}")
    kinds = {name.split("-")[0] for name in c.names("out")}
    equal(kinds, {"low", "high"}, "kinds of shards")
    c.destroy("out")
    create(c, "out", COPIES)


def test_targets_that_die_and_come_back(c):
    """Each dies where it first passes the point."""
    for point in os.environ.get("DFC_POINTS", "sort.finish").split():
        for target in c.targets():
            restart(c, target, f"--arg=--faults={point}=kill@1")
        repaired(c)
        c.ended_by_test.update(c.targets())
        job_id = c.sort(spec_of("killed"))

        def ended():
            for target in c.targets():
                if c.pid(target) is None:
                    c.start(target)
            job = c.job(job_id)
            return job if job["state"] in ENDED else None

        job = wait_for(ended, f"end of the job that lost targets at {point}", 300)
        print(f"        killed at {point}: {job['redone']}")
        check(job["redone"]["attempts"] > 0, "it began again")
        whole(c, "killed", job, c.wanted)


if __name__ == "__main__":
    main(targets=4)
