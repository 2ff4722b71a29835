#!/usr/bin/env python3
"""Sorts whose targets wait for each other for longer than idle connections are kept."""

import hashlib
import io
import random
import tarfile

from lib import equal, main

IDLE = "--arg=--idle_timeout=1s"
SHARDS = 30
RECORDS = 20
RECORD = 160_000  # all together more than the pipes and socket buffers on a stream's way


def tar_of(shard):
    """Shard i has the names of i alone, so that the output takes all of it at once."""
    rng = random.Random(shard)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for i in range(RECORDS):
            info = tarfile.TarInfo(f"{shard:02d}-{i:02d}.bin")
            info.size = RECORD
            tar.addfile(info, io.BytesIO(rng.randbytes(RECORD)))
    return out.getvalue()


def name_owned_by(c, bucket, stem, target):
    return next(n for n in (f"{stem}-{k}.tar" for k in range(1000)) if c.owner(bucket, n) == target)


def test_one_large_output_shard(c):
    """A builder opens the streams of all targets, and reads the last one when it comes to it."""
    c.create("in", durability="async")
    c.create("out", durability="async")
    builder = c.owner("out", "o-0.tar")
    other = next(t for t in c.targets() if t != builder)
    wanted = hashlib.sha256()
    for i in range(SHARDS):
        data = tar_of(i)
        owner = builder if i < SHARDS * 2 // 3 else other
        c.put("in", name_owned_by(c, "in", f"s{i:02d}", owner), data)
        wanted.update(data[:RECORDS * (512 + -(-RECORD // 512) * 512)])
    wanted.update(bytes(1024))
    for target in c.targets():
        c.restart(target, IDLE, "--arg=--faults=disk.write=delay:15")
    job = c.wait_job(c.sort({"input_bck": {"name": "in"}, "output_bck": {"name": "out"},
                             "input_format": {"prefix": ""}, "output_format": "o-%d",
                             "output_shard_size": "1GiB"}))
    equal(job["state"], "finished", f"state; {job['errors']}")
    body = c.get("out", "o-0.tar").expect(200).body
    equal(hashlib.sha256(body).hexdigest(), wanted.hexdigest(), "the output's checksum")


if __name__ == "__main__":
    main(targets=2)
