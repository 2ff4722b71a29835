#!/usr/bin/env python3
"""The Python package: GET and PUT of three sizes in one process with one thread, beside boto3 and
the AIStore SDK on the same target; batches beside single GETs over a link of 1 ms; members of
archives; epochs over tar shards beside the same reader on a local disk.  See README.md for what
each figure means."""

import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tarfile
import urllib.parse

import benchlib
from benchlib import KIB, MIB, log
from peers import Cluster, put

HERE = benchlib.ROOT / "tests" / "bench"
SIZES = (("1 KiB", KIB), ("100 KiB", 100 * KIB), ("1 MiB", MIB))
OBJECTS = 16
MANY = 256  # names of a batch
SMALL = 10 * KIB  # bytes of each
LINK_MS = 1
LARGE = 256 * MIB  # an archive, of members of MEMBER bytes
MEMBER = 100 * KIB
LISTED = 100_000  # members of another
SHARDS, SAMPLES = 8, 160  # of 100 KiB: 16 MiB a shard
MANY_SHARDS = 32


def has(python, package):
    return subprocess.run([python, "-c", f"import {package}"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


def archive(path, sizes):
    """A tar of members 000000.bin and so on, in a file."""
    draw = random.Random(os.path.basename(path))
    block = draw.randbytes(max(sizes[:1] + [MEMBER]) + 4096)
    with tarfile.open(path, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for i, size in enumerate(sizes):
            member = tarfile.TarInfo(f"{i:06}.bin")
            member.size = size
            tar.addfile(member, io.BytesIO(block[i % 4096:i % 4096 + size]))


class Bench:
    def __init__(self, args, cluster, folder):
        self.args, self.cluster, self.folder = args, cluster, folder
        self.prefix = cluster.new_place("bench")
        cluster.put_first(self.prefix)
        self.rows = []
        self.seconds = 0.1 if args.quick else args.seconds

    def store(self, name, data):
        put(self.cluster.proxy["url"] + self.prefix + name, body=data)

    def url(self, side):
        """boto3 and the bare socket are given the target, as they do not find it by themselves."""
        return self.cluster.url if side in ("boto3", "socket") else self.cluster.proxy["url"]

    def run(self, kind, side, names, place="bench", size=0, relay=""):
        command = [self.args.python, "-W", "ignore", HERE / "python_side.py", kind, side,
                   self.url(side), place, str(self.seconds), str(size), *names]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True,
                              env={**os.environ, "DFC_BENCH_RELAY": relay})
        return json.loads(done.stdout)

    def row(self, name, kind, sides, names, rate="count", **options):
        """`sides`: {name: place}; the first is ours, and is compared with each other one."""
        if self.args.only not in name:
            return
        results = benchlib.interleave(
            {side: lambda side=side: self.run(kind, side, names, sides[side], **options)
             for side in sides}, self.args.rounds, warm_up=False)
        self.rows.append({"name": name, **compared(results, rate)})

    # --- rows ---

    def objects(self):
        sides = {side: "bench" for side in ("dfc", "boto3", "aistore")
                 if side == "dfc" or has(self.args.python, side)}
        for text, size in SIZES:
            names = [f"{size}-{i}" for i in range(OBJECTS)]
            for name in names:
                self.store(name, random.Random(name).randbytes(size))
            self.row(f"GET {text}", "get", {"dfc": "bench", "socket": "bench", **sides}, names)
            self.row(f"PUT {text}", "put", sides, names, size=size)

    def link(self):
        name = f"{MANY} x 10 KiB, link of {LINK_MS} ms"
        if self.args.only not in name:
            return
        names = [f"small-{i}" for i in range(MANY)]
        for one in names:
            self.store(one, random.Random(one).randbytes(SMALL))
        ports = [str(urllib.parse.urlsplit(n["url"]).port) for n in self.cluster.nodes]
        with subprocess.Popen([sys.executable, HERE / "relay.py", str(LINK_MS / 2), *ports],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as relay:
            try:
                pairs = ",".join(relay.stdout.readline().strip() for _ in ports)
                self.row(name, "many", {"batch": "bench", "gets": "bench"}, names, relay=pairs)
            finally:
                relay.stdin.close()

    def archives(self):
        self.one_archive("member of a tar of 256 MiB", "member", ["member", "range"],
                         [MEMBER] * (LARGE // MEMBER // (20 if self.args.quick else 1)))
        self.one_archive("list of 100,000 members", "list", ["members", "tar t"],
                         [0] * (LISTED // (100 if self.args.quick else 1)))

    def one_archive(self, name, kind, sides, sizes):
        if self.args.only not in name:
            return
        path = self.folder / f"{kind}.tar"
        archive(path, sizes)
        self.store(path.name, path.read_bytes())
        places = {side: str(self.folder) if side == "tar t" else "bench" for side in sides}
        self.row(name, kind, places, [path.name], size=len(sizes))
        path.unlink()

    def shards(self):
        names = [f"set-{i:02}.tar" for i in range(MANY_SHARDS)]
        for name in names:
            archive(self.folder / name, [MEMBER] * (8 if self.args.quick else SAMPLES))
            self.store(name, (self.folder / name).read_bytes())
        members = [f"{names[i % MANY_SHARDS]}!{i // MANY_SHARDS:06}.bin" for i in range(MANY)]
        self.row(f"{MANY} members of {MANY_SHARDS} shards", "many",
                 {"batch": "bench", "gets": "bench"}, members)
        self.row("epoch over shards", "epoch", {"dfc": "bench", "disk": str(self.folder)},
                 names[:SHARDS], rate="bytes")


def compared(results, rate):
    """Medians of each side, and the ratios of the first to the others."""
    unit, scale = ("mb_per_s", 1e-6) if rate == "bytes" else ("per_s", 1)
    rates = {side: [r[rate] / r["seconds"] * scale for r in runs]
             for side, runs in results.items()}
    base, row = next(iter(results)), {}
    for side, runs in results.items():
        row[side] = {unit: round(benchlib.median(rates[side]), 1),
                     "client_us_each": round(benchlib.median(
                         [r["cpu_seconds"] / r["count"] * 1e6 for r in runs]), 1)}
        if side != base:
            row[side]["first_to_it"] = benchlib.paired_ratio(rates[base], rates[side])
    return row


def show(rows):
    benchlib.table(["", "side", "rate", "client us", "first / it"], [
        [row["name"], side, next(iter(row[side].values())), row[side]["client_us_each"],
         (row[side].get("first_to_it") or {}).get("median")]
        for row in rows for side in row if side != "name"])


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--python", default="/usr/bin/python3",
                   help="the Python of the clients: with xxhash; with boto3 and aistore, they too")
    p.add_argument("--seconds", type=float, default=0.4, help="of a side in a round")
    args = p.parse_args()
    if args.quick:
        args.rounds = 1
    if not has(args.python, "xxhash"):
        log(f"skipped: {args.python} has no package xxhash")
        sys.exit(77)
    document = {"machine": benchlib.begin(args)}
    with benchlib.WorkDir(args.dir) as work, contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(work / "dfc", args.build))
        (work / "local").mkdir()
        bench = Bench(args, cluster, work / "local")
        for rows in (bench.objects, bench.link, bench.archives, bench.shards):
            rows()
        document["rows"] = bench.rows
    show(document["rows"])
    benchlib.finish(args, "python", document)


if __name__ == "__main__":
    main()
