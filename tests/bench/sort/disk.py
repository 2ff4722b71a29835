#!/usr/bin/env python3
"""Sorting on one target against cp of the same bytes, with and without a sync after it, and against
GNU tar, interleaved.  See README.md for what each figure means."""

import json
import os
import shutil
import subprocess
import sys
import time

from common import spec
import benchlib
from benchlib import KIB, MIB, log, size_text
from dataset import check_sorted, write_dataset
from peers import Cluster, fetch

# name, shards, records in each, bytes of each, goal: times cp's time, rounds of GNU tar
TIMED = [
    ("2 GiB of 1 MiB records", 200, 10, MIB, 1.2, 2),
    ("1 GiB of 10 KiB records", 100, 1000, 10 * KIB, 1.6, 2),
    ("a million 1 KiB records", 1000, 1000, KIB, 1.6, 0),
]
MEMORY_BOUND = 256 * MIB
OUTPUT_SHARD_BYTES = 20 * MIB

# What a person with GNU tar would do: $1 input, $2 output, $3 scratch, $4 records per shard.
TAR_SCRIPT = """
set -e
mkdir "$3/all" "$2"
for shard in "$1"/*.tar; do tar -xf "$shard" -C "$3/all"; done
cd "$3"
LC_ALL=C ls -f all | grep -v '^\\.' | LC_ALL=C sort | split -l "$4" -d -a 6 - list.
for list in list.*; do tar -cf "$2/out-${list#list.}.tar" -C all --no-recursion -T "$list"; done
"""


def request(shards, output="out"):
    return spec("disk", shards, output, output_shard_size=str(OUTPUT_SHARD_BYTES))


def run_measured(command):
    """→ seconds, CPU seconds (of its children, too) and peak resident bytes of a program."""
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    with benchlib.PeakMemory(process.pid) as memory:
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]}: status {process.returncode}")
    return {"seconds": seconds, "cpu_s": usage.ru_utime + usage.ru_stime,
            "peak_bytes": memory.peak}


def cpu_of(pid):
    """CPU seconds of another process: the clock id that clock_getcpuclockid(3) makes."""
    return time.clock_gettime((~pid << 3) | 2)


def peak_mib(runs):
    peaks = [r["peak_bytes"] for r in runs if r["peak_bytes"] is not None]
    return round(max(peaks) / MIB, 1) if peaks else None


class Bench:
    def __init__(self, args, work, cluster):
        self.args = args
        self.work = work
        self.cluster = cluster
        self.harness = next((p for p in (args.build / "sort-harness",
                                         args.build / "sort/sort-harness",
                                         args.build / "tests/sort-harness") if p.exists()), None)
        self.checked = set()
        self.jobs = 0
        self.rows = []

    def make(self, shards, records, record_bytes):
        self.shards, self.records, self.record_bytes = shards, records, record_bytes
        self.input = self.work / "in"
        self.output = self.work / "out"
        self.bytes = write_dataset(self.input, shards, records, record_bytes)
        if self.cluster:
            self.upload()
        benchlib.flush_disk(self.args.dir)
        self.checked.clear()

    def unmake(self):
        shutil.rmtree(self.input)
        if self.cluster:
            self.cluster.remove_place("in")

    def upload(self):
        prefix = self.cluster.new_place("in")
        for path in sorted(self.input.iterdir()):
            done = subprocess.run(
                ["curl", "-sSL", "--fail-with-body", "-o", os.devnull, "-T", str(path),
                 self.cluster.proxy["url"] + prefix + path.name], check=False)
            if done.returncode != 0:
                raise RuntimeError(f"PUT of {path.name}: curl ended with {done.returncode}")

    def settle(self):
        shutil.rmtree(self.output, ignore_errors=True)
        benchlib.flush_disk(self.args.dir)
        if self.args.cold:
            with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
                f.write("1")

    def check(self, side):
        if side not in self.checked:
            check_sorted(self.output, self.shards * self.records)
            self.checked.add(side)

    def cp(self):
        self.settle()
        return run_measured(["cp", "-r", str(self.input), str(self.output)])

    def cp_sync(self):
        """What the cluster gives: the result is on the disk before anybody sees it."""
        self.settle()
        return run_measured(["sh", "-c", 'cp -r "$1" "$2" && sync -f "$2"', "sh",
                             str(self.input), str(self.output)])

    def tar(self):
        self.settle()
        scratch = self.work / "scratch"
        scratch.mkdir()
        unit = 512 + self.record_bytes + -self.record_bytes % 512
        lines = -(-OUTPUT_SHARD_BYTES // unit)
        try:
            result = run_measured(["sh", "-c", TAR_SCRIPT, "sh", str(self.input),
                                   str(self.output), str(scratch), str(lines)])
            self.check("tar")
            return {**result, "peak_bytes": None}  # of the shell: says nothing
        finally:
            shutil.rmtree(scratch)

    def sort_harness(self):
        self.settle()
        path = self.work / "spec.json"
        path.write_text(json.dumps(request(self.shards)))
        result = run_measured([str(self.harness), "--targets=1", f"--spec={path}",
                               f"--in={self.input}", f"--out={self.output}"])
        self.check("harness")
        return result

    def wait_for_job(self, job):
        while True:
            doc = self.cluster.call("GET", f"/v1/sort?id={job}")
            if doc["state"] == "finished":
                return
            if doc["state"] in ("failed", "aborted"):
                raise RuntimeError(f"{job}: {doc['state']}: {doc['errors']}")
            time.sleep(0.005)  # between two looks, which cost about 1 % of this

    def sort_cluster(self):
        self.settle()
        self.jobs += 1
        output = f"out{self.jobs}"
        prefix = self.cluster.new_place(output)
        pid = self.cluster.pids()[0]
        benchlib.memory_reset(pid)
        cpu = cpu_of(pid)
        begin = time.monotonic()
        job = self.cluster.call("POST", "/v1/sort", request(self.shards, output))["id"]
        self.wait_for_job(job)
        result = {"seconds": time.monotonic() - begin, "cpu_s": cpu_of(pid) - cpu,
                  "peak_bytes": benchlib.memory_of(pid)[1]}
        if "cluster" not in self.checked:
            self.check_cluster(output, prefix)
        self.cluster.remove_place(output)
        return result

    def check_cluster(self, output, prefix):
        """What the cluster made, fetched and looked at like the others'."""
        page = self.cluster.call("GET", f"/v1/objects/{output}?limit=10000")
        self.output.mkdir()
        for entry in page["entries"]:
            status, data = fetch(self.cluster.url + prefix + entry["name"])
            if status != 200:
                raise RuntimeError(f"GET of {entry['name']}: {status}")
            (self.output / entry["name"]).write_bytes(data)
        self.check("cluster")
        shutil.rmtree(self.output)

    def sides(self):
        sides = {}
        if self.harness:
            sides["harness"] = self.sort_harness
        if self.cluster:
            sides["cluster"] = self.sort_cluster
        return sides

    def timed(self, name, shards, records, record_bytes, goal, tar_rounds):
        if self.args.quick:
            shards, records = 4, max(2, records // 10)
        self.make(shards, records, record_bytes)
        results = benchlib.interleave({"cp": self.cp, "cp_sync": self.cp_sync, **self.sides()},
                                      self.args.rounds, warm_up=not self.args.quick)
        if tar_rounds > 0:
            results["tar"] = [self.tar() for _ in range(min(self.args.rounds, tar_rounds))]
        self.settle()
        self.unmake()
        row = {
            "name": name, "bytes": self.bytes, "goal_times_cp": goal,
            "bound_mib": MEMORY_BOUND // MIB
        }
        cp = [r["seconds"] for r in results["cp"]]
        cp_sync = [r["seconds"] for r in results["cp_sync"]]
        for side, runs in results.items():
            seconds = [r["seconds"] for r in runs]
            row[side] = {
                "seconds": round(benchlib.median(seconds), 3),
                "mb_per_s": round(self.bytes / 1e6 / benchlib.median(seconds), 1),
                "cpu_s": round(benchlib.median([r["cpu_s"] for r in runs]), 3),
                "peak_mib": peak_mib(runs),
                "times_cp": benchlib.paired_ratio(seconds, cp),
                "times_cp_sync": benchlib.paired_ratio(seconds, cp_sync),
                "runs": [round(s, 3) for s in seconds],
            }
            if side in self.sides():
                row[side]["within_bound"] = row[side]["peak_mib"] <= MEMORY_BOUND / MIB
        self.rows.append(row)

    def table(self):
        lines = []
        for row in self.rows:
            for side in ("cp", "cp_sync", "harness", "cluster", "tar"):
                if side not in row:
                    continue
                r = row[side]
                times, synced = r.get("times_cp"), r.get("times_cp_sync")
                lines.append([row["name"], side, f"{r['seconds']:.2f}", r.get("mb_per_s"),
                              times and times["median"],
                              times and f"{times['min']}-{times['max']}",
                              row.get("goal_times_cp"), synced and synced["median"],
                              f"{r['cpu_s']:.2f}", r["peak_mib"],
                              row.get("bound_mib")])
        benchlib.table(["", "", "s", "MB/s", "times cp", "(rounds)", "goal", "times cp+sync",
                        "CPU s", "peak MiB", "bound"], lines)


def measure(args, document, work, cluster):
    bench = Bench(args, work, cluster)
    if not bench.sides():
        log("neither sort-harness nor a cluster: nothing to measure")
        return 77
    for row in TIMED:
        if args.only in row[0]:
            log(f"{row[0]}: {size_text(row[1] * row[2] * row[3])}")
            bench.timed(*row)
    document["rows"] = bench.rows
    bench.table()
    benchlib.finish(args, "sort", document)
    over = [row["name"] for row in bench.rows for side in row.values()
            if isinstance(side, dict) and side.get("within_bound") is False]
    for name in over:
        log(f"{name}: more memory than {MEMORY_BOUND // MIB} MiB")
    return 1 if over else 0


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--no-cluster", action="store_true", help="sort-harness alone")
    p.add_argument("--cold", action="store_true",
                   help="drop the page cache before each run (root): input from the disk")
    args = p.parse_args()
    if args.quick:
        args.rounds = 1
    document = {"machine": benchlib.begin(args),
                "settings": {"rounds": args.rounds, "cold": args.cold,
                             "output_shard_bytes": OUTPUT_SHARD_BYTES, "targets": 1,
                             "tar": benchlib.first_line(["tar", "--version"])}}
    with benchlib.WorkDir(args.dir) as work:
        if args.no_cluster:
            return measure(args, document, work, None)
        with Cluster(work / "dfc", args.build) as cluster:
            return measure(args, document, work, cluster)


if __name__ == "__main__":
    sys.exit(main())
