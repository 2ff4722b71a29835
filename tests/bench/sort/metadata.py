#!/usr/bin/env python3
"""The metadata of 1, 10 and 100 million records through a whole dry run (headers read, tables
sorted, merged over
targets, cut into output shards), with resident memory over time beside its budget.  See
README.md."""

import json
import os
import shutil
import subprocess
import sys
import time

from common import chart, spec
import benchlib
from benchlib import GIB, MIB, log
from dataset import write_dataset

SIZES = (1, 10, 100)  # million
RECORDS = 10_000  # in a shard
FILES = 64  # that differ; the shards are hard links to them
TARGETS = 4
BUDGET = 64 * MIB  # of each target
# what does not grow with the records: programs, stacks, buffers of streams, runs that are read
FIXED = 64 * MIB
POINTS = 60  # of a curve
BYTES_IN_WORK_FILES = 100  # of a record, at most: what has to be free


def request(shards):
    return spec("metadata", shards,
                input_format={"template": f"shard-{{000000..{shards - 1:06d}}}"},
                output_format="out-%09d", output_shard_size="10MiB",
                algorithm={"kind": "shuffle", "seed": "42"}, dry_run=True)


class Watched:
    """A program's resident memory over time."""

    def __init__(self, command):
        begin = time.monotonic()
        process = subprocess.Popen(command)
        self.curve, self.peak = [], 0
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid != 0:
                break
            try:
                resident, self.peak = benchlib.memory_of(process.pid)
                self.curve.append((time.monotonic() - begin, resident / MIB))
            except (OSError, KeyError):
                pass  # it ends at this moment
            time.sleep(0.02)
        self.seconds = time.monotonic() - begin
        self.cpu_s = usage.ru_utime + usage.ru_stime
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise RuntimeError(f"{command[0]}: status {process.returncode}")

    def points(self):
        """Of each part of the time the most."""
        step = max(1, len(self.curve) // POINTS)
        parts = [self.curve[i:i + step] for i in range(0, len(self.curve), step)]
        return [(round(part[0][0], 2), round(max(mib for _, mib in part), 1)) for part in parts]


class Bench:
    def __init__(self, args, work):
        self.args, self.work = args, work
        self.files = work / "files"
        self.records = 100 if args.quick else RECORDS
        write_dataset(self.files, FILES, self.records, 0)

    def run(self, million):
        shards = million * 1_000_000 // RECORDS
        name = f"{million} million records"
        log(name)
        directory = self.work / "in"
        directory.mkdir()
        (self.work / "out").mkdir()
        files = sorted(self.files.iterdir())
        for i in range(shards):
            os.link(files[i % FILES], directory / f"shard-{i:06d}.tar")
        path, status = self.work / "spec.json", self.work / "status.json"
        path.write_text(json.dumps(request(shards)))
        done = Watched([
            str(self.args.build / "sort-harness"), f"--targets={TARGETS}", f"--memory={BUDGET}",
            f"--spec={path}", f"--in={directory}", f"--out={self.work / 'out'}",
            f"--status={status}"
        ])
        targets = json.loads(status.read_text()).values()
        shutil.rmtree(directory)
        shutil.rmtree(self.work / "out")
        return self.row(name, shards * self.records, done, list(targets))

    def row(self, name, records, done, targets):
        found = sum(t["extract"]["records"] for t in targets)
        merged = max(t["merge"]["rows_out"] for t in targets)
        if found != records or merged != records:
            raise RuntimeError(f"{name}: {found} found and {merged} merged of {records}")
        seconds = {
            phase: round(max(t["seconds"][phase] for t in targets), 2)
            for phase in ("extract", "merge")
        }
        return {
            "name": name, "records": records, "seconds": round(done.seconds, 2), "cpu_s": round(
                done.cpu_s, 2), "phase_s": seconds, "records_per_s": round(records / done.seconds),
            "merged_per_s": round(records / max(seconds["merge"], 0.01)), "spilled_mib": round(
                sum(t["extract"]["spilled_bytes"] for t in targets) / MIB,
                1), "peak_mib": round(done.peak / MIB, 1), "budget_mib": TARGETS * BUDGET // MIB,
            "within_bound": done.peak <= TARGETS * BUDGET + FIXED, "rss_mib": done.points()
        }


def draw(args, rows):
    # The curves are of very different lengths: each over its own share of time.
    tables = {f"r{i}": [(round(100 * t / row["seconds"], 2), mib) for t, mib in row["rss_mib"]]
              for i, row in enumerate(rows)}
    curves = ", ".join(f"$r{i} using 1:2 with lines lw 2 title '{row['name']} ({row['seconds']} s)'"
                       for i, row in enumerate(rows))
    budget = rows[0]["budget_mib"]
    chart(args, f"""
set title 'Resident memory of {TARGETS} targets in one process while they order records'
set xlabel 'percent of the run'
set ylabel 'MiB'
set yrange [0:{budget * 1.4}]
plot {budget} with lines dt 2 lc rgb 'black' title 'budget of the tables', {curves}
""", tables)


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--millions", type=int, nargs="+", default=SIZES, metavar="N")
    args = p.parse_args()
    millions = (1,) if args.quick else args.millions
    room = shutil.disk_usage(args.dir).free
    if room < max(millions) * 1_000_000 * BYTES_IN_WORK_FILES:
        log(f"{args.dir} has {room / GIB:.0f} GiB of room: too little for {max(millions)} million "
            "records"
            )
        return 77
    document = {
        "machine": benchlib.begin(args), "settings": {"targets": TARGETS, "budget_of_each": BUDGET}
    }
    with benchlib.WorkDir(args.dir) as work:
        bench = Bench(args, work)
        document["rows"] = [bench.run(m) for m in millions if args.only in f"{m} million records"]
    benchlib.table([
        "", "s", "CPU s", "extract s", "merge s", "records/s", "spilled MiB", "peak MiB",
        "budget MiB"
    ], [[
        r["name"], r["seconds"], r["cpu_s"], r["phase_s"]["extract"], r["phase_s"]["merge"],
        r["records_per_s"], r["spilled_mib"], r["peak_mib"], r["budget_mib"]
    ] for r in document["rows"]])
    benchlib.finish(args, "sort/metadata", document)
    draw(args, document["rows"])
    over = [r["name"] for r in document["rows"] if not r["within_bound"]]
    for name in over:
        log(f"{name}: more memory than the budget and {FIXED // MIB} MiB")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
