#!/usr/bin/env python3
"""The paper's experiment, scaled down: a dataset spread over 1, 2, 4, 8, 10 targets, each with a
disk and a link of a
few MB/s, sorted by the cluster and by single clients.  See README.md for what each figure means."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

from common import chart, spec
import benchlib
from benchlib import KIB, MIB, log
from dataset import member_names, write_dataset
from lab import Lab, LabCluster, lacks
from lib import Failed, check, in_parallel
from namespaces import enter

COUNTS = (1, 2, 4, 8, 10)
DISK, LINK = 4_000_000, 8_000_000  # bytes/s; the paper's: 1.2 GB/s of 12 disks, 1.25-3.1 GB/s
RECORDS, RECORD_BYTES = 10, 32 * KIB  # ten records a shard, in and out, as the paper's
SHARDS = 1440  # the paper's: 100,000
MEMORY_SHARE = 4  # the paper's single client: 256 GB of memory for 1 TB


def request(shards):
    return spec("experiment", shards, output_shard_size=str(RECORDS * (512 + RECORD_BYTES)))


def counts_of(args):
    return (1, 2) if args.quick else tuple(args.targets)


def checksums(paths):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


def cache_drops():
    """How often anybody has written to /proc/sys/vm/drop_caches, which is the whole machine's."""
    fields = dict(line.split() for line in pathlib.Path("/proc/vmstat").read_text("ascii").splitlines())
    return int(fields["drop_pagecache"])


class Bench:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.counts = counts_of(args)
        self.shards = 20 if args.quick else args.shards
        self.input = work / "in"
        self.bytes = write_dataset(self.input, self.shards, RECORDS, RECORD_BYTES)
        self.memory = pathlib.Path("/run/shards")  # the namespaces have mounted a tmpfs there
        self.disks = work / "disks"
        self.disks.mkdir()
        self.rows = []

    def run(self):
        with Lab(self.args.build, self.disks, max(self.counts), 4 * self.bytes + 64 * MIB, DISK,
                 LINK) as self.lab:
            self.lab.limit(True)
            self.found_limits = self.lab.limits()
            for count in self.counts:
                self.sort_with(count)

    # The sides.

    def begin(self):
        self.lab.forget()
        self.before, self.drops = self.lab.read_and_written(), cache_drops()
        return time.monotonic()

    def result(self, begin):
        seconds = time.monotonic() - begin
        read, written = (now - before
                         for now, before in zip(self.lab.read_and_written(), self.before))
        drops = cache_drops() - self.drops
        if drops > 0:
            log(f"another program has dropped the page cache {drops} times: shards were read again")
        return {"seconds": round(seconds, 2), "disk_bytes": read + written, "read_bytes": read,
                "written_bytes": written, "cache_drops": drops}

    def cluster_sort(self, c):
        begin = self.begin()
        job = c.wait_job(c.sort(request(self.shards)), seconds=3600)
        check(job["state"] == "finished", f"the sort: {job['errors']}")
        return self.result(begin)

    def paper_client(self, c):
        """On the host of t1, whose disk it shares with nobody: the others read theirs, and it
        writes to its own."""
        out = c.disk("t1").path / "client"
        out.mkdir()
        begin = self.begin()
        self.at_client([
            sys.executable, "single_client.py", c.endpoint + "/v1/objects/in",
            str(out),
            str(RECORDS),
            str(self.bytes // MEMORY_SHARE)
        ])
        result = self.result(begin)
        self.check_names(out)
        shutil.rmtree(out)
        return result

    def local_client(self, c):
        """`dfcctl sort local`, of shards that it has fetched into memory."""
        out = c.disk("t1").path / "client"
        self.memory.mkdir()
        path = self.work / "spec.json"
        path.write_text(json.dumps(request(self.shards)))
        begin = self.begin()
        self.at_client([
            sys.executable, "single_client.py", "--fetch", c.endpoint + "/v1/objects/in",
            str(self.memory)
        ])
        self.at_client([
            str(self.args.build / "dfcctl"), "-q", "sort", "local",
            str(path), "--in",
            str(self.memory), "--out",
            str(out)
        ])
        result = self.result(begin)
        self.lab.limit(False)  # what another program has dropped from memory is read again
        self.made = checksums(out.iterdir())
        self.lab.limit(True)
        shutil.rmtree(out)
        shutil.rmtree(self.memory)
        return result

    def at_client(self, command):
        names = "\n".join(p.name for p in self.input.iterdir())
        done = subprocess.run(self.lab.hosts.inside("h1", *command), input=names, text=True,
                              check=False, stdout=subprocess.DEVNULL,
                              cwd=os.path.dirname(os.path.realpath(__file__)))
        if done.returncode != 0:
            raise Failed(f"{command[1]}: status {done.returncode}")

    # That they come to the same.

    def check_names(self, directory):
        found = [n for p in sorted(directory.glob("*.tar")) for n in member_names(p)]
        check(found == sorted(found) and len(found) == self.shards * RECORDS,
              "the paper's client has not sorted")

    def check_output(self, c):
        names = c.names("out")
        have = dict(zip(names, in_parallel(
            lambda n: hashlib.sha256(c.get("out", n).expect(200).body).hexdigest(), names)))
        check(have == self.made, "the cluster and the local sort have not made the same bytes")

    # One row of the table.

    def upload(self, c):
        c.create("in", durability="async")
        c.create("out", durability="async")
        in_parallel(lambda p: c.put("in", p.name, p.read_bytes()), sorted(self.input.iterdir()))

    def sort_with(self, count):
        log(f"{count} targets")
        self.lab.limit(False)
        with LabCluster(self.lab, self.args.build, count) as c:
            self.upload(c)
            held = {t: c.sizes(t) for t in c.targets()}
            self.lab.forget()
            self.lab.limit(True)
            row = {"targets": count, "bytes": self.bytes, "cluster": self.cluster_sort(c)}
            both = {t: c.sizes(t) for t in c.targets()}
            row["cluster"]["bound_s"] = round(max(both.values()) / DISK, 2)
            row["cluster"]["apart_s"] = round(
                (max(held.values()) + max(both[t] - held[t] for t in both)) / DISK, 2)
            if count == max(self.counts):
                row.update(self.clients(c, held["t1"]))
            self.lab.limit(False)
            if count == max(self.counts):
                self.check_output(c)
            self.lab.limit(True)
        self.rows.append(row)

    def clients(self, c, own):
        """Of the cluster of the most targets alone, as in the paper."""
        fetch_s = max((self.bytes - own) / LINK, own / DISK)
        spilled = self.bytes - self.bytes // MEMORY_SHARE
        sides = {
            "paper": (self.paper_client,
                      max(fetch_s, (own + spilled) / DISK) + (spilled + self.bytes) / DISK),
            "local": (self.local_client, fetch_s + self.bytes / DISK)
        }
        found = {}
        for name, (run, bound_s) in sides.items():
            log(f"the {name} client")
            found[name] = {**run(c), "bound_s": round(bound_s, 2)}
        return found


def finish_rows(rows):
    last = rows[-1]
    for row in rows:
        for bound in ("bound", "apart"):
            row[f"of_{bound}"] = round(row["cluster"][f"{bound}_s"] / row["cluster"]["seconds"], 3)
        for side in ("paper", "local"):
            row[f"times_{side}"] = round(last[side]["seconds"] / row["cluster"]["seconds"], 2)
            row[f"bound_times_{side}"] = round(last[side]["bound_s"] / row["cluster"]["bound_s"], 2)


def draw(args, rows):
    chart(
        args, f"""
set title 'A sort of {rows[0]['bytes'] / 1e6:.0f} MB: disks {DISK / 1e6:g} MB/s, links {LINK / 1e6:g} MB/s'
set xlabel 'targets'
set ylabel 'times as fast as the single client'
set xrange [0:{rows[-1]['targets'] + 1}]
set yrange [0:*]
plot $rows using 1:2 with linespoints lw 2 pt 7 lc rgb '#1f77b4' title "the paper's client", \\
     $rows using 1:3 with lines dt 2 lc rgb '#1f77b4' title 'as the limits allow', \\
     $rows using 1:4 with linespoints lw 2 pt 5 lc rgb '#d62728' title 'dfcctl sort local', \\
     $rows using 1:5 with lines dt 2 lc rgb '#d62728' title 'as the limits allow'
""", {
            "rows": [(r["targets"], r["times_paper"], r["bound_times_paper"], r["times_local"],
                      r["bound_times_local"]) for r in rows]
        })


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--targets", type=int, nargs="+", default=COUNTS, metavar="N")
    p.add_argument("--shards", type=int, default=SHARDS, help="of 170 KB each")
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
    finish_rows(bench.rows)
    document["rows"] = bench.rows
    lines = [[
        r["targets"], r["cluster"]["seconds"], r["cluster"]["bound_s"], r["of_bound"],
        r["cluster"]["apart_s"], r["of_apart"], r["times_paper"], r["bound_times_paper"],
        r["times_local"], r["bound_times_local"]
    ] for r in bench.rows]
    benchlib.table([
        "targets", "s", "bound s", "of bound", "apart s", "of that", "times paper's", "bound",
        "times local", "bound"
    ], lines)
    benchlib.finish(args, "sort/experiment", document)
    draw(args, bench.rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
