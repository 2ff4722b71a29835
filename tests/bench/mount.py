#!/usr/bin/env python3
"""Mounts of a bucket and of a volume beside the disk (ext4, if --dir is on it), s3fs, rclone and
JuiceFS on the same cluster: rows B1 (cached reads), B2 (writes), B3 (cold streams, also of a
distant backend) and B7 (small files and names).  B1 has a FUSE file system that returns memory, too,
and a mount that serves what the kernel could read itself.

Every run has a fresh mount, so the kernel has none of its pages.  The files of the disk and of disk
caches are in the page cache.  What this machine has no program for is left out."""

import json
import os
import pathlib
import random
import subprocess
import sys
import time

import benchlib
import mount_sides
from benchlib import GIB, KIB, MIB
from peers import Cluster
from slow_s3 import Noughts, SlowS3, create

HERE = pathlib.Path(__file__).resolve().parent
DELAY_S = 0.010
READERS = 8  # threads of B7
BASES = ("memory", "juicefs")  # sides that all others are compared with, besides the first
# As --quick has them, and as they are: files, and their size.
LARGE = {True: (16, MIB), False: (16, 64 * MIB)}
SMALL = {True: 4 * KIB, False: 100 * KIB}
STREAMS = {True: (1, 4), False: (1, 4, 16)}
PAGES = {True: 200, False: 60000}
WRITTEN = {True: MIB, False: 64 * MIB}


class Bench:
    def __init__(self, args, work, cluster):
        self.args, self.work, self.cluster = args, work, cluster
        self.env = {**os.environ, **cluster.environment}
        self.s3_url = cluster.environment["DFC_S3_ENDPOINT"]
        self.rounds = args.rounds
        keys = {"AWSACCESSKEYID": "bench", "AWSSECRETACCESSKEY": "bench-secret",
                "AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench-secret"}
        rclone = {"TYPE": "s3", "PROVIDER": "Other", "ENV_AUTH": "true", "REGION": "us-east-1",
                  "ENDPOINT": self.s3_url}
        others = {k: v for k, v in os.environ.items() if not k.startswith(("AWS", "RCLONE_"))}
        self.s3_env = {**others, **keys, "HOME": str(work), "RCLONE_CONFIG": "/dev/null",
                       **{"RCLONE_CONFIG_BENCH_" + k: v for k, v in rclone.items()}}
        self.rows, self.caches, self.buckets = [], {}, 0
        self.sides = {}
        for kind in mount_sides.there():
            self.sides[kind.name] = kind(self)
        self.others = {"memory": mount_sides.Memory(self, *LARGE[args.quick]),
                       "served": mount_sides.Served(self)}

    def side(self, name):
        return self.sides.get(name) or self.others[name]

    # --- what is read ---

    def ctl(self, *words):
        subprocess.run([str(self.args.build / "dfcctl"), *map(str, words)], env=self.env,
                       check=True, stdout=subprocess.DEVNULL)

    def files(self, bucket):
        """The directory on the disk that has the files of the bucket."""
        return self.work / "files" / bucket

    def fill(self, bucket, count, size):
        """Files of random bytes, on the disk and in a bucket."""
        root = self.files(bucket)
        for i in range(count):
            path = root / f"{i % 10}/{i:05}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(random.Random(i).randbytes(size))
        self.ctl("bucket", "create", bucket)
        self.ctl("put", "--quiet", "-r", root, bucket + "/")

    def new_bucket(self):
        self.buckets += 1
        return f"place{self.buckets}"

    def cache_of(self, name, bucket):
        """A directory with all of the bucket: the side's disk cache."""
        if (name, bucket) not in self.caches:
            directory = self.work / f"cache-{name}-{bucket}"
            directory.mkdir()
            self.side(name).warm(bucket, directory)
            self.caches[name, bucket] = directory
        return self.caches[name, bucket]

    # --- runs ---

    def work_on(self, kind, directory, threads, amount=0):
        done = subprocess.run(
            [sys.executable, str(HERE / "mount_worker.py"), kind, str(directory), str(threads),
             str(amount)], check=True, stdout=subprocess.PIPE, text=True)
        return json.loads(done.stdout)

    def run(self, name, bucket, kind, threads, amount=0, cache=None):
        """→ a run of the worker, with what the mount's process took."""
        side = self.side(name)
        with side.mounted(bucket, cache, writable=kind == "write") as path:
            before = side.use()
            result = self.work_on(kind, path, threads, amount)
            after = side.use()
        if before is not None:
            result.update(cpu_s=after[0] - before[0], peak_mib=after[1])
        return result

    def note(self, row, unit, results):
        """The rate of each side, and its ratio to that of the first, and of BASES that are there."""
        rates = {side: [rate_of(r, unit) for r in runs] for side, runs in results.items()}
        base = next(iter(rates))
        for side, runs in results.items():
            cpu = [per_unit(r, unit) for r in runs if "cpu_s" in r]
            self.rows.append({
                "row": row, "side": side, "unit": unit, "rate": round(benchlib.median(rates[side]), 1),
                "to": base, "ratio": benchlib.paired_ratio(rates[side], rates[base]),
                "ratios": {other: benchlib.paired_ratio(rates[side], rates[other])
                           for other in BASES if other in rates},
                "cpu": round(benchlib.median(cpu), 3) if cpu else None,
                "peak_mib": round(max(r["peak_mib"] for r in runs)) if cpu else None,
                "rates": [round(r, 1) for r in rates[side]]})
            benchlib.log(f"  {row}: {side} {self.rows[-1]['rate']} {unit}")

    def compare(self, row, unit, sides):
        """`sides`: {name: a function that makes one run}."""
        if self.args.only in row:
            self.note(row, unit, benchlib.interleave(sides, self.rounds, warm_up=False))


def rate_of(result, unit):
    amount = result["bytes"] / 1e6 if unit == "MB/s" else result["count"]
    return amount / result["seconds"]


def per_unit(result, unit):
    """Seconds of processors for a GiB, or microseconds for an act."""
    if unit == "MB/s":
        return result["cpu_s"] * GIB / result["bytes"]
    return result["cpu_s"] * 1e6 / result["count"]


def cached_reads(b):
    """B1: the bytes are in the disk cache of each side."""
    kinds = [("B1 read 1 MiB, cached", "MB/s", "read", 0),
             ("B1 random 4 KiB, cached", "acts/s", "random", PAGES[b.args.quick]),
             ("B1 mmap, cached", "MB/s", "mmap", 0)]
    for row, unit, kind, amount in kinds:
        if b.args.only not in row:
            continue
        names = [*b.sides, "served"]
        for name in names:
            b.cache_of(name, "large")
        sides = {name: lambda name=name: b.run(name, "large", kind, 1, amount,
                                               b.cache_of(name, "large")) for name in names}
        sides["memory"] = lambda: b.run("memory", "large", kind, 1, amount)
        b.compare(row, unit, sides)


def put(b, bucket, count):
    """dfcctl stores the same bytes."""
    size = WRITTEN[b.args.quick]
    source = b.work / "put"
    source.mkdir(exist_ok=True)
    for i in range(count):
        if not (source / f"{i}").exists():
            (source / f"{i}").write_bytes(random.Random(i).randbytes(size))
    names = [source / f"{i}" for i in range(count)]
    begun = time.monotonic()
    b.ctl("put", "--quiet", *names, bucket + "/")
    return {"count": count, "bytes": count * size, "seconds": time.monotonic() - begun}


def writes(b):
    """B2: new files, each durable when it is closed."""
    for count in (1, 16):
        row = f"B2 write, {count} at once"
        if b.args.only not in row:
            continue
        bucket = b.new_bucket()
        b.files(bucket).mkdir(parents=True)
        b.ctl("bucket", "create", bucket)
        sides = {"dfcctl put": lambda bucket=bucket, count=count: put(b, bucket, count)}
        for name in b.sides:
            sides[name] = lambda name=name, bucket=bucket, count=count: b.run(
                name, bucket, "write", count, WRITTEN[b.args.quick])
        b.compare(row, "MB/s", sides)


def straight(b, url, prefix, names, streams):
    """GETs of whole objects, by as many connections."""
    paths = b.work / "paths"
    paths.write_text("".join(f"{prefix}{n}\n" for n in names))
    result = benchlib.load(b.args.build, url, mode="get", paths=paths, requests=len(names),
                           connections=streams, duration="1h")
    if benchlib.failures(result) > 0 or result["requests"] != len(names):
        raise RuntimeError(f"{url}: {result['status']}, {result['errors']}")
    size = LARGE[b.args.quick][1] * len(names)
    return {"count": len(names), "bytes": size, "seconds": size / 1e6 / result["mb_per_s"]}


def mounts_of(b):
    """Sides that show any bucket."""
    return [n for n in b.sides if n not in ("raw", "volume", "juicefs")]


def cold_streams(b):
    """B3: nothing is cached but by the cluster; the base are GETs of the same objects."""
    count = LARGE[b.args.quick][0]
    names = [f"{i % 10}/{i:05}" for i in range(count)]
    for streams in STREAMS[b.args.quick]:
        sides = {"GET": lambda streams=streams: straight(
            b, b.cluster.url, "/v1/objects/large/", sorted(names)[:streams], streams)}
        for name in (n for n in b.sides if n != "raw"):
            sides[name] = lambda name=name, streams=streams: b.run(name, "large", "read", streams,
                                                                   streams)
        b.compare(f"B3 cold read, {streams} streams", "MB/s", sides)


def distant_streams(b):
    """B3: a backend that answers after 10 ms; the cluster has nothing of it either."""
    count, size = LARGE[b.args.quick]
    names = [f"{i:05}" for i in range(count)]
    with SlowS3(delay_s=DELAY_S) as s3:
        s3.put("data", "first", b"first")
        for name in names:
            s3.store("data", name, Noughts(size), None, etag=f'"{name}-1"')

        def run(name, streams):
            bucket = b.new_bucket()
            create(b.cluster, s3.url, bucket, "first")
            try:
                return b.run(name, bucket, "read", streams, streams)
            finally:
                b.cluster.call("DELETE", f"/v1/buckets/{bucket}")

        for streams in STREAMS[b.args.quick]:
            sides = {"GET": lambda streams=streams: straight(b, s3.url, "/data/", names[:streams],
                                                             streams)}
            for name in mounts_of(b):
                sides[name] = lambda name=name, streams=streams: run(name, streams)
            b.compare(f"B3 cold read, {streams} streams, 10 ms", "MB/s", sides)


def small_files(b):
    """B7: what s3fs and rclone are compared by, besides B1 to B3."""
    count = b.args.files
    for row, kind, threads, amount in (("B7 files of 100 KiB, cold", "read", READERS, 0),
                                       ("B7 list and stat", "names", 1, count)):
        b.compare(row, "acts/s", {
            name: lambda name=name, kind=kind, threads=threads, amount=amount: b.run(
                name, "small", kind, threads, amount) for name in b.sides})


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--files", type=int, default=2000, help="small files of B7")
    args = p.parse_args()
    if args.quick:
        args.files, args.rounds = 40, 1
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse") or \
            not (args.build / "dfc-mount").exists():
        benchlib.log("skipped: needs root, /dev/fuse and dfc-mount")
        sys.exit(77)
    benchlib.own_mounts()
    document = benchlib.begin(args)
    with benchlib.WorkDir(args.dir) as work, \
            Cluster(work / "dfc", args.build, more=["--s3"]) as cluster:
        b = Bench(args, work, cluster)
        b.fill("large", *LARGE[args.quick])
        b.fill("small", args.files, SMALL[args.quick])
        for part in (cached_reads, writes, cold_streams, distant_streams, small_files):
            part(b)
    benchlib.table(["row", "side", "rate", "", "ratio", *(f"/ {o}" for o in BASES), "CPU", "peak MiB"],
                   [[r["row"], r["side"], r["rate"], r["unit"], r["ratio"]["median"],
                     *(r["ratios"].get(o, {}).get("median") for o in BASES), r["cpu"],
                     r["peak_mib"]] for r in b.rows])
    benchlib.finish(args, "mount", {"machine": document, "rows": b.rows})


if __name__ == "__main__":
    main()
