#!/usr/bin/env python3
"""S3 requests against native ones: at the target that leads the objects, and through a proxy that
forwards them; PUT with etag md5 against fast; uploads in parts against one PUT; the memory of 256
streams.  One target, interleaved.
See README.md for what each figure means."""

import socket
import sys
import urllib.parse

import benchlib
import s3_parts
from benchlib import KIB, MIB, load, log
from peers import Cluster

# name, mode, size, requests a round; the floors: of native's requests/s, local and forwarded
ROWS = [
    ("GET 1 KiB", "get", KIB, 20000, None, 0.4),
    ("GET 64 KiB", "get", 64 * KIB, 8000, None, None),
    ("GET 256 KiB", "get", 256 * KIB, 3000, None, None),
    ("GET 1 MiB", "get", MIB, 1000, None, 0.55),
    ("GET 16 MiB", "get", 16 * MIB, 100, None, 0.55),
    ("PUT 1 KiB", "put", KIB, 5000, None, None),
    ("PUT 16 MiB", "put", 16 * MIB, 32, None, None),
]
CPU_LIMIT = 2.5  # of native's CPU a request, both nodes together
OBJECTS = 8
MD5 = ("PUT 16 MiB, md5 / fast", 16 * MIB, 32, 0.6)
PARTS = ("upload of 16 parts of 16 MiB", 16)
STREAMS = 256
UNSIGNED = "x-amz-content-sha256: UNSIGNED-PAYLOAD"
SIDES = ("native", "local", "forwarded")


class Bench:
    def __init__(self, args, cluster):
        self.args, self.cluster, self.places = args, cluster, 0

    def place(self, **props):
        """→ a fresh bucket; the disk is quiet before."""
        self.places += 1
        name = f"place{self.places}"
        self.cluster.put_first(self.cluster.new_place(name, **props))
        benchlib.flush_disk(self.args.dir)
        return name

    def way(self, side, bucket):
        """→ URL of the node that is asked, and the prefix of the bucket's objects there."""
        if side == "native":
            return self.cluster.url, f"/v1/objects/{bucket}/"
        node = self.cluster.url if side == "local" else self.cluster.proxy["url"]
        return node, f"/s3/{bucket}/"

    def run(self, side, bucket, **options):
        url, prefix = self.way(side, bucket)
        paths = {"path": [prefix + o for o in options.pop("objects")]} \
            if options["mode"] == "get" else {"prefix": f"{prefix}{side}"}
        result = load(self.args.build, url, pid=self.cluster.all_pids(), duration="60s",
                      header=UNSIGNED, **paths, **options)
        if benchlib.failures(result) > 0 or result["requests"] == 0:
            raise RuntimeError(f"{side}: {result['status']}, {result['errors']}")
        return result

    def count(self, count):
        return max(count // 20, 4) if self.args.quick else count

    def put(self, side, size, count, **props):
        bucket = self.place(**props)
        count = self.count(count)
        result = self.run(side, bucket, mode="put", size=size, requests=count,
                          connections=min(self.args.connections, count))
        self.cluster.remove_place(bucket)
        return result

    def gets(self, size, count):
        """→ a function for each side, over the same objects."""
        bucket = self.place()
        load(self.args.build, self.cluster.url, mode="put", prefix=f"/v1/objects/{bucket}/o",
             size=size, requests=OBJECTS, duration="60s", connections=1)
        options = {"mode": "get", "objects": [f"o{i:08}" for i in range(OBJECTS)],
                   "requests": self.count(count), "connections": self.args.connections}
        return {side: lambda side=side: self.run(side, bucket, **dict(options)) for side in SIDES}

    def interleave(self, sides):
        return benchlib.interleave(sides, self.args.rounds, warm_up=not self.args.quick)

    def row(self, name, mode, size, count, *floors):
        sides = self.gets(size, count) if mode == "get" else {
            side: lambda side=side: self.put(side, size, count) for side in SIDES}
        results = self.interleave(sides)
        row = {"name": name, "size": size, "native": summary(results["native"])}
        for side, floor in zip(SIDES[1:], floors):
            row[side] = {**summary(results[side]), **compare(results[side], results["native"]),
                         "floor": floor}
        log(f"{name}: forwarded {row['forwarded']['requests_ratio']['median']} of the requests/s, "
            f"{row['forwarded']['cpu_ratio']['median']} of the CPU")
        return row

    def md5(self, name, size, count, floor):
        results = self.interleave({e: lambda e=e: self.put("native", size, count, etag=e)
                                   for e in ("fast", "md5")})
        row = {"name": name, "size": size, "fast": summary(results["fast"]),
               "md5": {**summary(results["md5"]), **compare(results["md5"], results["fast"]),
                       "floor": floor}}
        log(f"{name}: {row['md5']['requests_ratio']['median']} of the requests/s")
        return row

    def parts(self, name, parts):
        """The base is one PUT of the same bytes; `native`: native calls for the parts."""
        ways = {"one": (s3_parts.one_put, self.cluster.url),
                "native": (s3_parts.native, self.cluster.url),
                "local": (s3_parts.by_s3, self.cluster.url),
                "forwarded": (s3_parts.by_s3, self.cluster.proxy["url"])}
        parts = 2 if self.args.quick else parts

        def run(send, url):
            bucket = self.place()
            result = s3_parts.measure(self.cluster, send, url, bucket, parts,
                                      self.args.connections)
            self.cluster.remove_place(bucket)
            return result

        results = self.interleave({w: lambda how=how: run(*how) for w, how in ways.items()})
        row = {"name": name, "size": parts * len(s3_parts.PART), "one": summary(results["one"])}
        for way in ("native", *SIDES[1:]):
            row[way] = {**summary(results[way]), **compare(results[way], results["one"]),
                        "floor": None}
        log(f"{name}: forwarded {row['forwarded']['mb_per_s']} MB/s, native "
            f"{row['native']['mb_per_s']}, one PUT {row['one']['mb_per_s']}")
        return row

    def memory(self):
        """What the nodes grow by while clients of forwarded GETs read nothing but the head."""
        bucket = self.place()
        load(self.args.build, self.cluster.url, mode="put", prefix=f"/v1/objects/{bucket}/o",
             size=16 * MIB, requests=1, duration="60s", connections=1)
        nodes = {"proxy": self.cluster.proxy["pid"], "target": self.cluster.pids()[0]}
        before = {name: benchlib.memory_of(pid)[0] for name, pid in nodes.items()}
        clients = [begin_get(*self.way("forwarded", bucket)) for _ in range(STREAMS)]
        for client in clients:
            head(client)
        grown = {name: benchlib.memory_of(pid)[0] - before[name] for name, pid in nodes.items()}
        for client in clients:
            client.close()
        row = {"name": f"memory of {STREAMS} forwarded streams", "bytes": grown}
        log(f"{row['name']}: " + ", ".join(f"{n} {b >> 20} MiB" for n, b in grown.items()))
        return row


def begin_get(url, prefix):
    at = urllib.parse.urlsplit(url)
    client = socket.create_connection((at.hostname, at.port), timeout=60)
    client.sendall(f"GET {prefix}o00000000 HTTP/1.1\r\nHost: {at.netloc}\r\n\r\n".encode())
    return client


def head(client):
    first = client.recv(64 * KIB)
    if not first.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"a stream began with {first[:80]}")


def column(results, field):
    return [r[field] for r in results]


def summary(results):
    return {"mb_per_s": round(benchlib.median(column(results, "mb_per_s")), 1),
            "requests_per_s": round(benchlib.median(column(results, "requests_per_s")), 2),
            "cpu_us_per_request":
                round(benchlib.median(column(results, "server_cpu_us_per_request")), 1)}


def compare(of, to):
    return {"requests_ratio": benchlib.paired_ratio(column(of, "requests_per_s"),
                                                    column(to, "requests_per_s")),
            "cpu_ratio": benchlib.paired_ratio(column(of, "server_cpu_us_per_request"),
                                               column(to, "server_cpu_us_per_request"))}


def show(rows):
    lines = []
    for row in rows:
        base = next((row[b] for b in ("one", "fast", "native") if b in row), None)
        for side in ("native", "local", "forwarded", "md5"):
            if side not in row or row[side] is base:
                continue
            ratio, cpu = row[side]["requests_ratio"], row[side]["cpu_ratio"]
            lines.append([row["name"], side, base["requests_per_s"],
                          row[side]["requests_per_s"], ratio["median"],
                          f"{ratio['min']}-{ratio['max']}", row[side]["floor"],
                          row[side]["cpu_us_per_request"], cpu["median"],
                          CPU_LIMIT if side == "forwarded" else None])
    benchlib.table(["", "way", "base req/s", "req/s", "ratio", "(rounds)", "floor", "us/req",
                    "CPU ratio", "limit"], lines)


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--connections", type=int, default=4)
    args = p.parse_args()
    if args.quick:
        args.rounds = 1
    document = {"machine": benchlib.begin(args)}
    with benchlib.WorkDir(args.dir) as work, Cluster(work / "dfc", args.build) as cluster:
        bench = Bench(args, cluster)
        rows = [bench.row(*spec) for spec in ROWS if args.only in spec[0]]
        if args.only in MD5[0]:
            rows.append(bench.md5(*MD5))
        if args.only in PARTS[0]:
            rows.append(bench.parts(*PARTS))
        if args.only in "memory":
            rows.append(bench.memory())
    document["settings"] = {"connections": args.connections, "rounds": args.rounds,
                            "dfc": "1 proxy, 1 target, 1 mountpath; durability async, xxh3"}
    document["rows"] = rows
    show(rows)
    benchlib.finish(args, "s3", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
