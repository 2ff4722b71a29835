#!/usr/bin/env python3
"""Sorts that are aborted or fail in each phase leave nothing; one that loses a target, or the
primary, in
any of them goes on when it is back, and makes what it would have made."""

import hashlib
import io
import os
import tarfile

from lib import ENDED, check, equal, main, wait_for
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
            "output_shard_size": "40KiB", "dali_indexes": True}


def with_faults(c, faults):
    for target in c.targets():
        c.restart(target, *([f"--arg=--faults={faults}"] if faults else []))


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
        c.restart("t2", f"--arg=--faults={point}=EIO@1")
        job = c.wait_job(c.sort(spec_of("error")))
        if job["state"] == "finished":  # t2 has no part in this phase of this job
            # Or its peers were heard first, who only miss it: then it was not to fail again.
            check(point in ("sort.plan", "sort.merge") or job["redone"]["attempts"] > 0,
                  f"{point} was passed by")
            for name in c.names("out"):
                c.object("DELETE", "out", name).expect(204)
        else:
            equal(job["state"], "failed", f"state after EIO at {point}")
            check("t2" in str(job["errors"]), f"the node is not named: {job['errors']}")
        nothing_is_left(c)
    c.restart("t2")


def test_a_full_disk(c):
    c.restart("t3", "--arg=--faults=sort.create=ENOSPC@1+")
    job = c.wait_job(c.sort(spec_of("full")))
    equal(job["state"], "failed", "state")
    check(any(e["code"] == "no_space" for e in job["errors"]), f"errors: {job['errors']}")
    c.restart("t3")
    nothing_is_left(c)


def contents(c, name):
    """By number: the same for every sort of these inputs."""
    return [hashlib.sha256(c.get("out", shard).expect(200).body).hexdigest()
            for shard in c.names("out", prefix=name + "-")]


def whole(c, name, job, wanted):
    equal(job["state"], "finished", f"state of {name}; {job['errors']}")
    equal(contents(c, name), wanted, f"output of {name}")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    for shard in c.names("out", prefix=name + "-"):
        c.object("DELETE", "out", shard).expect(204)


def undisturbed(c):
    """What a sort that nothing disturbs comes to."""
    if not c.names("out", prefix="works-"):
        job = c.wait_job(c.sort(spec_of("works")))
        equal(job["state"], "finished", f"state; {job['errors']}")
    return contents(c, "works")


def test_a_target_killed_in_each_phase(c):
    """Each dies where it first passes the point, of which some are passed by one alone."""
    wanted = undisturbed(c)
    for point in POINTS:
        for target in c.targets():
            c.restart(target, f"--arg=--faults={point}=kill@1")
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
        whole(c, "killed", job, wanted)
        equal(len(c.names("in")), SHARDS, "input shards")
    with_faults(c, "")


def test_one_of_three_redoes_its_own(c):
    """The others keep what they have built, and it what it had finished."""
    wanted = undisturbed(c)
    mine = sum(c.owner("out", name.replace("works", "redo")) == "t2"
               for name in c.names("out", prefix="works-"))
    c.restart("t2", f"--arg=--faults=sort.finish=kill@{max(mine, 1)}")
    c.ended_by_test.add("t2")
    job_id = c.sort({**spec_of("redo"), "create_concurrency_max_limit": 1
                     })  # 2 threads: it has 2 disks
    wait_for(lambda: c.pid("t2") is None, "t2 dies over its last output")
    for target in ("t1", "t3"):
        wait_for(lambda: c.job(job_id)["targets"][target]["state"] == "failed"
                 or c.job(job_id)["redone"]["attempts"] > 0, f"{target} notices, or is told")
    wait_for(lambda: c.job(job_id)["waits_for"] == ["t2"], "the job says whom it waits for")
    shown = c.dfcctl("sort", "status", job_id).stdout.splitlines()
    check(any(line.startswith("waits for target") and line.split()[-1] == "t2" for line in shown),
          f"dfcctl says so, too: {shown}")
    c.start("t2")
    job = c.wait_job(job_id, seconds=300)
    redone = job["redone"]
    print(f"        1 of 3 lost: {redone}, of {SHARDS} inputs and {len(wanted)} outputs")
    check(redone["inputs"] <= sum(c.owner("in", name) == "t2" for name in c.names("in")),
          f"inputs of others were read again: {redone}")
    check(redone["shards"] <= 1, f"outputs that were finished were built again: {redone}")
    stand = [int(line.rpartition("count=")[2]) for line in c.log("t2").splitlines()
             if "outputs of an earlier run are kept" in line and job_id in line]
    check(sum(stand) >= mine - 2, f"{stand} of the {mine} outputs of t2 stand")
    whole(c, "redo", job, wanted)


def test_it_has_so_many_attempts(c):
    """A target that dies over and over ends the job, which leaves nothing."""
    c.restart("p1", "--arg=--jobs_attempts_max=2")
    c.restart("t1", "--arg=--faults=sort.extract=kill@1")
    c.ended_by_test.add("t1")
    job_id = c.sort(spec_of("twice"))

    def ended():
        if c.pid("t1") is None:
            c.start("t1", "--arg=--faults=sort.extract=kill@1")
        job = c.job(job_id)
        return job if job["state"] in ENDED else None

    job = wait_for(ended, "end of the job", 300)
    equal(job["state"], "failed", "state")
    equal(job["redone"]["attempts"], 1, "how often it began again")
    if c.pid("t1") is None:
        c.start("t1")
    else:
        c.restart("t1")
    c.restart("p1")
    c.wait_node("t1", "active")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    equal(c.names("out", prefix="twice-"), [], "names in the output bucket")


def test_afterwards_it_works(c):
    job = c.wait_job(c.sort(spec_of("again")))
    equal(job["state"], "finished", f"state; {job['errors']}")
    records = 0
    for name in (n for n in c.names("out", prefix="again-") if n.endswith(".tar")):
        with tarfile.open(fileobj=io.BytesIO(c.get("out", name).expect(200).body)) as tar:
            records += len(tar.getnames())
    equal(records, SHARDS * 20, "records")


def test_the_proxy_dies_and_the_job_goes_on(c):
    with_faults(c, "sort.create=delay:300")
    job_id = c.sort(spec_of("proxy"))
    c.wait_job(job_id, "creating")
    c.kill("p1", "-9")
    c.start("p1")
    whole(c, "proxy", c.wait_job(job_id), undisturbed(c))


if __name__ == "__main__":
    main(targets=3)
