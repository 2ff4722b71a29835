#!/usr/bin/env python3
"""GET of objects that are not in memory, by 64 clients: one target of ours beside nginx, and
beside fio, which reads files of the same size past the page cache: what the disk gives.

Needs root, to drop the page cache before each run, and fio."""

import json
import os
import random
import shutil
import subprocess
import sys

import benchlib
from benchlib import GIB, KIB, MIB, load, log
from peers import Cluster, Nginx

CLIENTS = 64
# name, size of an object, bytes of all that are read in a run
ROWS = [
    ("100 KiB", 100 * KIB, GIB // 2),
    ("1 MiB", MIB, 2 * GIB),
    ("16 MiB", 16 * MIB, 4 * GIB),
]


def drop_caches(args):
    benchlib.flush_disk(args.dir)
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("3")


def fill(args, server, size, count):
    prefix = server.new_place(f"cold{size}")
    server.put_first(prefix)
    result = load(args.build, server.url, mode="put", prefix=prefix + "o", size=size,
                  requests=count, names=count, duration="1h", connections=8)
    if benchlib.failures(result) > 0:
        raise RuntimeError(f"{server.name}: {result['status']}, {result['errors']}")
    names = [f"{prefix}o{i:08d}\n" for i in range(count)]
    random.Random(size).shuffle(names)
    return names


def get_all(args, server, names_file, count):
    drop_caches(args)
    result = load(args.build, server.url, mode="get", paths=names_file, requests=count,
                  connections=min(CLIENTS, count), duration="1h", pid=server.pids())
    if benchlib.failures(result) > 0 or result["requests"] != count:
        raise RuntimeError(f"{server.name}: {result['status']}, {result['errors']}")
    return {"mb_per_s": result["mb_per_s"], "p99_us": result["latency_us"]["p99"]}


def fio(directory, size, count):
    """Whole files in random order, as many at a time as there are clients."""
    done = subprocess.run(
        ["fio", "--name=cold", f"--directory={directory}", "--rw=read", "--direct=1",
         f"--bs={min(size, MIB)}", "--ioengine=libaio", f"--iodepth={CLIENTS}",
         f"--nrfiles={count}", f"--filesize={size}", "--file_service_type=random", "--openfiles=64",
         "--output-format=json"], stdout=subprocess.PIPE, check=True, text=True)
    text = done.stdout[done.stdout.index("{"):]
    return {"mb_per_s": json.loads(text)["jobs"][0]["read"]["bw_bytes"] / 1e6}


def row(args, work, nginx, cluster, name, size, total):
    count = max(4, (total if not args.quick else 4 * MIB) // size)
    sides = {}
    for server in (nginx, cluster):
        names_file = work / f"{server.name}-{size}"
        names_file.write_text("".join(fill(args, server, size, count)))
        sides[server.name] = lambda s=server, f=names_file: get_all(args, s, f, count)
    files = work / f"fio-{size}"
    files.mkdir()
    sides["fio"] = lambda: fio(files, size, count)
    results = benchlib.interleave(sides, args.rounds, warm_up=False)
    for server in (nginx, cluster):
        server.remove_place(f"cold{size}")
    shutil.rmtree(files)
    rates = {side: [r["mb_per_s"] for r in of] for side, of in results.items()}
    return {"name": name, "size": size, "objects": count,
            "mb_per_s": {side: round(benchlib.median(v), 1) for side, v in rates.items()},
            "runs": {side: [round(x, 1) for x in v] for side, v in rates.items()},
            "p99_us": {side: round(benchlib.median([r["p99_us"] for r in results[side]]))
                       for side in ("nginx", "dfc")},
            "to_nginx": benchlib.paired_ratio(rates["dfc"], rates["nginx"]),
            "to_disk": benchlib.paired_ratio(rates["dfc"], rates["fio"])}


def main():
    p = benchlib.arguments(__doc__)
    args = p.parse_args()
    if os.geteuid() != 0 or shutil.which("fio") is None:
        log("cold.py needs root, and fio (Debian: fio)")
        return 77
    if args.quick:
        args.rounds = 1
    document = {"machine": benchlib.begin(args), "clients": CLIENTS, "rows": []}
    with benchlib.WorkDir(args.dir) as work, Nginx(work / "nginx") as nginx, \
            Cluster(work / "dfc", args.build) as cluster:
        for r in ROWS:
            if args.only in r[0]:
                document["rows"].append(row(args, work, nginx, cluster, *r))
    benchlib.table(["cold GET", "fio MB/s", "nginx MB/s", "dfc MB/s", "to nginx", "to the disk",
                    "nginx p99 us", "dfc p99 us"],
                   [[r["name"], r["mb_per_s"]["fio"], r["mb_per_s"]["nginx"], r["mb_per_s"]["dfc"],
                     r["to_nginx"]["median"], r["to_disk"]["median"], r["p99_us"]["nginx"],
                     r["p99_us"]["dfc"]] for r in document["rows"]])
    benchlib.finish(args, "cold", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
