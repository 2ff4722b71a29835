#!/usr/bin/env python3
"""PUT and GET of objects with one, two and three copies, and in slices (ec 2+1, 4+2), interleaved,
and what
went over the network against the least that could.  See README.md for what each figure means."""

import re
import subprocess
import sys
import urllib.request

import benchlib
from benchlib import KIB, MIB, log
from peers import Cluster

MIN_SIZE = 64 * KIB  # smaller ones are whole in buckets with slices, too
# what a bucket is asked for, its slices of data and of parity (0: whole copies), its copies
SIDES = {"1": (0, 0, 1), "2": (0, 0, 2), "3": (0, 0, 3), "ec 2+1": (2, 1, 2), "ec 4+2": (4, 2, 3)}
TARGETS = 6
# name, size, requests of one PUT run
SIZES = [("1 KiB", KIB, 4000), ("1 MiB", MIB, 256), ("16 MiB", 16 * MIB, 24)]
RECEIVED = re.compile(r"^dfc_http_bytes_received_total(?:{[^}]*})? (\d+)", re.M)
SENT = re.compile(r"^dfc_http_bytes_sent_total(?:{[^}]*})? (\d+)", re.M)


def props_of(side, durability):
    data, parity, copies = SIDES[side]
    how = {"ec": {"data": data, "parity": parity, "min_size": MIN_SIZE}} if data else \
        {"copies": copies}
    return {**how, "durability": durability}


def least_put(side, size):
    """Bytes that targets receive for each of an object's: from the client, and from each other.
    (An owner's
    own slice goes over the network, too; here it counts as what could be spared.)"""
    data, parity, copies = SIDES[side]
    return round(1 + (data + parity - 1) / data, 3) if data and size > MIN_SIZE else copies


def least_get(side, size):
    """Bytes that they send: to the client, and slices to each other."""
    data, _, _ = SIDES[side]
    return round(1 + (data - 1) / data, 3) if data and size > MIN_SIZE else 1


class Bench:
    def __init__(self, args, cluster):
        self.args = args
        self.cluster = cluster
        self.places = 0
        self.rows = []

    def bytes_of(self, pattern):
        """Of all targets, since they began."""
        total = 0
        for target in self.cluster.targets:
            with urllib.request.urlopen(target["url"] + "/metrics", timeout=60) as reply:
                total += sum(int(n) for n in pattern.findall(reply.read().decode()))
        return total

    def run(self, pattern, each, **options):
        """One run, by way of the proxy's redirects; with the bytes that targets moved for each of
        an object's."""
        before = self.bytes_of(pattern)
        result = benchlib.load(self.args.build, self.cluster.proxy["url"], redirect="follow",
                               pid=self.cluster.pids(), threads=self.args.threads, **options)
        if benchlib.failures(result) > 0 or result["requests"] == 0:
            raise RuntimeError(f"{options}: {result['status']}, {result['errors']}")
        moved = self.bytes_of(pattern) - before
        result["moved"] = round(moved / (result["requests"] * each), 3)
        return result

    def new_place(self, side):
        """→ the prefix of the objects of a fresh bucket, and its name."""
        name = f"b{self.places}"
        self.places += 1
        self.cluster.call("POST", f"/v1/buckets/{name}", {
            "action": "create", "value": props_of(side, self.args.durability)})
        prefix = f"/v1/objects/{name}/"
        self.cluster.put_first(prefix)
        return prefix, name

    def put(self, side, size, count):
        prefix, name = self.new_place(side)
        benchlib.flush_disk(self.args.dir)
        result = self.run(RECEIVED, size, mode="put", prefix=prefix + "o", size=size,
                          requests=count, duration="120s",
                          connections=min(self.args.connections, count))
        self.cluster.remove_place(name)
        return result

    def get(self, paths, size):
        return self.run(SENT, size, mode="get", paths=paths, connections=self.args.connections,
                        duration=f"{self.args.milliseconds}ms")

    def size(self, name, size, count):
        if self.args.quick:
            count = min(count, 8)
        warm_up = not self.args.quick
        puts = {side: lambda side=side: self.put(side, size, count) for side in SIDES}
        self.add(f"PUT {name}", benchlib.interleave(puts, self.args.rounds, warm_up),
                 lambda side: least_put(side, size))
        places, files = [], {}
        for side in SIDES:
            prefix, place = self.new_place(side)
            places.append(place)
            self.run(RECEIVED, size, mode="put", prefix=prefix + "o", size=size, requests=count,
                     names=count, duration="10m", connections=8)
            files[side] = self.cluster.dir / f"paths-{place}"
            files[side].write_text("".join(f"{prefix}o{i:08d}\n" for i in range(count)))
        gets = {side: lambda side=side: self.get(files[side], size) for side in SIDES}
        self.add(f"GET {name}", benchlib.interleave(gets, self.args.rounds, warm_up),
                 lambda side: least_get(side, size))
        for place in places:
            self.cluster.remove_place(place)

    def add(self, name, results, least):
        def column(side, field):
            return [r[field] for r in results[side]]

        for side in SIDES:
            rate = "requests_per_s"
            self.rows.append({
                "name": name, "kept": side,
                "requests_per_s": round(benchlib.median(column(side, rate)), 1),
                "mb_per_s": round(benchlib.median(column(side, "mb_per_s")), 1),
                "cpu_us_per_request": round(benchlib.median(
                    column(side, "server_cpu_us_per_request")), 1),
                "p99_us": round(benchlib.median(
                    [r["latency_us"]["p99"] for r in results[side]])),
                "against_one": benchlib.paired_ratio(column(side, rate), column("1", rate)),
                "bytes_moved": round(benchlib.median(column(side, "moved")), 3),
                "bytes_least": least(side),
            })
        rates = (str(r["requests_per_s"]) for r in self.rows[-len(SIDES):])
        log(f"{name}: {', '.join(rates)} a second")

    def table(self):
        benchlib.table(["", "kept", "req/s", "MB/s", "of one copy", "us/req", "p99 us",
                        "bytes moved", "least"],
                       [[r["name"], r["kept"], r["requests_per_s"], r["mb_per_s"],
                         r["against_one"]["median"], r["cpu_us_per_request"], r["p99_us"],
                         r["bytes_moved"], r["bytes_least"]] for r in self.rows])


def code_alone(args):
    """ISA-L's parity alone, and what ec/ does with it, in memory (dfc-ec-bench)."""
    command = [str(args.build / "tests/bench/dfc-ec-bench"), *(["--quick"] if args.quick else [])]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    print(text)
    return text.splitlines()


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--milliseconds", type=int, default=1000, help="of each GET run")
    p.add_argument("--connections", type=int, default=16)
    p.add_argument("--threads", type=int, default=2, help="of the load generator")
    p.add_argument("--durability", choices=("sync", "async"), default="sync", help="of the buckets")
    args = p.parse_args()
    if args.quick:
        args.rounds, args.milliseconds = 1, 100
    document = {"machine": benchlib.begin(args), "isa_l": code_alone(args)}
    with benchlib.WorkDir(args.dir) as work, \
            Cluster(work / "dfc", args.build, targets=TARGETS) as cluster:
        bench = Bench(args, cluster)
        for name, size, count in SIZES:
            if args.only in name:
                bench.size(name, size, count)
        document["settings"] = {
            "connections": args.connections, "load_threads": args.threads, "rounds": args.rounds,
            "dfc": f"1 proxy, {TARGETS} targets with 1 mountpath each; bucket: durability "
                   f"{args.durability}, checksum xxh3",
        }
        document["rows"] = bench.rows
    bench.table()
    benchlib.finish(args, "copies", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
