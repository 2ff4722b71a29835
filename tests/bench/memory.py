#!/usr/bin/env python3
"""Resident memory of a target under 256 clients that GET, and 64 that PUT, 16 MiB objects at once;
and of two under 64 that PUT large objects (--large, MiB) with two copies, where each sends what it
gets to the other, and of three that keep them in slices (ec 2+1).  Ends with status 1 when a bound
is exceeded: memory, unlike time, is no matter of luck."""

import contextlib
import sys

import benchlib
from benchlib import MIB, load, log
from peers import Cluster

SIZE = 16 * MIB
OBJECTS = 16
# name, mode, clients, bound of the target's resident memory
ROWS = [
    ("256 GET", "get", 256, 300 * MIB),
    ("64 PUT", "put", 64, 300 * MIB),
]
LARGE_BOUND = 512 * MIB
# how large objects are kept: properties of the bucket, targets
LARGE = {
    "2 copies": ({"copies": 2}, 2),
    "ec 2+1": ({"ec": {"data": 2, "parity": 1}}, 3),
}


def row(args, cluster, name, mode, clients, bound):
    if args.quick:
        clients = clients // 16
    pid = cluster.pids()[0]
    place = cluster.new_place(mode)
    cluster.put_first(place)
    options = {"mode": mode, "connections": clients, "timeout": "5m",
               "duration": f"{1 if args.quick else 4}s"}
    if mode == "get":
        load(args.build, cluster.url, mode="put", prefix=place + "o", size=SIZE, names=OBJECTS,
             requests=OBJECTS, connections=4, duration="10m")
        options["path"] = [f"{place}o{i:08d}" for i in range(OBJECTS)]
    else:
        options.update(prefix=place + "o", size=SIZE, requests=clients if args.quick else 256)
    benchlib.memory_reset(pid)
    before, _ = benchlib.memory_of(pid)
    with benchlib.PeakMemory(pid) as memory:
        result = load(args.build, cluster.url, pid=pid, **options)
    after, peak = benchlib.memory_of(pid)
    cluster.remove_place(mode)
    if benchlib.failures(result) > 0 or result["requests"] < clients:
        raise RuntimeError(f"{name}: {result['requests']} answers, {result['status']}, "
                           f"{result['errors']}")
    mib = {"before": before, "median": benchlib.median(memory.samples), "peak": peak,
           "after": after, "bound": bound}
    return {"name": name, "clients": clients, "object_bytes": SIZE,
            "requests": result["requests"], "mb_per_s": round(result["mb_per_s"], 1),
            "rss_mib": {k: round(v / MIB, 1) if v is not None else None for k, v in mib.items()},
            "within_bound": peak <= bound}


def large_row(args, cluster, kept):
    """The bound is each target's, the figures those of the greatest."""
    clients = 64 // 16 if args.quick else 64
    size = MIB if args.quick else args.large * MIB
    cluster.call("POST", "/v1/buckets/large",
                 {"action": "create", "value": {**LARGE[kept][0], "durability": "async"}})
    cluster.put_first("/v1/objects/large/")
    for pid in cluster.pids():
        benchlib.memory_reset(pid)
    before = max(benchlib.memory_of(pid)[0] for pid in cluster.pids())
    with contextlib.ExitStack() as stack:
        watched = [stack.enter_context(benchlib.PeakMemory(pid)) for pid in cluster.pids()]
        result = load(args.build, cluster.proxy["url"], pid=cluster.pids()[0], mode="put",
                      redirect="follow", prefix="/v1/objects/large/o", size=size,
                      requests=clients, connections=clients, timeout="60m", duration="60m",
                      **({"zeros": True} if args.zeros else {}))
    ends = [benchlib.memory_of(pid) for pid in cluster.pids()]
    cluster.remove_place("large")
    if benchlib.failures(result) > 0 or result["requests"] < clients:
        raise RuntimeError(f"{kept}: {result['requests']} answers, {result['status']}, "
                           f"{result['errors']}")
    peak = max(peak for _, peak in ends)
    log(f"{kept}: {peak / MIB:.1f} MiB at the most")
    mib = {"before": before, "median": max(benchlib.median(w.samples) for w in watched),
           "peak": peak, "after": max(now for now, _ in ends), "bound": LARGE_BOUND}
    return {"name": f"{clients} PUT of {size // MIB} MiB, {kept}", "clients": clients,
            "object_bytes": size, "requests": result["requests"],
            "mb_per_s": round(result["mb_per_s"], 1),
            "rss_mib": {k: round(v / MIB, 1) for k, v in mib.items()},
            "within_bound": peak <= LARGE_BOUND}


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--large", type=int, default=64, help="MiB of each of 64 large objects")
    p.add_argument("--zeros", action="store_true",
                   help="large objects of zeros, for a disk that keeps them in less")
    args = p.parse_args()
    document = {"machine": benchlib.begin(args), "rows": []}
    with benchlib.WorkDir(args.dir) as work, Cluster(work / "dfc", args.build) as cluster:
        for r in ROWS:
            if args.only in r[0]:
                document["rows"].append(row(args, cluster, *r))
    for kept, (_, targets) in LARGE.items():
        if args.only in f"large {kept}":
            with benchlib.WorkDir(args.dir) as work, \
                    Cluster(work / "dfc", args.build, targets=targets) as cluster:
                document["rows"].append(large_row(args, cluster, kept))
    rows = document["rows"]
    benchlib.table(["", "clients", "before MiB", "median", "peak", "after", "bound", "MB/s"],
                   [[r["name"], r["clients"], *r["rss_mib"].values(), r["mb_per_s"]]
                    for r in rows])
    benchlib.finish(args, "memory", document)
    over = [r["name"] for r in rows if not r["within_bound"]]
    if over:
        log(f"over the bound: {', '.join(over)}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
