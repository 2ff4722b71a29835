#!/usr/bin/env python3
"""GET and PUT of objects of several sizes, one target of ours against nginx on the same file
system, interleaved.  See README.md for what each figure means."""

import sys

import benchlib
from benchlib import KIB, MIB, load, log
from peers import Cluster, Nginx, fetch

# name, size, objects (of a GET), requests of one PUT run, floor of requests/s against nginx
GETS = [
    ("GET 1 KiB", KIB, 1000, 0.7),
    ("GET 100 KiB", 100 * KIB, 200, 0.85),
    ("GET 1 MiB", MIB, 64, 0.85),
    ("GET 16 MiB", 16 * MIB, 8, 0.85),
]
PUTS = [
    ("PUT 1 KiB", KIB, 8000, None),
    ("PUT 1 MiB", MIB, 500, 0.75),
    ("PUT 16 MiB", 16 * MIB, 48, 0.75),
]

# What one PUT run has written is removed after it; but less than this after all the rounds: for
# some seconds after thousands of files were deleted, ext4 makes new ones ten times more slowly
# (recently_deleted() in fs/ext4/ialloc.c), and the next run would pay for that.
KEEP_BYTES = 64 * MIB


class Bench:
    def __init__(self, args, nginx, cluster):
        self.args = args
        self.nginx = nginx
        self.cluster = cluster
        self.places = 0
        self.rows = []

    def run(self, server, url=None, pids=None, **options):
        result = load(self.args.build, url or server.url, pid=pids or server.pids(),
                      threads=self.args.threads, **options)
        if benchlib.failures(result) > 0 or result["requests"] == 0:
            raise RuntimeError(f"{server.name}: {result['status']}, {result['errors']}")
        return result

    def fill(self, server, size, count):
        """Objects of the same bytes on both sides → their paths."""
        prefix = server.new_place(f"get{size}")
        server.put_first(prefix)
        self.run(server, mode="put", prefix=prefix + "o", size=size, requests=count,
                 names=count, duration="10m", connections=8)
        return [f"{prefix}o{i:08d}" for i in range(count)]

    def get(self, name, size, count, floor):
        if self.args.quick:
            count = min(count, 4)
        paths = {s: self.fill(s, size, count) for s in (self.nginx, self.cluster)}
        same = [fetch(s.url + paths[s][0]) for s in (self.nginx, self.cluster)]
        if same[0] != same[1] or same[0][0] != 200 or len(same[0][1]) != size:
            raise RuntimeError(f"{name}: the two sides do not serve the same bytes")
        files = {}
        for s, list_of in paths.items():
            files[s] = self.nginx.dir / f"paths-{s.name}-{size}"
            files[s].write_text("".join(p + "\n" for p in list_of))

        def of(server, **options):
            return lambda: self.run(server, mode="get", paths=files[server],
                                    duration=f"{self.args.milliseconds}ms",
                                    connections=self.args.connections, **options)

        sides = {"nginx": of(self.nginx), "dfc": of(self.cluster)}
        if size == KIB:
            proxy = self.cluster.proxy["url"]
            sides["hop"] = of(self.cluster, url=proxy, pids=self.cluster.all_pids(),
                              redirect="follow")
        results = benchlib.interleave(sides, self.args.rounds, warm_up=not self.args.quick)
        self.add(name, size, results, "dfc", floor)
        if "hop" in sides:
            self.add(name + " by proxy's 307", size, results, "hop", None)
        for server in (self.nginx, self.cluster):
            server.remove_place(f"get{size}")

    def put_once(self, server, size, count, kept):
        """New names in a fresh place.  The disk is settled before, untimed; so is the first PUT,
        which makes the bucket's folders."""
        place = f"put{self.places}"
        self.places += 1
        prefix = server.new_place(place)
        kept.append((server, place))
        server.put_first(prefix)
        benchlib.flush_disk(self.args.dir)
        result = self.run(server, mode="put", prefix=prefix + "o", size=size, requests=count,
                          duration=f"{60 if not self.args.quick else 5}s",
                          connections=min(self.args.connections, count))
        if size * count > KEEP_BYTES:
            self.remove(kept)
        return result

    @staticmethod
    def remove(kept):
        while kept:
            server, place = kept.pop()
            server.remove_place(place)

    def put(self, name, size, count, floor):
        if self.args.quick:
            count = min(count, 8)
        kept = []
        sides = {"nginx": lambda: self.put_once(self.nginx, size, count, kept),
                 "dfc": lambda: self.put_once(self.cluster, size, count, kept)}
        results = benchlib.interleave(sides, self.args.rounds, warm_up=not self.args.quick)
        self.remove(kept)
        self.add(name, size, results, "dfc", floor)

    def add(self, name, size, results, ours, floor):
        def column(side, field):
            return [r[field] for r in results[side]]

        def of(side):
            return {
                "requests_per_s": round(benchlib.median(column(side, "requests_per_s")), 1),
                "mb_per_s": round(benchlib.median(column(side, "mb_per_s")), 1),
                "cpu_us_per_request":
                    round(benchlib.median(column(side, "server_cpu_us_per_request")), 1),
                "p50_us": round(benchlib.median([r["latency_us"]["p50"] for r in results[side]])),
                "p99_us": round(benchlib.median([r["latency_us"]["p99"] for r in results[side]])),
                "runs": [round(v, 1) for v in column(side, "requests_per_s")],
            }

        self.rows.append({
            "name": name,
            "size": size,
            "nginx": of("nginx"),
            "dfc": of(ours),
            "requests_ratio": benchlib.paired_ratio(column(ours, "requests_per_s"),
                                                    column("nginx", "requests_per_s")),
            "cpu_ratio": benchlib.paired_ratio(column(ours, "server_cpu_us_per_request"),
                                               column("nginx", "server_cpu_us_per_request")),
            "floor": floor,
        })
        log(f"{name}: {self.rows[-1]['requests_ratio']['median']} of nginx's requests/s")

    def table(self):
        def line(r):
            n, d = r["nginx"], r["dfc"]
            q, c = r["requests_ratio"], r["cpu_ratio"]
            return [r["name"], n["requests_per_s"], d["requests_per_s"], d["mb_per_s"],
                    q["median"], f"{q['min']}-{q['max']}", r["floor"],
                    n["cpu_us_per_request"], d["cpu_us_per_request"], c["median"],
                    n["p99_us"], d["p99_us"]]

        benchlib.table(["", "nginx req/s", "dfc req/s", "dfc MB/s", "ratio", "(rounds)", "floor",
                        "nginx us/req", "dfc us/req", "ratio", "nginx p99 us", "dfc p99 us"],
                       [line(r) for r in self.rows])


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--milliseconds", type=int, default=1000, help="of each GET run")
    p.add_argument("--connections", type=int, default=32)
    p.add_argument("--threads", type=int, default=2, help="of the load generator")
    p.add_argument("--workers", type=int, default=2, help="of nginx")
    p.add_argument("--open-file-cache", action="store_true",
                   help="let nginx keep files open (ours does not)")
    args = p.parse_args()
    if args.quick:
        args.rounds, args.milliseconds = 1, 100
    if Nginx.program() is None:
        log("nginx is not installed (Debian: nginx-light)")
        return 77
    document = {"machine": benchlib.begin(args)}
    with benchlib.WorkDir(args.dir) as work, \
            Nginx(work / "nginx", args.workers, args.open_file_cache) as nginx, \
            Cluster(work / "dfc", args.build) as cluster:
        bench = Bench(args, nginx, cluster)
        for row in GETS:
            if args.only in row[0]:
                bench.get(*row)
        for row in PUTS:
            if args.only in row[0]:
                bench.put(*row)
        document["settings"] = {
            "connections": args.connections, "load_threads": args.threads,
            "rounds": args.rounds, "nginx": benchlib.first_line([Nginx.program(), "-v"]),
            "nginx_workers": args.workers, "nginx_open_file_cache": args.open_file_cache,
            "dfc": "1 proxy, 1 target, 1 mountpath; bucket: durability async, checksum xxh3",
        }
        document["rows"] = bench.rows
    bench.table()
    benchlib.finish(args, "objects", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
