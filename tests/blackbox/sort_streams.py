#!/usr/bin/env python3
"""A sort keeps within the connections that targets take: threads that create shards read from all
others at once, and
one connection too many is refused."""

import io
import tarfile

from lib import equal, main

SHARDS = 12
RECORDS = 300
CONNECTIONS = 24  # with three targets: a dozen threads on each of the others would take all


def tar_of(names):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 3000
            tar.addfile(info, io.BytesIO(name.encode().ljust(info.size)))
    return out.getvalue()


def test_many_threads_with_few_connections(c):
    c.create("in")
    c.create("out")
    for s in range(SHARDS):
        c.put("in", f"s-{s:02}.tar", tar_of([f"r{s:02}-{i:04}.x" for i in range(RECORDS)]))
    # Every output shard has records of every target, and there are many more of them than threads.
    job = c.wait_job(c.sort({"input_bck": {"name": "in"}, "output_bck": {"name": "out"},
                             "input_format": {"prefix": "s-"}, "output_format": "o-%05d",
                             "output_shard_size": "100KiB", "create_concurrency_max_limit": 64,
                             "algorithm": {"kind": "shuffle", "seed": "1"}}))
    equal(job["state"], "finished", f"state; {job['errors']}")
    equal(sum(t["status"]["create"]["records"] for t in job["targets"].values()), SHARDS * RECORDS,
          "records")
    equal(job["redone"]["attempts"], 0, "attempts")


if __name__ == "__main__":
    main(targets=3, args=(f"--target-arg=--connections-max={CONNECTIONS}",))
