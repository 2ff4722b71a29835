#!/usr/bin/env python3
"""Sorts over buckets with several copies: the same bytes as with one; every output on all its
owners at
the commit, and seen by nobody before; nothing left anywhere after an abort; targets that die in any
phase and come back.

DFC_COPIES (2): copies of the buckets; the number of targets is that of --targets.  DFC_POINTS:
where targets and the primary die; DFC_LOST (1): how many targets."""

import hashlib
import os

from lib import ENDED, Failed, check, equal, main, wait_for
from sort_chaos import Watcher
from sort_errors import job_files
from sort_failures import tar_of, with_faults

COPIES = int(os.environ.get("DFC_COPIES", 2))
SHARDS = 16
SLOW = "sort.create=delay:1500"  # so that a job can be met at its work, also on a busy machine


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
    c.setting("repair_delay", "0s")
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


def abort_one(c):
    """False: it was through before it could be aborted."""
    watcher = Watcher(c, "out")
    watcher.start()
    job_id = c.sort(spec_of("abort"))
    wait_for(lambda: len(copies_on_disk(c, "out")) >= COPIES, "copies that are hidden")
    if c.call("DELETE", f"/v1/sort/abort?id={job_id}").status != 202:
        watcher.stop()
        whole(c, "abort", c.wait_job(job_id), c.wanted)
        return False
    equal(c.wait_job(job_id)["state"], "aborted", "state")
    watcher.stop()
    equal(watcher.seen, set(), "names that were seen")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    equal(copies_on_disk(c, "out"), [], "copies after the abort")
    return True


def test_an_abort_leaves_nothing(c):
    """Some outputs are on all their owners by then, and nobody has seen them."""
    with_faults(c, SLOW)
    repaired(c)
    check(any(abort_one(c) for _ in range(10)), "a job is met at its work")


def bring_back(c, job_id):
    """Starts whatever has died, until the job has ended."""
    def ended():
        for node in c.nodes:
            if c.pid(node) is None:
                c.start(node)
        try:
            job = c.job(job_id)
        except (OSError, Failed):  # the proxy is on its way
            return None
        return job if job["state"] in ENDED else None

    return wait_for(ended, f"end of {job_id}", 300)


def cost(job, outputs, lost, targets):
    """What was done twice, as shares of all there was to do, beside the share of targets that
    died."""
    redone = job["redone"]
    return (
        f"{redone['inputs'] / SHARDS:.2f} of the inputs, {redone['shards'] / outputs:.2f} of the "
        "outputs, "
        f"{lost / targets:.2f} of the targets, {redone['attempts']} attempts more")


def test_the_primary_dies(c):
    """While outputs are built, or what DFC_POINTS names is under way."""
    for point in os.environ.get("DFC_POINTS", "").split() or [None]:
        if point is not None:
            with_faults(c, f"{point}=delay:300")
            repaired(c)
        job_id = c.sort(spec_of("primary"))
        wait_for(lambda: c.job(job_id)["state"] != "queued", "the job runs")
        c.kill("p1", "-9")
        c.ended_by_test.add("p1")
        whole(c, "primary", bring_back(c, job_id), c.wanted)


def test_targets_that_die_and_come_back(c):
    """The first DFC_LOST targets die where they first pass the point."""
    lost = c.targets()[:int(os.environ.get("DFC_LOST", 1))]
    for point in os.environ.get("DFC_POINTS", "sort.finish").split():
        for target in lost:
            c.restart(target, f"--arg=--faults={point}=kill@1")
        repaired(c)
        c.ended_by_test.update(lost)
        job = bring_back(c, c.sort(spec_of("killed")))
        print(f"        {point}: {cost(job, len(c.wanted), len(lost), len(c.targets()))}",
              flush=True)
        whole(c, "killed", job, c.wanted)
        for target in lost:
            c.restart(target)  # it may not have passed the point


if __name__ == "__main__":
    main(targets=4)
