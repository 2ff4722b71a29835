#!/usr/bin/env python3
"""PUT with durability sync and async by 64 clients, beside a loop that writes, syncs and renames
files and does nothing else (dfc-bare), interleaved.  See README.md for what each figure means."""

import json
import shutil
import subprocess
import sys

import benchlib
from benchlib import KIB, MIB, load, log
from peers import Cluster

# name, durability, size, requests of one run, what dfc-bare does besides writing and renaming
ROWS = [
    ("sync 1 KiB", "sync", KIB, 4000, "name"),
    ("sync 1 KiB, bare without its name", "sync", KIB, 4000, "file"),
    ("sync 100 KiB", "sync", 100 * KIB, 2000, "name"),
    ("sync 1 MiB", "sync", MIB, 300, "name"),
    ("async 1 KiB", "async", KIB, 8000, "none"),
    ("async 100 KiB", "async", 100 * KIB, 3000, "none"),
    ("async 1 MiB", "async", MIB, 300, "none"),
]


class Bench:
    def __init__(self, args, work, cluster):
        self.args, self.work, self.cluster = args, work, cluster
        self.places = 0
        self.rows = []

    def put(self, durability, size, count):
        """New names in a fresh bucket; its folders are made before, untimed."""
        self.places += 1
        place = f"put{self.places}"
        prefix = self.cluster.new_place(place, durability)
        self.cluster.put_first(prefix)
        benchlib.flush_disk(self.args.dir)
        result = load(self.args.build, self.cluster.url, pid=self.cluster.pids(), mode="put",
                      prefix=prefix + "o", size=size, requests=count, duration="2m",
                      connections=min(self.args.connections, count), threads=self.args.threads)
        if benchlib.failures(result) > 0 or result["requests"] == 0:
            raise RuntimeError(f"{result['status']}, {result['errors']}")
        self.cluster.remove_place(place)
        return result

    def bare(self, size, count, what):
        self.places += 1
        place = self.work / f"bare{self.places}"
        place.mkdir()
        benchlib.flush_disk(self.args.dir)
        done = subprocess.run([
            self.args.build / "tests/bench/dfc-bare", place,
            str(size),
            str(count),
            str(self.args.connections), what
        ], stdout=subprocess.PIPE, check=True)
        shutil.rmtree(place)
        return json.loads(done.stdout)

    def row(self, name, durability, size, count, what):
        if self.args.quick:
            count = 16
        results = benchlib.interleave({"dfc": lambda: self.put(durability, size, count),
                                       "bare": lambda: self.bare(size, count, what)},
                                      self.args.rounds, warm_up=not self.args.quick)
        speeds = {side: [r["requests_per_s"] for r in results[side]] for side in results}
        self.rows.append({
            "name": name, "size": size, "bare": what,
            "requests_per_s": {side: round(benchlib.median(v), 1) for side, v in speeds.items()},
            "ratio": benchlib.paired_ratio(speeds["dfc"], speeds["bare"]),
            "p50_us": round(benchlib.median([r["latency_us"]["p50"] for r in results["dfc"]])),
            "p99_us": round(benchlib.median([r["latency_us"]["p99"] for r in results["dfc"]])),
            "runs": {side: [round(x, 1) for x in v] for side, v in speeds.items()},
        })
        log(f"{name}: {self.rows[-1]['ratio']['median']} of the bare loop")

    def table(self):
        benchlib.table(["", "bare/s", "dfc/s", "ratio", "(rounds)", "p50 us", "p99 us"],
                       [[r["name"], r["requests_per_s"]["bare"], r["requests_per_s"]["dfc"],
                         r["ratio"]["median"], f"{r['ratio']['min']}-{r['ratio']['max']}",
                         r["p50_us"], r["p99_us"]] for r in self.rows])


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--connections", type=int, default=64, help="and threads of the bare loop")
    p.add_argument("--threads", type=int, default=2, help="of the load generator")
    args = p.parse_args()
    if args.quick:
        args.rounds, args.connections = 1, 4
    document = {"machine": benchlib.begin(args)}
    with benchlib.WorkDir(args.dir) as work, Cluster(work / "dfc", args.build) as cluster:
        bench = Bench(args, work, cluster)
        for row in ROWS:
            if args.only in row[0]:
                bench.row(*row)
        document["settings"] = {"connections": args.connections, "rounds": args.rounds,
                                "dfc": "1 proxy, 1 target, 1 mountpath; checksum xxh3"}
        document["rows"] = bench.rows
    bench.table()
    benchlib.finish(args, "durable", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
