#!/usr/bin/env python3
"""What the proof of membership costs: the same calls in a cluster whose nodes sign what they send
one another, and in one without a key, interleaved.  See README.md for what each figure means."""

import sys

import benchlib
from benchlib import KIB, MIB, log
from peers import Cluster

TARGETS = 2
STREAMED = "Dfc-Redirect: never"  # the proxy asks the target itself: one call between nodes
SIZES = [("1 KiB", KIB, 8000), ("1 MiB", MIB, 400)]
OBJECTS = 64
# name, method, copies, options of the load: PUT of two copies is two calls between targets
CALLS = [
    ("streamed GET", "get", 1, {"header": STREAMED}),
    ("streamed PUT", "put", 1, {"header": STREAMED}),
    ("PUT of 2 copies", "put", 2, {"redirect": "follow"}),
    ("GET by redirect", "get", 1, {"redirect": "follow"}),
]


class Bench:
    def __init__(self, args, clusters):
        self.args = args
        self.clusters = clusters
        self.places = 0
        self.rows = []

    def new_bucket(self, cluster, copies):
        name = f"b{self.places}"
        self.places += 1
        cluster.call("POST", f"/v1/buckets/{name}", {
            "action": "create", "value": {"copies": copies, "durability": "async"}})
        prefix = f"/v1/objects/{name}/"
        cluster.put_first(prefix)
        return prefix, name

    def run(self, cluster, **options):
        result = benchlib.load(self.args.build, cluster.proxy["url"], pid=cluster.all_pids(),
                               duration="10m", **options)
        if benchlib.failures(result) > 0 or result["requests"] == 0:
            raise RuntimeError(f"{options}: {result['status']}, {result['errors']}")
        return result

    def put(self, cluster, copies, size, count, options):
        prefix, name = self.new_bucket(cluster, copies)
        result = self.run(cluster, mode="put", prefix=prefix + "o", size=size, requests=count,
                          connections=self.args.connections, **options)
        cluster.remove_place(name)
        return result

    def fill(self, cluster, size):
        """→ a file with the paths of some objects, and their bucket."""
        prefix, name = self.new_bucket(cluster, 1)
        self.run(cluster, mode="put", prefix=prefix + "o", size=size, requests=OBJECTS,
                 names=OBJECTS, connections=4, redirect="follow")
        paths = cluster.dir / f"paths-{name}"
        paths.write_text("".join(f"{prefix}o{i:08d}\n" for i in range(OBJECTS)))
        return paths, name

    def row(self, call, method, copies, options, size_name, size, count):
        if self.args.quick:
            count = min(count, 16)
        warm_up = not self.args.quick
        if method == "put":
            sides = {side: lambda c=c: self.put(c, copies, size, count, options)
                     for side, c in self.clusters.items()}
            self.add(f"{call} {size_name}", benchlib.interleave(sides, self.args.rounds, warm_up))
            return
        filled = {side: self.fill(c, size) for side, c in self.clusters.items()}
        sides = {side: lambda c=c, side=side: self.run(
            c, mode="get", paths=filled[side][0], requests=count,
            connections=self.args.connections, **options)
            for side, c in self.clusters.items()}
        self.add(f"{call} {size_name}", benchlib.interleave(sides, self.args.rounds, warm_up))
        for side, c in self.clusters.items():
            c.remove_place(filled[side][1])

    def add(self, name, results):
        def column(side, field):
            return [r[field] for r in results[side]]

        cpu, rate = "server_cpu_us_per_request", "requests_per_s"
        row = {"name": name, "cpu_ratio": benchlib.paired_ratio(column("signed", cpu),
                                                                column("plain", cpu)),
               "rate_ratio": benchlib.paired_ratio(column("signed", rate), column("plain", rate))}
        for side in self.clusters:
            row[side] = {cpu: round(benchlib.median(column(side, cpu)), 1),
                         rate: round(benchlib.median(column(side, rate)), 1)}
        self.rows.append(row)
        log(f"{name}: {row['cpu_ratio']['median']} of the CPU")

    def table(self):
        cpu, rate = "server_cpu_us_per_request", "requests_per_s"
        benchlib.table(["", "plain us/req", "signed us/req", "more us", "ratio (rounds)",
                        "plain req/s", "signed req/s"],
                       [[r["name"], r["plain"][cpu], r["signed"][cpu],
                         round(r["signed"][cpu] - r["plain"][cpu], 1),
                         "{median} ({min}-{max})".format(**r["cpu_ratio"]),
                         r["plain"][rate], r["signed"][rate]] for r in self.rows])


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--connections", type=int, default=16)
    args = p.parse_args()
    if args.quick:
        args.rounds = 1
    document = {"machine": benchlib.begin(args)}
    with benchlib.WorkDir(args.dir) as work, \
            Cluster(work / "plain", args.build, targets=TARGETS, keyed=False) as plain, \
            Cluster(work / "signed", args.build, targets=TARGETS) as signed:
        bench = Bench(args, {"plain": plain, "signed": signed})
        for call in CALLS:
            for size in SIZES:
                if args.only in f"{call[0]} {size[0]}":
                    bench.row(*call, *size)
        document["settings"] = {
            "connections": args.connections, "rounds": args.rounds,
            "dfc": f"1 proxy, {TARGETS} targets with 1 mountpath each; durability async"}
        document["rows"] = bench.rows
    bench.table()
    benchlib.finish(args, "signing", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
