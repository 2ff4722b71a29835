#!/usr/bin/env python3
"""Rings beside Wirehead's own design, which ring_side.py has on Redis: pushes by several makers, random batches,
swaps while a reader reads, and a training whose makers are slower than it.  See README.md for what each figure
means."""

import contextlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import benchlib
from benchlib import KIB, MIB, log
from peers import Cluster

HERE = benchlib.ROOT / "tests" / "bench"
# The last one: two volumes of 256³ bytes.
SIZES = (("64 KiB", 64 * KIB, 100), ("1 MiB", MIB, 32), ("33.5 MB", 2 * 256**3, 4))
QUICK_SIZES = (("64 KiB", 64 * KIB, 8),)
MAKERS = (1, 4, 16)
BYTES_MAX = "16GiB"
STEP_SECONDS, TRAIN_MAKERS, TRAIN_PAUSE = 0.05, 4, 0.05  # 160 samples/s read, 80 made
BATCH = 8  # as in ring_side.py
SWAP_MAKERS = 4
LOOK_SECONDS = 0.002  # between two looks at the newest generation
READY_SECONDS = 60  # for a ring's keeper


def has(python, package):
    return subprocess.run([python, "-c", f"import {package}"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


class Redis:
    """In memory alone: what is pushed is never on a disk, which is the best that it can do."""

    def __init__(self, folder):
        self.folder, self.port = folder, benchlib.free_port()

    def __enter__(self):
        self.process = subprocess.Popen(
            [shutil.which("redis-server"), "--bind", "127.0.0.1", "--port", str(self.port), "--dir",
             str(self.folder), "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL)
        benchlib.wait_for_port(self.port, self.process)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class DfcSide:
    def __init__(self, cluster):
        self.cluster, self.where, self.places = cluster, cluster.proxy["url"], 0

    def begin(self, cap):
        self.places += 1
        place = f"ring{self.places}"
        self.cluster.new_place(place, ring=f"cap={cap},bytes_max={BYTES_MAX}")
        return place

    def swaps(self, place):
        """A new ring has no keeper for a moment."""
        until = time.monotonic() + READY_SECONDS
        while True:
            try:
                status = self.cluster.call("GET", f"/v1/rings/{place}/status?redirect=never")
                return status["head"]["generation"]
            except RuntimeError as e:
                if '"not_ready"' not in str(e) or time.monotonic() > until:
                    raise
            time.sleep(0.02)

    def end(self, place):
        """Until its files are gone: their removal is not the next run's."""
        number = next(b["id"] for b in self.cluster.call("GET", "/v1/buckets")["buckets"]
                      if b["name"] == place)
        self.cluster.call("DELETE", f"/v1/buckets/{place}")
        until = time.monotonic() + 600
        while next(Path(self.cluster.dir).glob(f"*/mp*/.dfc/ring/{number}/*"), None) is not None:
            if time.monotonic() > until:
                raise RuntimeError(f"the files of ring {place} are still there")
            time.sleep(0.01)


class RedisSide:
    def __init__(self, server):
        self.where = str(server.port)

    def ask(self, *words):
        return subprocess.run(["redis-cli", "-p", self.where, *words], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()

    def begin(self, _cap):
        self.ask("FLUSHALL")
        return "-"

    def swaps(self, _place):
        return int(self.ask("GET", "swaps") or 0)

    def end(self, _place):
        self.ask("FLUSHALL")


class FlySide:
    where = str(TRAIN_PAUSE)


class Runs:
    """Processes of ring_side.py that begin together."""

    def __init__(self, args, side, name):
        self.args, self.side, self.name = args, side, name

    def start(self, place, kind, size, cap, seconds, pause=0.0):
        return subprocess.Popen(
            [self.args.python, HERE / "ring_side.py", kind, self.name, self.side.where, place,
             str(seconds), str(size), str(cap), str(pause)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @staticmethod
    def go(processes):
        """→ what each of them found."""
        for p in processes:
            if p.stdout.readline() != "ready\n":
                raise RuntimeError("a side has failed")
        for p in processes:
            p.stdin.write("go\n")
            p.stdin.flush()
        texts = [p.communicate()[0] for p in processes]
        if any(p.returncode != 0 for p in processes):
            raise RuntimeError("a side has failed")
        return [json.loads(text) for text in texts]

    def fill(self, place, size, cap):
        """The first generation."""
        while self.side.swaps(place) == 0:
            self.go([self.start(place, "push", size, cap, 0.2)])

    def push(self, makers, size, cap):
        place = self.side.begin(cap)
        found = self.go([self.start(place, "push", size, cap, self.args.seconds) for _ in range(makers)])
        self.side.end(place)
        return {"per_s": sum(f["count"] / f["seconds"] for f in found),
                "thrown_away": sum(f["thrown_away"] for f in found)}

    def read(self, size, cap):
        place = self.side.begin(cap)
        self.fill(place, size, cap)
        found, = self.go([self.start(place, "read", size, cap, self.args.seconds)])
        self.side.end(place)
        return {"per_s": found["count"] / found["seconds"], "gap_ms": found["gap_ms"]}

    def beside(self, kind, makers, size, cap, made_every, step):
        """A reader while makers push."""
        place = self.side.begin(cap)
        self.fill(place, size, cap)
        seconds = self.args.seconds * 2
        before = self.side.swaps(place)
        found = self.go([self.start(place, kind, size, cap, seconds, step),
                         self.start(place, "watch", size, cap, seconds, LOOK_SECONDS)] +
                        [self.start(place, "push", size, cap, seconds, made_every) for _ in range(makers)])
        swaps = self.side.swaps(place) - before
        self.side.end(place)
        reader, watcher = found[:2]
        waits = {"waits": reader["waited_s"] / reader["seconds"]} if step else {}
        return {"per_s": reader["count"] / reader["seconds"], "gap_ms": reader["gap_ms"],
                "failed": reader["failed"], **waits,
                "unreadable_ms_per_s": 1000 * watcher["unreadable_s"] / watcher["seconds"],
                "swaps_per_s": swaps / seconds}

    def train_on_the_fly(self, makers, size, step):
        found, = self.go([self.start(str(makers), "train", size, BATCH, self.args.seconds * 2, step)])
        return {"per_s": found["count"] / found["seconds"], "gap_ms": found["gap_ms"],
                "waits": found["waited_s"] / found["seconds"]}


class Bench:
    def __init__(self, args, sides):
        self.args, self.rows = args, []
        self.runs = {name: Runs(args, side, name) for name, side in sides.items()}

    def row(self, name, act, others=None):
        """act(runs) → {figure: number}; the medians of each.  others: a further side → its act()."""
        if self.args.only not in name:
            return
        acts = {side: lambda r=runs: act(r) for side, runs in self.runs.items()}
        found = benchlib.interleave({**acts, **(others or {})}, self.args.rounds, warm_up=False)
        row = {"name": name}
        for side, results in found.items():
            row[side] = {figure: round(benchlib.median([r[figure] for r in results]), 3)
                         for figure in results[0]}
            if side != "dfc":
                row[side]["dfc_to_it"] = benchlib.paired_ratio([r["per_s"] for r in found["dfc"]],
                                                               [r["per_s"] for r in results])
        self.rows.append(row)
        log(f"{name}: " + ", ".join(f"{side} {row[side]['per_s']:.1f}/s" for side in found))

    def all(self):
        for text, size, cap in QUICK_SIZES if self.args.quick else SIZES:
            for makers in MAKERS[:2] if self.args.quick else MAKERS:
                self.row(f"push {text}, {makers} makers",
                         lambda r, m=makers, s=size, c=cap: r.push(m, s, c))
            self.row(f"random batches, {text}", lambda r, s=size, c=cap: r.read(s, c))
        self.row("batches during swaps, 64 KiB",
                 lambda r: r.beside("read", SWAP_MAKERS, 64 * KIB, 32, 0.0, 0.0))
        fly = Runs(self.args, FlySide, "fly")
        self.row("training, 1 MiB",
                 lambda r: r.beside("train", TRAIN_MAKERS, MIB, 16, TRAIN_PAUSE, STEP_SECONDS),
                 {"fly": lambda: fly.train_on_the_fly(TRAIN_MAKERS, MIB, STEP_SECONDS)})

    def table(self):
        head = ["", "side", "samples/s", "dfc / it", "swaps/s", "unreadable", "gap ms", "failed", "waits"]
        figures = ("swaps_per_s", "unreadable_ms_per_s", "gap_ms", "failed", "waits")
        benchlib.table(head, [
            [row["name"], side, row[side]["per_s"], (row[side].get("dfc_to_it") or {}).get("median"),
             *(row[side].get(figure) for figure in figures)]
            for row in self.rows for side in row if side != "name"])


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--python", default="/usr/bin/python3",
                   help="the Python of makers and readers: with xxhash and, for Redis, redis")
    p.add_argument("--seconds", type=float, default=2.0, help="of a side in a round")
    args = p.parse_args()
    if args.quick:
        args.rounds, args.seconds = 1, 0.3
    if not has(args.python, "xxhash"):
        log(f"skipped: {args.python} has no package xxhash")
        sys.exit(77)
    document = {"machine": benchlib.begin(args)}
    with benchlib.WorkDir(args.dir) as work, contextlib.ExitStack() as stack:
        cluster = stack.enter_context(Cluster(work / "dfc", args.build))
        sides = {"dfc": DfcSide(cluster)}
        if shutil.which("redis-server") and shutil.which("redis-cli") and has(args.python, "redis"):
            (work / "redis").mkdir()
            sides["redis"] = RedisSide(stack.enter_context(Redis(work / "redis")))
        else:
            log("note: without redis-server, redis-cli and python3-redis there is no other side")
        bench = Bench(args, sides)
        bench.all()
        document["rows"] = bench.rows
    bench.table()
    benchlib.finish(args, "ring", document)


if __name__ == "__main__":
    main()
