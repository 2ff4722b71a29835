#!/usr/bin/env python3
"""The Python package: GETs of 1 KiB, 100 KiB and 1 MiB in one process, beside requests on the same
target and the AIStore SDK on nginx, which gives it the same bytes; epochs over tar shards beside the
same reader on a local disk.  See README.md for what each figure means."""

import contextlib
import io
import json
import random
import subprocess
import sys
import tarfile

import benchlib
from benchlib import KIB, MIB, log
from peers import Cluster, Nginx, put

READS = benchlib.ROOT / "tests" / "bench" / "python_reads.py"
GETS = (("GET 1 KiB", KIB, 5000), ("GET 100 KiB", 100 * KIB, 2000), ("GET 1 MiB", MIB, 300))
OBJECTS = 16
SHARDS, SAMPLES = 8, 160  # of 100 KiB: 16 MiB a shard
SIDES = ("dfc", "requests", "aistore")


def has(python, package):
    return subprocess.run([python, "-c", f"import {package}"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


class Bench:
    def __init__(self, args, cluster, nginx):
        self.args, self.cluster, self.nginx = args, cluster, nginx
        self.prefix = cluster.new_place("bench")
        cluster.put_first(self.prefix)

    def store(self, name, data):
        """The same bytes for our target, for nginx, and for a local reader."""
        put(self.cluster.proxy["url"] + self.prefix + name, body=data)
        if self.nginx is not None:
            folder = self.nginx.dir / "www" / "v1" / "objects" / "bench"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)

    def reads(self, kind, side, place, count, names):
        url = self.nginx.url if side == "aistore" else (
            self.cluster.url if side == "requests" else self.cluster.proxy["url"])
        done = subprocess.run([self.args.python, "-W", "ignore", READS, kind, side, url, place,
                               str(count), *names], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)

    def sides(self):
        return [side for side in SIDES
                if (side != "aistore" or self.nginx is not None) and has(self.args.python, side)
                or side == "dfc"]

    def gets(self, name, size, count):
        names = [f"{size}-{i}" for i in range(OBJECTS)]
        for one in names:
            self.store(one, random.Random(one).randbytes(size))
        count = 20 if self.args.quick else count
        results = benchlib.interleave(
            {side: lambda side=side: self.reads("get", side, "bench", count, names)
             for side in self.sides()}, self.args.rounds, warm_up=False)
        return {"name": name, **compared(results, "dfc", lambda r: r["count"] / r["seconds"],
                                         "requests_per_s")}

    def epochs(self, folder):
        names = [f"set-{i:02}.tar" for i in range(2 if self.args.quick else SHARDS)]
        for one in names:
            data = shard(one)
            put(self.cluster.proxy["url"] + self.prefix + one, body=data)
            (folder / one).write_bytes(data)
        places = {"dfc": "bench", "disk": str(folder)}
        results = benchlib.interleave(
            {side: lambda side=side: self.reads("epoch", side, places[side], 1, names)
             for side in places}, self.args.rounds, warm_up=False)
        return {"name": "epoch over shards", **compared(
            results, "dfc", lambda r: r["bytes"] / r["seconds"] / 1e6, "mb_per_s")}


def compared(results, base, rate, unit):
    """Medians of each side, and the ratios of the base to the others."""
    row = {}
    for side, runs in results.items():
        row[side] = {unit: round(benchlib.median([rate(r) for r in runs]), 1),
                     "client_us_each": round(benchlib.median(
                         [r["cpu_seconds"] / r["count"] * 1e6 for r in runs]), 1)}
        if side != base:
            row[side]["dfc_to_it"] = benchlib.paired_ratio(
                [rate(r) for r in results[base]], [rate(r) for r in runs])
    return row


def shard(name):
    out = io.BytesIO()
    draw = random.Random(name)
    with tarfile.open(fileobj=out, mode="w") as archive:
        for i in range(SAMPLES):
            member = tarfile.TarInfo(f"{i:04}.bin")
            member.size = 100 * KIB
            archive.addfile(member, io.BytesIO(draw.randbytes(member.size)))
    return out.getvalue()


def show(rows):
    benchlib.table(["", "side", "rate", "client us", "dfc / it"], [
        [row["name"], side, next(iter(row[side].values())), row[side]["client_us_each"],
         (row[side].get("dfc_to_it") or {}).get("median")]
        for row in rows for side in row if side != "name"])


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--python", default="/usr/bin/python3",
                   help="the Python that reads: with xxhash; with requests and aistore, they too")
    args = p.parse_args()
    if args.quick:
        args.rounds = 1
    if not has(args.python, "xxhash"):
        log(f"skipped: {args.python} has no package xxhash")
        sys.exit(77)
    document = {"machine": benchlib.begin(args), "rows": []}
    with benchlib.WorkDir(args.dir) as work, contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(work / "dfc", args.build))
        nginx = None
        if Nginx.program():
            nginx = stack.enter_context(Nginx(work / "nginx"))
        bench = Bench(args, cluster, nginx)
        (work / "local").mkdir()
        for name, size, count in GETS:
            if args.only in name:
                document["rows"].append(bench.gets(name, size, count))
        if args.only in "epoch over shards":
            document["rows"].append(bench.epochs(work / "local"))
    show(document["rows"])
    benchlib.finish(args, "python", document)


if __name__ == "__main__":
    main()
