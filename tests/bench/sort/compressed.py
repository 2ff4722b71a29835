#!/usr/bin/env python3
"""Sorting compressed shards (`dfcctl sort local`) against GNU tar with zstd -T, and with pigz (gzip
where that is not
installed), with the same CPUs, interleaved.  See README.md for what each figure means."""

import json
import os
import shutil
import subprocess
import sys

from common import spec
import benchlib
from benchlib import KIB, log, size_text
from dataset import write_dataset
from disk import OUTPUT_SHARD_BYTES, run_measured

SHARDS, RECORDS, RECORD_BYTES = 20, 500, 20 * KIB
CPUS = len(os.sched_getaffinity(0))
PIGZ = f"pigz -6 -p {CPUS}" if shutil.which("pigz") else "gzip -6"
# extension, the program that packs (at the level that the engine has), the one that unpacks
FORMATS = [(".tar.zst", f"zstd -q -3 -T{CPUS} -c", "zstd -q -dc"),
           (".tar.gz", f"{PIGZ} -c", f"{PIGZ} -dc")]

# $1 input, $2 output, $3 scratch, $4 records per shard, $5 extension, $6 packs, $7 unpacks.
PIPELINE = """
set -e
mkdir "$3/all" "$2"
for shard in "$1"/*"$5"; do $7 "$shard" | tar -xf - -C "$3/all"; done
cd "$3"
LC_ALL=C ls -f all | grep -v '^\\.' | LC_ALL=C sort | split -l "$4" -d -a 6 - list.
for list in list.*; do
    tar -cf - -C all --no-recursion -T "$list" | $6 >"$2/out-${list#list.}$5"
done
"""


class Bench:
    def __init__(self, args, work, extension, pack, unpack):
        self.args, self.work = args, work
        self.extension, self.pack, self.unpack = extension, pack, unpack
        self.input, self.output = work / "in", work / "out"
        self.shards, self.records = (4, 50) if args.quick else (SHARDS, RECORDS)

    def make(self):
        self.bytes = write_dataset(self.input, self.shards, self.records, RECORD_BYTES,
                                   compressible=True)
        for path in sorted(self.input.iterdir()):
            packed = path.with_name(path.stem + self.extension)
            with open(packed, "wb") as out:
                subprocess.run([*self.pack.split(), str(path)], stdout=out, check=True)
            path.unlink()

    def settle(self):
        shutil.rmtree(self.output, ignore_errors=True)
        benchlib.flush_disk(self.args.dir)

    def engine(self):
        self.settle()
        request = spec("compressed", self.shards, input_extension=self.extension,
                       output_extension=self.extension,
                       output_shard_size=str(OUTPUT_SHARD_BYTES))
        path = self.work / "spec.json"
        path.write_text(json.dumps(request))
        return run_measured([
            str(self.args.build / "dfcctl"), "-q", "sort", "local",
            str(path), "--in",
            str(self.input), "--out",
            str(self.output), "--threads",
            str(CPUS)
        ])

    def pipeline(self):
        self.settle()
        scratch = self.work / "scratch"
        scratch.mkdir()
        lines = -(-OUTPUT_SHARD_BYTES // (512 + RECORD_BYTES))
        try:
            return run_measured([
                "sh", "-c", PIPELINE, "sh",
                str(self.input),
                str(self.output),
                str(scratch),
                str(lines), self.extension, self.pack, self.unpack
            ])
        finally:
            shutil.rmtree(scratch)

    def names(self):
        """Of the members of the output, in order."""
        found = []
        for path in sorted(self.output.iterdir()):
            command = f'{self.unpack} "$1" | tar -tf -'
            found += subprocess.run(
                ["sh", "-c", command, "sh", str(path)], capture_output=True, text=True,
                check=True).stdout.split()
        return found

    def check(self):
        """Both come to the same."""
        self.engine()
        ours = self.names()
        self.pipeline()
        if ours != self.names() or len(ours) != self.shards * self.records:
            raise RuntimeError(f"{self.extension}: the two have not sorted alike")

    def run(self):
        self.make()
        self.check()
        results = benchlib.interleave({"sort local": self.engine, "tar": self.pipeline},
                                      self.args.rounds, warm_up=False)
        self.settle()
        shutil.rmtree(self.input)
        tar = [r["seconds"] for r in results["tar"]]
        row = {"name": self.extension, "bytes": self.bytes, "packs": self.pack}
        for side, runs in results.items():
            seconds = [r["seconds"] for r in runs]
            row[side] = {"seconds": round(benchlib.median(seconds), 3),
                         "mb_per_s": round(self.bytes / 1e6 / benchlib.median(seconds), 1),
                         "cpu_s": round(benchlib.median([r["cpu_s"] for r in runs]), 3),
                         "times_tar": benchlib.paired_ratio(seconds, tar),
                         "runs": [round(s, 3) for s in seconds]}
        return row


def main():
    args = benchlib.arguments(__doc__).parse_args()
    if args.quick:
        args.rounds = 1
    if not shutil.which("zstd"):
        log("zstd is not installed: nothing to compare with")
        return 77
    document = {
        "machine": benchlib.begin(args), "settings": {"rounds": args.rounds, "cpus": CPUS},
        "rows": []
    }
    with benchlib.WorkDir(args.dir) as work:
        for extension, pack, unpack in FORMATS:
            if args.only not in extension:
                continue
            bench = Bench(args, work, extension, pack, unpack)
            log(f"{extension} ({pack}): {size_text(bench.shards * bench.records * RECORD_BYTES)} "
                "of contents"
                )
            document["rows"].append(bench.run())
    lines = []
    for row in document["rows"]:
        for side in ("sort local", "tar"):
            r = row[side]
            lines.append([
                row["name"], side, r["seconds"], r["mb_per_s"], r["cpu_s"],
                r["times_tar"]["median"], f"{r['times_tar']['min']}-{r['times_tar']['max']}"
            ])
    benchlib.table(["", "", "s", "MB/s of tar", "CPU s", "times tar", "(rounds)"], lines)
    benchlib.finish(args, "sort_compressed", document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
