#!/usr/bin/env python3
"""A cache group of 1, 2 and 4 members on one machine: what each byte costs the store, how often it is
kept, and how fast readers are, cold and warm, beside a disk cache of their own; then a join, a kill, a
flap and a drain with 4 members, and what of the set is asked of the store after each.

All processes share the processors and loopback: the figures compare ways to read, and do not say what
members on machines of their own would give together."""

import contextlib
import json
import os
import pathlib
import random
import subprocess
import sys
import time
import urllib.request

import benchlib
from benchlib import KIB, MIB
from peers import Cluster

SIZES = (1, 2, 4)
READERS = 2
SMALL, SMALL_SIZE = 1000, 100 * KIB
LARGE, LARGE_SIZE = 4, 32 * MIB
# Reads whole files from first to last, and says how many bytes there were.
WORKER = r"""
import os, random, sys
total, names = 0, []
for at, _, files in os.walk(sys.argv[1]):
    names += [os.path.join(at, f) for f in files]
random.Random(sys.argv[2]).shuffle(names)
for name in names:
    with open(name, "rb", buffering=0) as f:
        while chunk := f.read(1 << 20):
            total += len(chunk)
print(total)
"""


class Member:
    def __init__(self, bench, number):
        self.dir = bench.work / f"member-{bench.runs}-{number}"
        (self.dir / "cache").mkdir(parents=True, exist_ok=True)
        self.name, self.bench, self.process = f"m{number}", bench, None
        self.port = benchlib.free_port()  # the same after a restart: a present member keeps its address
        self.start()

    def start(self):
        ready = self.dir / "ready.json"
        ready.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [str(self.bench.args.build / "dfc-cached"), "--group", self.bench.group, "--id", self.name,
             "--cache-dir", str(self.dir / "cache"), "--dir", str(self.dir), "--cache-size", "8GiB",
             "--cache-free", "0", "--report-interval", "200ms", "--port", str(self.port), "--log-file", str(self.dir / "log")],
            env=self.bench.env)
        while not ready.exists():
            if self.process.poll() is not None:
                raise RuntimeError(f"dfc-cached ended with {self.process.returncode}")
            time.sleep(0.02)
        self.url = json.loads(ready.read_text())["url"]

    def stat(self, name):
        with urllib.request.urlopen(self.url + "/metrics") as reply:
            lines = reply.read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("dfc_" + name))

    def kept(self):
        """Bytes of pieces, with what their files have behind the bytes."""
        return sum(p.stat().st_size for p in (self.dir / "cache").glob("dfc-cache/pieces/*/*/*"))

    def end(self, kill=False):
        if self.process.poll() is None:
            (self.process.kill if kill else self.process.terminate)()
            self.process.wait()


class Bench:
    def __init__(self, args, work, cluster):
        self.args, self.work, self.cluster = args, work, cluster
        self.env = {**os.environ, **cluster.environment}
        self.rounds = 1 if args.quick else args.rounds
        self.runs, self.group, self.rows, self.total = 0, "", [], 0

    def ctl(self, *words):
        return subprocess.run([str(self.args.build / "dfcctl"), *map(str, words)], env=self.env, check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def fill(self):
        small, large = (20, 2 * MIB) if self.args.quick else (SMALL, LARGE_SIZE)
        root = self.work / "set"
        for i in range(small):
            path = root / f"small/{i % 10}/{i:05}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(random.Random(i).randbytes(SMALL_SIZE))
        (root / "large").mkdir()
        for i in range(LARGE):
            (root / f"large/{i}").write_bytes(random.Random(-i - 1).randbytes(large))
        self.total = sum(p.stat().st_size for p in root.rglob("*") if p.is_file())
        self.ctl("bucket", "create", "set")
        self.ctl("put", "--quiet", "-r", root, "set/")

    def store(self):
        """Bytes that the targets have given."""
        total = 0
        for node in self.cluster.targets:
            with urllib.request.urlopen(node["url"] + "/metrics") as reply:
                lines = reply.read().decode().splitlines()
            total += sum(float(line.rsplit(" ", 1)[1]) for line in lines
                         if line.startswith("dfc_object_get_bytes_total"))
        return total

    @contextlib.contextmanager
    def mounts(self, *flags):
        """READERS fresh mounts: nothing is in their memory or the kernel's."""
        paths = []
        try:
            for i in range(READERS):
                path = self.work / f"mnt{i}"
                path.mkdir(exist_ok=True)
                own = [f.replace("READER", str(i)) for f in flags]
                self.ctl("fs", "mount", "dfc://set", path, *own)
                paths.append(path)
            yield paths
        finally:
            for path in paths:
                self.ctl("fs", "umount", path)

    def read(self, *flags):
        """All readers read the set, each in an order of its own → MB/s of all together."""
        with self.mounts(*flags) as paths:
            begun = time.monotonic()
            workers = [subprocess.Popen([sys.executable, "-c", WORKER, str(p), str(i)], text=True,
                                        stdout=subprocess.PIPE) for i, p in enumerate(paths)]
            got = [int(w.communicate()[0]) for w in workers]
            seconds = time.monotonic() - begun
        if got != [self.total] * READERS:
            raise RuntimeError(f"{got} bytes were read, of {self.total}")
        return READERS * self.total / seconds / 1e6

    def read_group(self):
        return self.read("--cache-group", self.group, "--group-refresh", "100ms")

    def begin(self, count):
        self.runs += 1
        self.group = f"g{self.runs}"
        return [Member(self, i) for i in range(count)]

    def await_kept(self, members):
        while sum(m.stat("cache_written_bytes_total") for m in members) < self.total:
            time.sleep(0.02)

    def row(self, name, value, unit):
        self.rows.append({"row": name, "value": round(value, 3), "unit": unit})
        benchlib.log(f"  {name}: {value:.3f} {unit}")


def sizes(b):
    cold, warm, local = {}, {}, []
    for count in SIZES if not b.args.quick else SIZES[1:2]:
        cold[count], warm[count] = [], []
        for _ in range(b.rounds):
            members, before = b.begin(count), b.store()
            try:
                cold[count].append(b.read_group())
                given = b.store() - before
                b.await_kept(members)
                warm[count].append(b.read_group())
                kept = sum(m.kept() for m in members)
                again = b.store() - before - given
            finally:
                for m in members:
                    m.end()
        b.row(f"{count} members: bytes of the store / set, {READERS} readers, cold", given / b.total, "")
        b.row(f"{count} members: the same, warm", again / b.total, "")
        b.row(f"{count} members: bytes kept / set", kept / b.total, "")
        b.row(f"{count} members: cold", benchlib.median(cold[count]), "MB/s")
        b.row(f"{count} members: warm", benchlib.median(warm[count]), "MB/s")
    caches = [f"--cache-dir={b.work}/own-READER", "--cache-free=0"]
    for i in range(READERS):
        pathlib.Path(f"{b.work}/own-{i}").mkdir()
    with b.mounts(*caches) as paths:
        for path in paths:
            b.ctl("fs", "warmup", path)
    for _ in range(b.rounds):
        local.append(b.read(*caches))
    b.row("a disk cache of each reader, warm", benchlib.median(local), "MB/s")


def events(b):
    """With 4 members that have settled: each event, and the store's share of the next read."""
    members = b.begin(4)
    path = f"/v1/cache-groups/{b.group}"

    def asked(name):
        before = b.store()
        b.read_group()
        b.row(f"{name}: bytes of the store / read", (b.store() - before) / (READERS * b.total), "")

    def present():
        return sum(m["state"] == "present" for m in b.cluster.call("GET", path)["members"])

    def await_present(count):
        while present() != count:
            time.sleep(0.05)

    try:
        b.read_group()
        b.await_kept(members)
        while min(m["present_ms"] for m in b.cluster.call("GET", path)["members"]) <= 10000:
            time.sleep(0.1)
        asked("4 members")
        members.append(Member(b, 4))
        await_present(5)
        asked("join of a fifth")
        members[0].end(kill=True)
        members[0].start()
        await_present(5)
        asked("kill and restart of one (a flap)")
        b.ctl("fs", "cache", "drain", b.group, members[1].name)
        while not any(m["weight"] == 0 for m in b.cluster.call("GET", path)["members"]):
            time.sleep(0.05)
        asked("drain of one")
        members[1].end()
        await_present(4)
        asked("after the drained one has left")
        members[2].end(kill=True)
        await_present(3)
        asked("kill of one, which is away")
    finally:
        for m in members:
            m.end()


def main():
    args = benchlib.arguments(__doc__).parse_args()
    document = benchlib.begin(args)
    if not os.path.exists("/dev/fuse") or not (args.build / "dfc-mount").exists():
        benchlib.log("skipped: there is no /dev/fuse, or no dfc-mount")
        sys.exit(77)
    more = ["--proxy-arg=--cache-settle=10s", "--proxy-arg=--cache-away=2s"]
    with benchlib.WorkDir(args.dir) as work, Cluster(work / "dfc", args.build, targets=2, more=more) as cluster:
        b = Bench(args, work, cluster)
        b.fill()
        sizes(b)
        events(b)
    benchlib.finish(args, "group", {"machine": document, "rows": b.rows})


if __name__ == "__main__":
    main()
