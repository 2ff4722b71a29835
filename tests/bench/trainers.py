#!/usr/bin/env python3
"""Epochs over many small files of a slow store, by simulated trainers with one mount each (row B5): the
share of its time that a trainer is busy, and the bytes that leave the store, with no cache, a disk cache
of each mount, a cache group, both, both warmed before, and with the set in the cluster, too.  Then the
same files at full speed, beside the disk."""

import contextlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

import benchlib
import juicefs
from benchlib import KIB
from cached import Cached
from peers import Cluster
from slow_s3 import SlowS3, create

HERE = pathlib.Path(__file__).resolve().parent
DELAY_S, RATE = 0.010, 100_000_000  # of the store: until it answers, bytes a second
TRAINERS, MEMBERS = 2, 2
LOADERS, BATCH, STEP_MS = 2, 25, 100
MEMBER = "member-"  # how a member's directory begins
READERS = 8  # threads at full speed
SIZE = {True: 4 * KIB, False: 100 * KIB}
SIDES = {"no cache": (), "disk": ("disk",), "group": ("group",), "both": ("disk", "group"),
         "warmed": ("disk", "group", "warm"), "kept": ("disk", "group", "warm", "keep")}


class Bench:
    def __init__(self, args, work, cluster, s3):
        self.args, self.work, self.cluster, self.s3 = args, work, cluster, s3
        self.env = {**os.environ, **cluster.environment}
        self.size = SIZE[args.quick]
        self.total = args.files * self.size
        self.runs, self.rows = 0, []

    def ctl(self, *words):
        subprocess.run([str(self.args.build / "dfcctl"), *map(str, words)], env=self.env, check=True,
                       stdout=subprocess.DEVNULL)

    def fill(self):
        """The same files in the store and on the disk."""
        for i in range(self.args.files):
            name, data = f"{i % 10}/{i:05}", random.Random(i).randbytes(self.size)
            path = self.work / "files" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            self.s3.put("data", name, data)

    def forget(self, bucket):
        """The cluster has nothing of the bucket: what a mount lacks leaves the store."""
        self.ctl("bucket", "evict", bucket, "--prefix", "", "--allow-empty", "--wait", "--quiet")

    @contextlib.contextmanager
    def bucket(self):
        self.runs += 1
        name = f"set{self.runs}"
        create(self.cluster, self.s3.url, name, "0/00000")
        try:
            yield name
        finally:
            self.cluster.call("DELETE", f"/v1/buckets/{name}")

    @contextlib.contextmanager
    def members(self, tiers):
        """→ the flags of a mount that reads through the group, if there is one."""
        group = f"g{self.runs}"
        members = [Cached(self.args.build, self.work / f"{MEMBER}{self.runs}-{i}", group, f"m{i}", self.env)
                   for i in range(MEMBERS if "group" in tiers else 0)]
        try:
            yield ["--cache-group", group, "--group-refresh", "100ms"] if members else []
        finally:
            for m in members:
                m.end()
                shutil.rmtree(m.dir)

    def cache(self, bucket, number):
        """The directory of a mount's disk cache."""
        return self.work / f"cache-{bucket}-{number}"

    @contextlib.contextmanager
    def mounts(self, bucket, flags, tiers):
        """One for each trainer.  They are fresh, so the kernel has nothing of them."""
        paths = []
        try:
            for i in range(TRAINERS):
                path, cache = self.work / f"mnt{i}", self.cache(bucket, i)
                path.mkdir(exist_ok=True)
                cache.mkdir(exist_ok=True)
                own = [f"--cache-dir={cache}", "--cache-free=0"] if "disk" in tiers else []
                self.ctl("fs", "mount", f"dfc://{bucket}", path, *flags, *own)
                paths.append(path)
            yield paths
        finally:
            for path in paths:
                self.ctl("fs", "umount", path)

    def train(self, paths, epoch):
        """One epoch of all trainers → what each says."""
        a = self.args
        trainers = [subprocess.Popen(
            [sys.executable, str(HERE / "trainer.py"),
             *map(str, (path, epoch, i, TRAINERS, LOADERS, BATCH, a.step_ms))],
            stdout=subprocess.PIPE, text=True) for i, path in enumerate(paths)]
        results = [json.loads(t.communicate()[0]) for t in trainers]
        if sum(r["bytes"] for r in results) != self.total:
            raise RuntimeError(f"{[r['bytes'] for r in results]} bytes were read, of {self.total}")
        return results

    def note(self, side, epoch, results, before):
        """`before`: what the store had sent → what it has sent."""
        busy = [1 - r["waited"] / r["seconds"] for r in results]
        row = {"row": "B5 trainers", "side": side, "epoch": epoch,
               "seconds": round(max(r["seconds"] for r in results), 2),
               "busy": round(100 * sum(busy) / len(busy), 1),
               "store": round((self.s3.sent - before) / self.total, 3)}
        self.rows.append(row)
        benchlib.log("  {row}, {side}, epoch {epoch}: {seconds} s, busy {busy} %, store {store}".format(**row))
        return self.s3.sent

    def warmed(self, side, before):
        """As note()."""
        self.rows.append({"row": "B5 trainers", "side": side, "epoch": "warm-up", "seconds": None,
                          "busy": None, "store": round((self.s3.sent - before) / self.total, 3)})
        return self.s3.sent

    def warm(self, bucket, flags, tiers):
        self.forget(bucket)
        with self.mounts(bucket, flags, tiers) as paths:
            for path in paths:
                self.ctl("fs", "warmup", path)

    def side(self, name, tiers):
        """All epochs, from nothing."""
        with self.bucket() as bucket, self.members(tiers) as flags:
            before = self.s3.sent
            if "warm" in tiers:
                self.warm(bucket, flags, tiers)
                before = self.warmed(name, before)
            for epoch in range(1, self.args.epochs + 1):
                if "keep" not in tiers:
                    self.forget(bucket)
                with self.mounts(bucket, flags, tiers) as paths:
                    results = self.train(paths, epoch)
                before = self.note(name, epoch, results, before)
            for i in range(TRAINERS):
                shutil.rmtree(self.cache(bucket, i))


@contextlib.contextmanager
def juicefs_mounts(b, meta, caches):
    """As Bench.mounts()."""
    mounts = []
    try:
        for i in range(TRAINERS):
            path = b.work / f"mnt{i}"
            path.mkdir(exist_ok=True)
            flag = f"--cache-dir={caches[i]}" if caches else "--cache-size=0"
            mounts.append(juicefs.Mount(b.work, meta, path, flag))
        yield [m.path / "set" for m in mounts]
    finally:
        for m in mounts:
            m.end()


def juicefs_meta(b):
    return f"sqlite3://{b.work}/juicefs.db"


def juicefs_sides(b):
    """A volume of JuiceFS on SQLite, whose blocks are in the same store."""
    meta = juicefs_meta(b)
    juicefs.make(b.work, meta, "--storage=s3", f"--bucket={b.s3.url}/data")
    with juicefs_mounts(b, meta, None) as paths:
        shutil.copytree(b.work / "files", paths[0])
    for tiers in ("no cache", "disk", "warmed"):
        name = f"juicefs, {tiers}"
        caches = [b.cache(tiers, i) for i in range(TRAINERS)] if tiers != "no cache" else None
        before = b.s3.sent
        if tiers == "warmed":
            with juicefs_mounts(b, meta, caches) as paths:
                for path in paths:
                    juicefs.run(b.work, "warmup", path)
            before = b.warmed(name, before)
        for epoch in range(1, b.args.epochs + 1):
            with juicefs_mounts(b, meta, caches) as paths:
                results = b.train(paths, epoch)
            before = b.note(name, epoch, results, before)


def trainers(b):
    b.note("raw", 1, b.train([b.work / "files"] * TRAINERS, 1), b.s3.sent)
    for name, tiers in SIDES.items():
        if b.args.only in name:
            b.side(name, tiers)
    if shutil.which("juicefs") and b.args.only in "juicefs":
        juicefs_sides(b)


def juicefs_speed(b, read):
    """With the disk caches of juicefs_sides()."""
    caches = [b.cache("warmed", i) for i in range(TRAINERS)]
    benchlib.forget_files(caches[0])
    with juicefs_mounts(b, juicefs_meta(b), caches) as paths:
        return read(paths[0], 1)


def full_speed(b):
    """The cluster keeps what it fetched, and the mount has it on its disk or in the group.  The page
    cache is empty."""
    def read(path, seed):
        done = subprocess.run([sys.executable, str(HERE / "mount_worker.py"), "epoch", str(path),
                               str(READERS), str(seed)], stdout=subprocess.PIPE, check=True, text=True)
        result = json.loads(done.stdout)
        return result["bytes"] / result["seconds"] / 1e6

    def raw():
        benchlib.forget_files(b.work / "files")
        return read(b.work / "files", 1)

    sides = {"raw": raw}
    with contextlib.ExitStack() as stack:
        for name in ("disk", "group"):
            bucket, tiers = stack.enter_context(b.bucket()), (name,)
            flags = stack.enter_context(b.members(tiers))
            with b.mounts(bucket, flags, tiers) as paths:
                b.ctl("fs", "warmup", paths[0])

            def run(bucket=bucket, flags=flags, tiers=tiers):
                for cache in (b.cache(bucket, 0), *b.work.glob(f"{MEMBER}*")):
                    benchlib.forget_files(cache)
                with b.mounts(bucket, flags, tiers) as paths:
                    return read(paths[0], 1)

            sides[name] = run
        if b.cache("warmed", 0).exists():
            sides["juicefs"] = lambda: juicefs_speed(b, read)
        rates = benchlib.interleave(sides, b.args.rounds)
    for name, found in rates.items():
        b.rows.append({"row": "B5 full speed", "side": name, "mb_per_s": round(benchlib.median(found), 1),
                       "of_raw": benchlib.paired_ratio(found, rates["raw"])})


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--files", type=int, default=4000, help="of 100 KiB")
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--head-ms", type=int, default=0, help="delay of a HEAD of the store")
    p.add_argument("--step-ms", type=int, default=STEP_MS, help=f"for a batch of {BATCH} files")
    args = p.parse_args()
    if args.quick:
        args.files, args.epochs, args.rounds, args.step_ms = 60, 2, 1, 10
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse") or \
            not (args.build / "dfc-mount").exists():
        benchlib.log("skipped: needs root, /dev/fuse and dfc-mount")
        return 77
    benchlib.own_mounts()
    document = benchlib.begin(args)
    with benchlib.WorkDir(args.dir) as work, SlowS3(RATE, DELAY_S, args.head_ms / 1000) as s3, \
            Cluster(work / "dfc", args.build) as cluster:
        b = Bench(args, work, cluster, s3)
        b.fill()
        trainers(b)
        if args.only in "full speed":
            full_speed(b)
    benchlib.table(["row", "side", "epoch", "seconds", "busy %", "store / set"],
                   [list(r.values()) for r in b.rows if "busy" in r])
    benchlib.table(["row", "side", "MB/s", "/ raw"],
                   [[*list(r.values())[:3], r["of_raw"]["median"]] for r in b.rows if "of_raw" in r])
    benchlib.finish(args, "trainers", {"machine": document, "rows": b.rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
