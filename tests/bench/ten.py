#!/usr/bin/env python3
"""1 to 10 real targets, each with a disk and a link of its own speed: GET of warm objects, PUT with
two copies, a list, a rebalance when the last target joins, a sort; beside what links and disks
allow.  See README.md for what each figure means."""

import os
import pathlib
import sys
import time

import benchlib
from benchlib import KIB, MIB, log

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "sort"))

from common import chart, spec  # noqa: E402
from dataset import write_dataset  # noqa: E402
from lab import Lab, LabCluster, Traffic, lacks  # noqa: E402
from lib import check, in_parallel, wait_for  # noqa: E402
from namespaces import enter  # noqa: E402

COUNTS = (1, 2, 4, 6, 8, 10)
DISK, LINK = 16_000_000, 12_500_000  # bytes/s
PAYLOAD = 1448 / 1514  # of a full frame: tc counts the headers, too
CONNECTIONS = 32  # for each target
RECORDS, RECORD_BYTES = 10, 160 * KIB
SECONDS = 3600
ROWS = ("GET", "PUT", "list", "rebalance", "sort")
COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e")

FULL = {"object": MIB, "each": 192, "passes": 1, "puts": 192, "names": 20000, "shards": 300}
QUICK = {"object": 64 * KIB, "each": 8, "passes": 2, "puts": 8, "names": 200, "shards": 20}


class Bench:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.sizes = QUICK if args.quick else FULL
        self.counts = (1, 2) if args.quick else tuple(args.targets)
        self.input = work / "in"
        self.sort_bytes = write_dataset(self.input, self.sizes["shards"], RECORDS,
                                        16 * KIB if args.quick else RECORD_BYTES)
        self.rows = []

    def run(self):
        disks = self.work / "disks"
        disks.mkdir()
        stored = self.sizes["object"] * (4 * self.sizes["each"] + 4 * self.sizes["puts"])
        with Lab(self.args.build, disks, max(self.counts),
                 3 * self.sort_bytes + stored + 256 * MIB, self.args.disk,
                 self.args.link) as self.lab:
            self.lab.limit(True)
            self.found_limits = self.lab.limits()
            for count in self.counts:
                self.with_targets(count)

    def with_targets(self, count):
        log(f"{count} targets, load {os.getloadavg()[0]:.1f}")
        self.lab.limit(False)
        with LabCluster(self.lab, self.args.build, count, late=count > 1) as self.c:
            self.count = count
            self.c.administer("PUT", "/v1/cluster", {
                "action": "setconfig", "name": "rebalance_delay", "value": "0"}).expect(200)
            rows = {"rebalance": self.rebalance} if count > 1 else {}
            rows.update({"GET": self.get, "PUT": self.put, "list": self.list, "sort": self.sort})
            for name, measure in rows.items():
                if self.args.only in name or name == "rebalance":  # the last target joins in any case
                    self.rows.append({"row": name, "targets": count, **measure()})
                    self.lab.limit(False)

    # What a row needs.

    def limited(self):
        """From now on; nothing is left to be written."""
        self.lab.flush()
        self.lab.limit(True)
        return Traffic(self.lab.names[:self.count])

    def load(self, **options):
        done = benchlib.load(self.args.build, self.c.endpoint, redirect="follow",
                             connections=CONNECTIONS * self.count, duration="1h", timeout="10m",
                             **options)
        check(benchlib.failures(done) == 0, f"requests failed: {done['status']}, {done['errors']}")
        return done

    def result(self, seconds, moved, disk_s, link_bytes):
        """`moved`: bytes of objects; the bounds are the busiest target's."""
        link_s = link_bytes / (self.args.link * PAYLOAD)
        bound_s = max(disk_s, link_s)
        return {"seconds": round(seconds, 2), "mb_per_s": round(moved / seconds / 1e6, 1),
                "bound_s": round(bound_s, 2), "bound_mb_per_s": round(moved / bound_s / 1e6, 1),
                "by": "disk" if disk_s > link_s else "link",
                "of_bound": round(bound_s / seconds, 3), "load": round(os.getloadavg()[0], 1)}

    def stored(self, bucket_had=None):
        now = {t: self.c.sizes(t) for t in self.c.targets()}
        return {t: n - (bucket_had or {}).get(t, 0) for t, n in now.items()}

    # The rows.

    def rebalance(self):
        """From the job's first sign to the last object that it moves."""
        size, count = self.sizes["object"], self.sizes["each"] * self.count
        self.c.create("moved", durability="async")
        self.load(mode="put", prefix="/v1/objects/moved/o", size=size, requests=count)
        self.limited()
        self.c.join(self.c.late)
        begin = wait_for(self.first_sign, "the rebalance begins", SECONDS)
        last, done = begin, 0
        while not (state := self.moves())["ended"]:
            if state["done"] > done:
                last, done = time.monotonic(), state["done"]
            time.sleep(0.05)  # the resolution of the figure
        moved = self.c.sizes(self.c.late[0])
        self.lab.limit(False)
        self.c.destroy("moved")
        return self.result(last - begin, moved, moved / self.args.disk, moved)

    def moves(self):
        smap = self.c.get_json("/v1/cluster?what=smap")
        jobs = self.c.get_json("/v1/jobs?kind=rebalance")["jobs"]
        return {"began": bool(jobs), "ended": bool(jobs) and not smap.get("earlier"),
                "done": sum(job["progress"]["bytes"]["done"] for job in jobs)}

    def first_sign(self):
        return time.monotonic() if self.moves()["began"] else None

    def balanced(self, bucket):
        """As many names on each target, in turn: so are a million, and a few are not."""
        of = {t: [] for t in self.c.targets()}
        for i in range(1000 * self.sizes["each"]):
            name = f"o{i:06d}"
            names = of[self.c.owner(bucket, name)]
            if len(names) < self.sizes["each"]:
                names.append(name)
            if all(len(n) == self.sizes["each"] for n in of.values()):
                break
        return [name for turn in zip(*of.values()) for name in turn]

    def get(self):
        self.c.create("get", durability="async")
        names = self.balanced("get")
        body = os.urandom(self.sizes["object"])
        in_parallel(lambda name: self.c.put("get", name, body), names)
        paths = self.work / "paths"
        paths.write_text("".join(f"/v1/objects/get/{name}\n" for name in names))
        self.load(mode="get", paths=paths, requests=len(names))  # they are warm after it
        self.limited()
        done = self.load(mode="get", paths=paths, requests=self.sizes["passes"] * len(names))
        self.lab.limit(False)
        self.c.destroy("get")
        moved = done["bytes_in"]
        return self.result(done["seconds"], moved, 0, moved / self.count)

    def put(self):
        copies = min(2, self.count)
        self.c.create("put", copies=copies)
        had = self.stored()
        self.limited()
        done = self.load(mode="put", prefix="/v1/objects/put/o", size=self.sizes["object"],
                         requests=self.sizes["puts"] * self.count)
        most = max(self.stored(had).values())  # each copy comes over its target's link
        self.lab.limit(False)
        self.c.destroy("put")
        return {"copies": copies,
                **self.result(done["seconds"], done["bytes_out"], most / self.args.disk, most)}

    def list(self):
        """Bytes are those of its pages at the client; the link's those of the targets' replies."""
        self.c.create("names", durability="async")
        self.load(mode="put", prefix="/v1/objects/names/" + 40 * "n", size=1,
                  requests=self.sizes["names"])
        traffic = self.limited()
        begin, moved, found = time.monotonic(), 0, 0
        for page in self.c.pages("names", limit=10000):
            found += len(page["entries"])
            moved += sum(len(e["name"]) for e in page["entries"])
        seconds, most = time.monotonic() - begin, traffic.most()
        check(found == self.sizes["names"], f"{found} names are listed")
        self.lab.limit(False)
        self.c.destroy("names")
        return {"names_per_s": round(found / seconds),
                **self.result(seconds, moved, 0, most * PAYLOAD)}

    def sort(self):
        self.c.create("in", durability="async")
        self.c.create("out", durability="async")
        in_parallel(lambda p: self.c.put("in", p.name, p.read_bytes()), sorted(self.input.iterdir()))
        had = self.stored()
        self.lab.forget()
        self.limited()
        record = 16 * KIB if self.args.quick else RECORD_BYTES
        request = spec("ten", self.sizes["shards"], output_shard_size=str(RECORDS * (512 + record)))
        begin = time.monotonic()
        job = self.c.wait_job(self.c.sort(request), seconds=SECONDS)
        seconds = time.monotonic() - begin
        check(job["state"] == "finished", f"the sort: {job['errors']}")
        self.lab.limit(False)
        both = {t: self.c.sizes(t) for t in self.c.targets()}
        most = max(both.values())
        made = max(both[t] - had[t] for t in both)
        return self.result(seconds, self.sort_bytes, most / self.args.disk,
                           made * (self.count - 1) / self.count)


def draw(args, rows):
    tables, plots = {}, []
    for name, color in zip(ROWS, COLORS):
        of = [(r["targets"], r["mb_per_s"], r["bound_mb_per_s"]) for r in rows if r["row"] == name]
        if not of or name == "list":  # its bytes are too few to be seen
            continue
        tables[name] = of
        plots += [f"${name} using 1:2 with linespoints lw 2 pt 7 lc rgb '{color}' title '{name}'",
                  f"${name} using 1:3 with lines dt 2 lc rgb '{color}' notitle"]
    if not plots:
        return
    chart(args, f"""
set title 'Disks {args.disk / 1e6:g} MB/s, links {args.link / 1e6:g} MB/s; dashed: what these allow'
set xlabel 'targets'
set ylabel 'MB/s of objects'
set xrange [0:*]
set yrange [0:*]
plot {", ".join(plots)}
""", tables)


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--targets", type=int, nargs="+", default=COUNTS, metavar="N")
    p.add_argument("--disk", type=int, default=DISK, help="bytes/s of each target's disk")
    p.add_argument("--link", type=int, default=LINK, help="bytes/s of its link, each way")
    args = p.parse_args()
    missing = lacks(args.build)
    if missing:
        log(missing)
        return 77
    enter("--net")
    document = {"machine": benchlib.begin(args)}
    with benchlib.WorkDir(args.dir) as work:
        bench = Bench(args, work)
        bench.run()
        document["limits"] = bench.found_limits
    document["rows"] = bench.rows
    head = ["row", "targets", "seconds", "bound_s", "mb_per_s", "bound_mb_per_s", "by", "of_bound",
            "load"]
    benchlib.table(head, [[r[h] for h in head] for name in ROWS for r in bench.rows
                          if r["row"] == name])
    benchlib.finish(args, "ten", document)
    draw(args, bench.rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
