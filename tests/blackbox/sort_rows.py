#!/usr/bin/env python3
"""Rows of AIStore's list for dSort (docs/project/checklist.md) that no other script shows: sorts of
what sorts have made,
little memory, missing shards that are compressed, an abort as of any job."""

import io
import tarfile

from lib import check, equal, main, wait_for
from sort_errors import job_files

SHARDS = 8
RECORDS = 1500  # of each shard: more rows than 1 MiB of tables has room for
NAMES = [f"{(i * 7919) % 100000:05d}-" + "long" * 20 for i in range(SHARDS * RECORDS)]


def tar_of(names):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in names:
            info = tarfile.TarInfo(name + ".txt")
            info.size = 1
            tar.addfile(info, io.BytesIO(b"x"))
    return out.getvalue()


def spec_of(output, **changes):
    return {
        "input_bck": {"name": "in"}, "output_bck": {"name": "out"},
        "input_format": {"prefix": "s-"}, "output_format": output + "-%03d",
        "output_shard_size": "4MiB", **changes
    }


def finished(c, spec):
    job = c.wait_job(c.sort(spec), seconds=300)
    equal(job["state"], "finished", f"state; {job['errors']}")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    return job


def failed(c, code, spec):
    job = c.wait_job(c.sort(spec), seconds=300)
    equal((job["state"], [e["code"] for e in job["errors"]][:1]), ("failed", [code]),
          f"{job['errors']}")
    wait_for(lambda: not job_files(c), "the job's files are removed")


def records(c, output):
    """The names, over all its shards."""
    found = []
    for shard in c.names("out", prefix=output + "-"):
        with tarfile.open(fileobj=io.BytesIO(c.get("out", shard).expect(200).body)) as tar:
            found += [name[:-4] for name in tar.getnames()]
    return found


def spilled(job):
    return sum(t["status"]["extract"]["spilled_bytes"] for t in job["targets"].values())


def test_memory_that_does_not_suffice(c):
    """Tables spill, and the result is the same; what cannot spill is refused."""
    c.create("in", durability="async")
    c.create("out", durability="async")
    for i in range(SHARDS):
        c.put("in", f"s-{i}.tar", tar_of(NAMES[i::SHARDS]))
    equal(spilled(finished(c, spec_of("plain"))), 0, "spilled with much memory")
    equal(records(c, "plain"), sorted(NAMES), "records")
    check(spilled(finished(c, spec_of("spilled", max_mem_usage="1MiB"))) > 0, "something spills")
    equal(records(c, "spilled"), sorted(NAMES), "records, with little memory")
    c.put("in", "keys.txt", "".join(f"{name}\tx-%03d\n" for name in NAMES).encode())
    for target in c.targets():
        c.restart(target, "--arg=--sort-key-map-memory=1MiB")
    failed(c, "no_memory", {**spec_of("map"), "ekm_file": "dfc://in/keys.txt"})
    equal(c.names("out", prefix="x-"), [], "outputs")


def test_a_chain_of_sorts(c):
    """To .tar.lz4, decreasing; that to .tar.gz as it is; and that back to what there was first."""
    finished(c, spec_of("down", output_extension=".tar.lz4",
                        algorithm={"kind": "alphanumeric", "decreasing": True}))
    kept = {"input_bck": {"name": "out"}, "algorithm": {"kind": "none"}}
    finished(c, spec_of("kept", input_format={"prefix": "down-"}, input_extension=".tar.lz4",
                        output_extension=".tar.gz", **kept))
    equal(records(c, "kept"), sorted(NAMES, reverse=True), "records, decreasing")
    finished(c, {**spec_of("up", input_format={"prefix": "kept-"}, input_extension=".tar.gz",
                           output_extension=".tar"), "input_bck": {"name": "out"}})
    shards = [c.get("out", n).expect(200).body for n in c.names("out", prefix="plain-")]
    equal([
        c.get("out", n).expect(200).body == shards[i]
        for i, n in enumerate(c.names("out", prefix="up-"))
    ], [True] * len(shards), "the same shards")


def test_compressed_shards_that_are_missing(c):
    there = c.names("out", prefix="down-")
    spec = {
        **spec_of("partly", input_format={
            "objnames": there + ["down-999.tar.lz4"]
        }, input_extension=".tar.lz4", output_extension=".tar"), "input_bck": {"name": "out"}
    }
    failed(c, "shard_missing", spec)
    job = finished(c, {**spec, "missing_shards": "warn"})
    check(any("down-999.tar.lz4" in w for w in job["warnings"]), f"warnings: {job['warnings']}")
    equal(records(c, "partly"), sorted(NAMES), "records of the others")


def test_an_abort_as_of_any_job(c):
    c.restart("t1", "--arg=--faults=sort.extract=delay:2000")
    before = c.names("out")
    job_id = c.sort(spec_of("aborted"))
    c.wait_job(job_id, "extracting")
    equal(c.dfcctl("job", "abort", job_id).returncode, 0, "the command")
    equal(c.wait_job(job_id)["state"], "aborted", "state")
    wait_for(lambda: not job_files(c), "the job's files are removed")
    equal(c.names("out"), before, "names in the output bucket")


if __name__ == "__main__":
    main(targets=2)
