#!/usr/bin/env python3
"""Epochs over a bucket with a backend: 2,000 objects of 1 MiB behind a backend that gives 50 MB/s
in all.

Straight from the backend, the first epoch (everything is fetched) and the second (everything is
here), by the
same clients; and 1 MiB at the end of a cold object of 4 GiB, beside the backend's own answer.  The
backend is the
tests' S3 server, with a rate."""

import random
import sys
import time
import urllib.request

import benchlib
from benchlib import GIB, MIB, load
from peers import Cluster
from slow_s3 import Noughts, SlowS3, create

CLIENTS = 16
RATE = 50_000_000  # bytes a second
LARGE = 4 * GIB


def read_all(args, url, prefix, names, work):
    paths = work / "paths"
    paths.write_text("".join(f"{prefix}{n}\n" for n in names))
    result = load(args.build, url, mode="get", paths=paths, requests=len(names),
                  connections=min(CLIENTS, len(names)), duration="1h")
    if benchlib.failures(result) > 0 or result["requests"] != len(names):
        raise RuntimeError(f"{url}: {result['status']}, {result['errors']}")
    return result["mb_per_s"]


def epochs(args, cluster, s3, work):
    count, size = (2000, MIB) if not args.quick else (40, MIB // 16)
    names = [f"o{i:06d}" for i in range(count)]
    data = random.Random(1).randbytes(size)
    for name in ["first", *names]:
        s3.put("data", name, data)
    runs = {"straight": [], "epoch 1": [], "epoch 2": []}
    for number in range(args.rounds):
        bucket = f"cold{number}"
        create(cluster, s3.url, bucket, "first")
        random.Random(number).shuffle(names)
        runs["straight"].append(read_all(args, s3.url, "/data/", names, work))
        for epoch in ("epoch 1", "epoch 2"):
            runs[epoch].append(read_all(args, cluster.url, f"/v1/objects/{bucket}/", names, work))
        cluster.call("DELETE", f"/v1/buckets/{bucket}")
    return {
        "objects": count, "size": size, "limit_mb_per_s": RATE / 1e6, "runs": runs,
        "mb_per_s": {side: round(benchlib.median(v), 1)
                     for side, v in runs.items()},
        "to_limit": {side: round(benchlib.median(v) / (RATE / 1e6), 3)
                     for side, v in runs.items()}
    }


def range_ms(url):
    request = urllib.request.Request(url, headers={"Range": f"bytes={LARGE - MIB}-{LARGE - 1}"})
    begun = time.monotonic()
    with urllib.request.urlopen(request) as reply:
        if reply.status != 206 or len(reply.read()) != MIB:
            raise RuntimeError(f"{url}: no range")
    return (time.monotonic() - begun) * 1000


def ranges(args, cluster, s3):
    s3.store("data", "large", Noughts(LARGE), None, etag='"large-1"')
    create(cluster, s3.url, "ranges", "first")
    runs, fetched = {"straight": [], "cold": []}, []
    for _ in range(args.rounds):
        runs["straight"].append(range_ms(f"{s3.url}/data/large"))
        before = s3.sent
        runs["cold"].append(range_ms(f"{cluster.proxy['url']}/v1/objects/ranges/large"))
        fetched.append(s3.sent - before)
    return {
        "runs": runs, "ms": {side: round(benchlib.median(v), 1)
                             for side, v in runs.items()}, "bytes_fetched": max(fetched),
        "times_straight": benchlib.paired_ratio(runs["cold"], runs["straight"])
    }


def main():
    args = benchlib.arguments(__doc__).parse_args()
    args.rounds = 1 if args.quick else args.rounds
    document = {"machine": benchlib.begin(args), "clients": CLIENTS}
    with SlowS3(rate=RATE) as s3, benchlib.WorkDir(args.dir) as work, Cluster(
            work / "dfc", args.build) as cluster:
        document["epochs"] = epochs(args, cluster, s3, work)
        document["range"] = ranges(args, cluster, s3)
    e, r = document["epochs"], document["range"]
    benchlib.table([f"{e['objects']} x {benchlib.size_text(e['size'])}", "MB/s", "of the limit"],
                   [[side, e["mb_per_s"][side], e["to_limit"][side]] for side in e["mb_per_s"]])
    benchlib.table(
        ["1 MiB at the end of 4 GiB", "ms", "bytes fetched"],
        [["straight", r["ms"]["straight"], MIB], ["cold", r["ms"]["cold"], r["bytes_fetched"]]])
    benchlib.finish(args, "epoch", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
