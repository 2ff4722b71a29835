#!/usr/bin/env python3
"""PUT of large objects into a bucket with etag md5 against one with etag fast, one target,
interleaved.  See README.md for what each figure means."""

import sys

import benchlib
from benchlib import MIB, load, log
from peers import Cluster

SIZE = 16 * MIB
FLOOR = 0.6  # of the requests/s of etag fast


class Bench:
    def __init__(self, args, cluster):
        self.args, self.cluster, self.places = args, cluster, 0

    def put(self, etag, count):
        """New names in a fresh bucket; the disk is quiet before."""
        place = f"{etag}{self.places}"
        self.places += 1
        prefix = self.cluster.new_place(place, etag=etag)
        self.cluster.put_first(prefix)
        benchlib.flush_disk(self.args.dir)
        result = load(self.args.build, self.cluster.url, pid=self.cluster.pids(), mode="put",
                      prefix=prefix + "o", size=SIZE, requests=count, duration="60s",
                      connections=min(self.args.connections, count))
        if benchlib.failures(result) > 0 or result["requests"] == 0:
            raise RuntimeError(f"{etag}: {result['status']}, {result['errors']}")
        self.cluster.remove_place(place)
        return result

    def row(self):
        count = 4 if self.args.quick else 32
        results = benchlib.interleave({e: lambda e=e: self.put(e, count) for e in ("fast", "md5")},
                                      self.args.rounds, warm_up=not self.args.quick)

        def column(etag, field):
            return [r[field] for r in results[etag]]

        def of(etag):
            return {"mb_per_s": round(benchlib.median(column(etag, "mb_per_s")), 1),
                    "cpu_us_per_request":
                        round(benchlib.median(column(etag, "server_cpu_us_per_request")), 1)}

        return {"name": "PUT 16 MiB", "size": SIZE, "fast": of("fast"), "md5": of("md5"),
                "requests_ratio": benchlib.paired_ratio(column("md5", "requests_per_s"),
                                                        column("fast", "requests_per_s")),
                "floor": FLOOR}


def show(row):
    ratio = row["requests_ratio"]
    benchlib.table(["", "fast MB/s", "md5 MB/s", "ratio", "(rounds)", "floor", "fast us/req",
                    "md5 us/req"],
                   [[row["name"], row["fast"]["mb_per_s"], row["md5"]["mb_per_s"],
                     ratio["median"], f"{ratio['min']}-{ratio['max']}", row["floor"],
                     row["fast"]["cpu_us_per_request"], row["md5"]["cpu_us_per_request"]]])


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--connections", type=int, default=4)
    args = p.parse_args()
    if args.quick:
        args.rounds = 1
    document = {"machine": benchlib.begin(args)}
    with benchlib.WorkDir(args.dir) as work, Cluster(work / "dfc", args.build) as cluster:
        row = Bench(args, cluster).row()
    log(f"{row['name']}: etag md5 has {row['requests_ratio']['median']} of the requests/s of fast")
    document["settings"] = {"connections": args.connections, "rounds": args.rounds,
                            "dfc": "1 proxy, 1 target, 1 mountpath; durability async, xxh3"}
    document["rows"] = [row]
    show(row)
    benchlib.finish(args, "s3", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
