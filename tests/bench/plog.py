#!/usr/bin/env python3
"""Checkpoints in the shapes of PLFS's figures: 1 to 16 processes write one file strided or segmented, or a file each;
then it is read by as many processes and by another number of them.  Through libdfcplog, through a mounted bucket of
plogs, and on the file system of --dir.  See README.md for what each figure means."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import benchlib
from benchlib import KIB, MIB, log
from peers import Cluster

sys.path.insert(0, str(benchlib.ROOT / "tests" / "bench" / "sort"))

from lab import Lab, LabCluster, lacks  # noqa: E402
from namespaces import enter  # noqa: E402

WRITERS = (1, 2, 4, 8, 16)
RECORDS = (47008, 64 * KIB, MIB)  # 47,001 of the paper, as IOR takes multiples of 8
PATTERNS = ("strided", "segmented", "own")
STATS = 50
LAB_TARGETS, LAB_DISK, LAB_LINK = 4, 16_000_000, 12_500_000  # as ten.py


def options_of(pattern, writers, record, count):
    """Of plog-load: each writer has `count` records."""
    options = {"ranks": writers, "transfer": record, "segments": count}
    if pattern == "segmented":
        options.update(block=record * count, segments=1)
    return {**options, "own": 1} if pattern == "own" else options


class Load:
    """Processes of plog-load that begin together."""

    def __init__(self, args, side, verb, processes, **options):
        flags = [f"--{name}={value}" for name, value in options.items()]
        command = [str(args.build / "plog-load"), side.kind, verb, side.path()]
        self.processes = [
            subprocess.Popen([*command, f"--rank={rank}", *flags], env=side.environment, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE) for rank in range(processes)]

    def tell(self, word):
        """All have said it: they go on."""
        for p in self.processes:
            if p.stdout.readline() != word + "\n":
                raise RuntimeError("a process of plog-load has failed")
        for p in self.processes:
            p.stdin.write("go\n")
            p.stdin.flush()

    def held(self):
        for p in self.processes:
            if p.stdout.readline() != "held\n":
                raise RuntimeError("a process of plog-load has failed")

    def end(self):
        texts = [p.communicate("go\n")[0] for p in self.processes]
        if any(p.returncode != 0 for p in self.processes):
            raise RuntimeError("a process of plog-load has failed")
        return [json.loads(text) for text in texts]


def effective(found):
    """From the first open to the last close: the slowest counts."""
    seconds = (max(f["end"] for f in found) - min(f["begin"] for f in found)) / 1e6
    return sum(f["bytes"] for f in found) / seconds / 1e6


class Files:
    """A directory of a file system."""

    kind, environment = "posix", None

    def __init__(self, name, directory):
        self.name, self.parent = name, directory

    def begin(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="dfc-bench-plog-", dir=self.parent))

    def again(self):
        """A job that starts anew: nothing is kept but files."""

    def path(self):
        return str(self.directory / "ckpt")

    def end(self):
        shutil.rmtree(self.directory)
        benchlib.flush_disk(self.parent)


class Library:
    """libdfcplog in each process."""

    name, kind = "library", "plog"

    def __init__(self, store, durability):
        self.store, self.durability, self.runs = store, durability, 0
        self.environment = {**os.environ, **store.environment}

    def begin(self):
        self.runs += 1
        self.bucket = f"{self.name}{self.runs}"
        self.store.new_place(self.bucket, durability=self.durability)

    def again(self):
        pass

    def path(self):
        return self.bucket + "/ckpt"

    def end(self):
        self.store.remove_place(self.bucket)


class Mount(Library):
    """All processes through one mount; after the write it is mounted anew."""

    name, kind = "mount", "posix"

    def __init__(self, store, durability, build, directory):
        super().__init__(store, durability)
        self.build, self.directory = build, directory
        directory.mkdir()

    def tool(self, verb, *words):
        subprocess.run([str(self.build / "dfcctl"), "plog", verb, *words, str(self.directory)], check=True,
                       env=self.environment, stdout=subprocess.DEVNULL)

    def begin(self):
        super().begin()
        self.tool("mount", f"dfc://{self.bucket}")

    def again(self):
        self.tool("umount")
        self.tool("mount", f"dfc://{self.bucket}")

    def path(self):
        return str(self.directory / "ckpt")

    def end(self):
        self.tool("umount")
        super().end()


class Bench:
    def __init__(self, args, sides):
        self.args, self.sides, self.rows = args, sides, []

    def forget(self):
        """A restart reads what the disks have."""
        if self.args.cold:
            subprocess.run(["sync"], check=True)
            with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
                f.write("3")

    def job(self, side, verb, processes, **options):
        load = Load(self.args, side, verb, processes, **options)
        load.tell("ready")
        return load.end()

    def checkpoint(self, side, pattern, writers, record):
        """→ the figures of one file, or of one for each writer."""
        count = max(1, self.args.mib * MIB // (writers * record))
        options = options_of(pattern, writers, record, count)
        readers = writers - 1 if writers > 1 else 2
        side.begin()
        try:
            writing = Load(self.args, side, "write", writers, **options, hold=0)
            writing.tell("ready")
            written = writing.end()
            side.again()
            statted, = self.job(side, "stat", 1, **options, calls=STATS)
            self.forget()
            uniform = self.job(side, "read", writers, **options)
            side.again()
            self.forget()
            other = self.job(side, "read", readers, **options, readers=readers)
        finally:
            side.end()
        return {"write": effective(written), "open_ms": max(f["open_us"] for f in written) / 1e3,
                "close_ms": max(f["close_us"] for f in written) / 1e3, "stat_us": statted["move_us"] / STATS,
                "uniform": effective(uniform), "read_open_ms": max(f["open_us"] for f in uniform) / 1e3,
                "other": effective(other)}

    def stat_while_open(self, side, writers):
        """The size of a file whose writers have synced, and not closed."""
        options = options_of("strided", writers, RECORDS[0], 8)
        side.begin()
        try:
            writing = Load(self.args, side, "write", writers, **options, hold=1)
            writing.tell("ready")
            writing.held()
            found, = self.job(side, "stat", 1, **options, calls=STATS)
            writing.end()
        finally:
            side.end()
        return {"stat_us": found["move_us"] / STATS}

    def row(self, name, acts):
        """acts: {key: callable → {figure: number}}; the medians of each."""
        if self.args.only not in name:
            return
        found = benchlib.interleave(acts, self.args.rounds, warm_up=not self.args.quick)
        cells = {key: {figure: round(benchlib.median([r[figure] for r in results]), 2)
                       for figure in results[0]} for key, results in found.items()}
        self.add_ratios(found, cells)
        self.rows.append({"name": name, "cells": cells})
        log(f"{name}: " + ", ".join(f"{key} {next(iter(cell.values()))}" for key, cell in cells.items()))

    @staticmethod
    def add_ratios(found, cells):
        """Of each round, of what both have of it: to a file each, and to the first file system."""
        for key, cell in cells.items():
            side, _, pattern = key.partition(" ")
            for word, other in (("of_own", f"{side} own"), ("of_files", f"files {pattern}")):
                if other == key or other not in found or not pattern:
                    continue
                for figure in ("write", "uniform", "other"):
                    cell[f"{figure}_{word}"] = benchlib.paired_ratio([r[figure] for r in found[key]],
                                                                     [r[figure] for r in found[other]])

    def all(self):
        for record in self.args.records:
            for writers in self.args.writers:
                acts = {f"{side.name} {pattern}": lambda s=side, p=pattern, w=writers, r=record:
                        self.checkpoint(s, p, w, r) for side in self.sides for pattern in PATTERNS}
                self.row(f"{record} bytes, {writers} writers", acts)
        for writers in self.args.writers:
            self.row(f"stat of an open file, {writers} writers",
                     {side.name: lambda s=side, w=writers: self.stat_while_open(s, w) for side in self.sides})

    def table(self):
        def ratio(cell, name):
            return (cell.get(name) or {}).get("median")

        benchlib.table(
            ["", "side", "write MB/s", "/ own", "/ files", "open ms", "close ms", "stat us", "uniform MB/s", "/ own",
             "other MB/s", "/ own"],
            [[row["name"], key, cell.get("write"), ratio(cell, "write_of_own"), ratio(cell, "write_of_files"),
              cell.get("open_ms"), cell.get("close_ms"), cell["stat_us"], cell.get("uniform"),
              ratio(cell, "uniform_of_own"), cell.get("other"), ratio(cell, "other_of_own")]
             for row in self.rows for key, cell in row["cells"].items()])


class LabStore:
    """The lab's cluster as `Cluster` of peers.py is used here."""

    def __init__(self, cluster):
        self.cluster, self.environment = cluster, {"DFC_ENDPOINT": cluster.endpoint}

    def new_place(self, name, **props):
        self.cluster.create(name, **props)

    def remove_place(self, name):
        self.cluster.destroy(name)
        self.cluster.lab.flush()


@contextlib.contextmanager
def stores(args, work):
    """→ the cluster, the directory of the side `files`, a text about the limits."""
    if not args.lab:
        (work / "files").mkdir()
        with Cluster(work / "dfc", args.build, targets=args.targets) as cluster:
            yield cluster, work / "files", {}
        return
    (work / "disks").mkdir()
    size = 24 * args.mib * MIB + 512 * MIB
    with Lab(args.build, work / "disks", LAB_TARGETS + 1, size, LAB_DISK, LAB_LINK) as lab:
        with LabCluster(lab, args.build, LAB_TARGETS) as cluster:
            lab.limit(True)
            yield LabStore(cluster), lab.disks[lab.names[-1]].path, {"disk": LAB_DISK, "link": LAB_LINK}
            lab.limit(False)


def arguments():
    p = benchlib.arguments(__doc__)
    p.add_argument("--mib", type=int, default=128, help="of each checkpoint, all writers together")
    p.add_argument("--writers", type=int, nargs="+", default=WRITERS, metavar="N")
    p.add_argument("--records", type=int, nargs="+", default=RECORDS, metavar="BYTES")
    p.add_argument("--targets", type=int, default=1, help="without --lab")
    p.add_argument("--durability", default="sync", help="of the bucket; files are always synced")
    p.add_argument("--cold", action="store_true", help="drop the page cache before each read (root)")
    p.add_argument("--peer", action="append", default=[], metavar="NAME=DIR",
                   help="one more side: a directory of any mounted file system; may be repeated")
    p.add_argument("--lab", action="store_true",
                   help="four targets and the files, each on a disk and link of its own of one speed (root; ten.py)")
    args = p.parse_args()
    if args.quick:
        args.rounds, args.mib, args.writers, args.records = 1, 1, (1, 3), RECORDS[:1]
    return args


def main():
    args = arguments()
    if args.lab and (missing := lacks(args.build)):
        log(missing)
        sys.exit(77)
    if os.geteuid() == 0:  # no copy of a mount keeps its process
        enter(*(["--net"] if args.lab else []))
    document = {"machine": benchlib.begin(args)}
    with benchlib.WorkDir(args.dir) as work, stores(args, work) as (store, files, limits):
        sides = [Library(store, args.durability)]
        if os.path.exists("/dev/fuse") and (args.build / "dfc-mount").exists():
            sides.append(Mount(store, args.durability, args.build, work / "mnt"))
        else:
            log("note: without /dev/fuse and dfc-mount there is no side 'mount'")
        sides.append(Files("files", files))
        sides += [Files(*peer.split("=", 1)) for peer in args.peer]
        bench = Bench(args, sides)
        bench.all()
    bench.table()
    benchlib.finish(args, "plog", {**document, "limits": limits, "mib": args.mib, "rows": bench.rows})


if __name__ == "__main__":
    main()
