#!/usr/bin/env python3
"""The cluster changes under a sort, in each phase: a target comes, a mountpath goes and comes back.  The
job finishes with the same bytes, or fails with its reason and leaves nothing; the next one is whole."""

import hashlib
import io
import os
import random
import tarfile

from lib import check, equal, main, wait_for
from sort_errors import job_files

SHARDS = 8
RECORDS = 20
PHASES = {"sort.extract": "extracting", "sort.create": "creating"}


def tar_of(shard):
    rng = random.Random(shard)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(RECORDS):
            info = tarfile.TarInfo(f"{rng.randrange(1000):03d}-{shard}-{i}.bin")
            info.size = 2000
            tar.addfile(info, io.BytesIO(rng.randbytes(info.size)))
    return out.getvalue()


def spec_of(name):
    return {"input_bck": {"name": "in"}, "output_bck": {"name": "out"},
            "input_format": {"prefix": ""}, "output_format": name + "-%04d",
            "output_shard_size": "20KiB"}


def contents(c, name):
    """By number: the same for every sort of these inputs."""
    return [hashlib.sha256(c.get("out", shard).expect(200).body).hexdigest()
            for shard in c.names("out", prefix=name + "-")]


def slow_down(c, point):
    for target in c.targets():
        c.stop(target)
        c.start(target, f"--arg=--faults={point}=delay:250")
        c.wait_node(target, "active")


def sort_meanwhile(c, name, point, change):
    """Sorts; `change` comes in the midst of that phase (or after it, on a machine
    that has much else to do).  The job as it ended."""
    slow_down(c, point)
    job_id = c.sort(spec_of(name))
    c.wait_job(job_id, PHASES[point])
    change()
    return c.wait_job(job_id)


def whole_or_nothing(c, name, job, wanted):
    wait_for(lambda: not job_files(c), "the job's files are removed")
    if job["state"] == "finished":
        equal(contents(c, name), wanted, "the output")
        return
    equal(job["state"], "failed", "state")
    check(job["errors"], "there is a reason")
    equal(c.names("out", prefix=name + "-"), [], "output of a sort that failed")


def reference(c):
    """What a sort that nothing disturbs comes to."""
    if not c.names("out", prefix="plain-"):
        job = c.wait_job(c.sort(spec_of("plain")))
        equal(job["state"], "finished", f"state; {job['errors']}")
    return contents(c, "plain")


def test_inputs(c):
    c.create("in", durability="async")
    c.create("out")
    for i in range(SHARDS):
        c.put("in", f"s{i:02d}.tar", tar_of(i))
    check(len(reference(c)) > SHARDS, "output shards")


def test_a_mountpath_goes(c):
    wanted = reference(c)
    path = os.path.join(c.node_dir("t2"), "mp2")

    def ask(action):
        c.call("PUT", "/v1/daemon/mountpaths", {"action": action, "value": path},
               node="t2").expect(200)

    for point in PHASES:
        name = f"gone-{PHASES[point]}"
        job = sort_meanwhile(c, name, point, lambda: ask("disable"))
        ask("enable")
        print(f"        mountpath disabled while {PHASES[point]}: {job['state']} {job['errors']}")
        whole_or_nothing(c, name, job, wanted)


def test_a_target_comes(c):
    wanted = reference(c)
    for point in PHASES:
        name = f"more-{PHASES[point]}"
        job = sort_meanwhile(c, name, point, lambda: c.wait_node(c.add_target(), "active"))
        print(f"        target added while {PHASES[point]}: {job['state']} {job['errors']}")
        whole_or_nothing(c, name, job, wanted)


def test_afterwards_it_works(c):
    wanted = reference(c)
    job = c.wait_job(c.sort(spec_of("after")))
    equal(job["state"], "finished", f"state; {job['errors']}")
    whole_or_nothing(c, "after", job, wanted)


if __name__ == "__main__":
    main(targets=3)
