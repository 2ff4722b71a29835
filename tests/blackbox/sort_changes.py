#!/usr/bin/env python3
"""The cluster changes under a sort, in each phase: a target comes, a mountpath goes, comes back, is
new.  The
job finishes with the same bytes, or fails with its reason and leaves nothing; the next one is
whole."""

import functools
import hashlib
import io
import os
import random
import tarfile

from lib import check, equal, main, wait_for
from sort_errors import job_files

SHARDS = 8
RECORDS = 20
PHASES = {"sort.extract": "extracting", "sort.merge": "merging", "sort.create": "creating"}


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
        c.restart(target, f"--arg=--faults={point}=delay:250")


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
    c.setting("rebalance_keep", "2s")
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


def attach(c, number):
    path = os.path.join(c.node_dir("t1"), f"mp{number}")
    done = c.dfcctl("storage", "mountpath", "attach", "t1", path, "--create")
    equal(done.returncode, 0, done.stderr)


def test_a_mountpath_comes(c):
    """Objects move to it, those that are pinned, too."""
    wanted = reference(c)
    for i, point in enumerate(PHASES):
        name = f"disk-{PHASES[point]}"
        job = sort_meanwhile(c, name, point, functools.partial(attach, c, 3 + i))
        print(f"        mountpath attached while {PHASES[point]}: {job['state']} {job['errors']}")
        whole_or_nothing(c, name, job, wanted)


def test_old_pins_are_not_read(c):
    """A target that dies before it has a list of what it has pinned pins everything anew; what an
    earlier pin of
    that name is on another mountpath (the object has moved since) is of no interest."""
    wanted = reference(c)
    c.restart("t2", "--arg=--faults=sort.create=kill@1")
    c.ended_by_test.add("t2")
    job_id = c.sort(spec_of("pins"))
    wait_for(lambda: c.pid("t2") is None, "t2 dies over its first output")
    dirs = [d for d in job_files(c) if d.startswith(c.node_dir("t2")) and os.path.isdir(d)]
    equal(len(dirs), 2, "directories of the job, one on each mountpath")
    pins = {n for d in dirs for n in os.listdir(d) if n.startswith("in-")}
    check(pins, "pins")
    for path in (os.path.join(d, n) for d in dirs for n in pins):
        if not os.path.exists(path):
            with open(path, "wb") as f:
                f.write(bytes(100000))
    for path in (os.path.join(d, "pinned") for d in dirs):
        if os.path.exists(path):
            os.unlink(path)
    c.start("t2")
    job = c.wait_job(job_id, seconds=300)
    equal(job["state"], "finished", f"state; {job['errors']}")
    whole_or_nothing(c, "pins", job, wanted)


def test_a_target_comes(c):
    wanted = reference(c)
    for point in ("sort.extract", "sort.create"):
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
