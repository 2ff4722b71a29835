#!/usr/bin/env python3
"""Sorts that are aborted, or lose a target, in each phase: ended, and nothing of them stays."""

import io
import os
import tarfile

from lib import check, equal, main, wait_for
from sort_errors import job_files

POINTS = ("sort.extract", "sort.merge", "sort.plan", "sort.create", "sort.finish")
SHARDS = 16


def tar_of(shard):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(20):
            info = tarfile.TarInfo(f"{(i * 7919 + shard * 104729) % 1000:03d}-{shard}-{i}.bin")
            info.size = 2000
            tar.addfile(info, io.BytesIO(os.urandom(2000)))
    return out.getvalue()


def spec_of(name):
    return {"input_bck": {"name": "in"}, "output_bck": {"name": "out"},
            "input_format": {"prefix": ""}, "output_format": name + "-%04d",
            "output_shard_size": "40KiB"}


def restart(c, node, *args):
    c.stop(node)
    c.start(node, *args)
    c.wait_node(node, "active")


def with_faults(c, faults):
    for target in c.targets():
        restart(c, target, *([f"--arg=--faults={faults}"] if faults else []))


def nothing_is_left(c):
    equal(c.names("out"), [], "names in the output bucket")
    wait_for(lambda: not job_files(c), "the job's files are removed")


def test_inputs(c):
    c.create("in", durability="async")
    c.create("out")
    for i in range(SHARDS):
        c.put("in", f"s{i:02d}.tar", tar_of(i))


def test_abort_in_each_phase(c):
    for point in POINTS:
        # Every pass of this point takes a while, so that the abort finds the job there.
        with_faults(c, f"{point}=delay:700")
        job_id = c.sort(spec_of("abort"))
        phase = {"sort.extract": "extracting", "sort.merge": "merging", "sort.plan": "merging"}.get(
            point, "creating")
        job = c.wait_job(job_id, phase)
        equal(job["state"], phase, f"the job that waits at {point}; {job['errors']}")
        c.call("DELETE", f"/v1/sort/abort?id={job_id}").expect(202)
        equal(c.wait_job(job_id)["state"], "aborted", f"state after the abort at {point}")
        nothing_is_left(c)
    with_faults(c, "")


def test_errors_in_each_phase(c):
    for point in POINTS:
        restart(c, "t2", f"--arg=--faults={point}=EIO@1")
        job = c.wait_job(c.sort(spec_of("error")))
        if job["state"] == "finished":  # t2 has no part in this phase of this job
            check(point in ("sort.plan", "sort.merge"), f"{point} was passed by")
            for name in c.names("out"):
                c.object("DELETE", "out", name).expect(204)
        else:
            equal(job["state"], "failed", f"state after EIO at {point}")
            check("t2" in str(job["errors"]), f"the node is not named: {job['errors']}")
        nothing_is_left(c)
    restart(c, "t2")


def test_a_full_disk(c):
    restart(c, "t3", "--arg=--faults=sort.create=ENOSPC@1+")
    job = c.wait_job(c.sort(spec_of("full")))
    equal(job["state"], "failed", "state")
    check(any(e["code"] == "no_space" for e in job["errors"]), f"errors: {job['errors']}")
    restart(c, "t3")
    nothing_is_left(c)


def test_a_target_killed_in_each_phase(c):
    for point in POINTS:
        for target in c.targets():
            restart(c, target, f"--arg=--faults={point}=kill@1")
        job_id = c.sort(spec_of("killed"))
        killed = wait_for(lambda: [t for t in c.targets() if c.pid(t) is None], f"kill at {point}")
        c.ended_by_test.update(c.targets())
        job = c.wait_job(job_id)
        equal(job["state"], "failed", f"state after {killed} died at {point}")
        for target in c.targets():
            if c.pid(target) is None:
                c.start(target)
            else:
                restart(c, target)
            c.wait_node(target, "active")
        nothing_is_left(c)
        equal(len(c.names("in")), SHARDS, "input shards")


def test_afterwards_it_works(c):
    job = c.wait_job(c.sort(spec_of("works")))
    equal(job["state"], "finished", f"state; {job['errors']}")
    records = 0
    for name in c.names("out"):
        with tarfile.open(fileobj=io.BytesIO(c.get("out", name).expect(200).body)) as tar:
            records += len(tar.getnames())
    equal(records, SHARDS * 20, "records")


def test_the_proxy_dies_and_the_job_goes_on_or_ends(c):
    with_faults(c, "sort.create=delay:300")
    job_id = c.sort(spec_of("proxy"))
    c.wait_job(job_id, "creating")
    c.kill("p1", "-9")
    c.start("p1")
    job = c.wait_job(job_id)
    check(job["state"] in ("finished", "failed"), f"state: {job['state']}")
    names = c.names("out", prefix="proxy-")
    check(bool(names) == (job["state"] == "finished"), f"{job['state']} with {len(names)} shards")
    wait_for(lambda: not job_files(c), "the job's files are removed")


if __name__ == "__main__":
    main(targets=3)
