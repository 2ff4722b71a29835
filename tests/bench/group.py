#!/usr/bin/env python3
"""A cache group of 1, 2, 4 and 8 members on hosts with limited links, and two readers that could take
more than all links together (row B6): what each byte costs the store, how often it is kept, and how
fast the readers are, cold and warm.  Then a join, a kill, a flap and a drain with 4 members: what of
the set is asked of the store after each, and what members fetch anew."""

import contextlib
import json
import os
import pathlib
import random
import secrets
import subprocess
import sys
import time

import benchlib
from benchlib import KIB
from cached import Cached, metric

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "sort"))

from lab import Links, PlacedCluster, lacks  # noqa: E402
from namespaces import Hosts, enter  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SIZES = (1, 2, 4, 8)
LINK = 12_500_000  # bytes/s
PAYLOAD = 1448 / 1514  # of a full frame: tc counts the headers, too
READERS = 2
THREADS = 4  # of each reader, for each member
SIZE = 100 * KIB
EVENTS = 4  # members before the first event


class Cluster(PlacedCluster):
    proxy_flags = ("--cache-settle=10s", "--cache-away=2s")


class Bench:
    def __init__(self, args, work, hosts, cluster):
        self.args, self.work, self.hosts, self.c = args, work, hosts, cluster
        self.links = Links(hosts, hosts.names[:-1], args.link)
        self.env = cluster.dfcctl_environment()
        self.runs, self.group, self.rows = 0, "", []
        self.key = work / "group.key"
        with open(os.open(self.key, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write(secrets.token_hex(32) + "\n")

    def ctl(self, *words):
        subprocess.run([str(self.args.build / "dfcctl"), *map(str, words)], env=self.env, check=True,
                       stdout=subprocess.DEVNULL)

    def fill(self):
        """A directory for each member of the largest group."""
        root = self.work / "set"
        for part in range(max(self.args.members)):
            (root / str(part)).mkdir(parents=True)
            for i in range(self.args.files):
                (root / f"{part}/{i:05}").write_bytes(random.Random(f"{part} {i}").randbytes(SIZE))
        self.ctl("bucket", "create", "set")
        self.ctl("put", "--quiet", "-r", root, "set/")

    def total(self, parts):
        return parts * self.args.files * SIZE

    def store(self):
        """Bytes that the target has given."""
        return metric(self.c.url("t1"), "object_get_bytes_total")

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

    def read(self, parts, threads, *flags):
        """All readers read so many parts of the set, each in an order of its own → what the worker
        says of each."""
        with self.mounts(*flags) as paths:
            workers = [subprocess.Popen(
                [sys.executable, str(HERE / "mount_worker.py"), "epoch",
                 ":".join(f"{path}/{part}" for part in range(parts)), str(threads), str(i)], text=True,
                stdout=subprocess.PIPE) for i, path in enumerate(paths)]
            results = [json.loads(w.communicate()[0]) for w in workers]
        for r in results:
            if r["bytes"] != self.total(parts):
                raise RuntimeError(f"{r['bytes']} bytes were read, of {self.total(parts)}")
        return results

    def group_flags(self):
        return ["--cache-group", self.group, "--group-key-file", self.key, "--group-refresh", "100ms"]

    def read_group(self, parts, threads):
        """→ bytes/s of all readers together, and the store's part of what they read."""
        before = self.store()
        results = self.read(parts, threads, *map(str, self.group_flags()))
        read = READERS * self.total(parts)
        return read / max(r["seconds"] for r in results), (self.store() - before) / read

    def member(self, number):
        host = self.hosts.names[number]
        return Cached(self.args.build, self.work / f"member-{self.runs}-{number}", self.group, f"m{number}",
                      self.env, ("--listen", self.hosts.address(host), "--port", "7070",
                                 "--group-key-file", str(self.key)), self.hosts.inside(host))

    def begin(self, count):
        """A group of as many members, each on a host of its own."""
        self.runs += 1
        self.group = f"g{self.runs}"
        return [self.member(i) for i in range(count)]

    def await_kept(self, members, parts):
        while sum(m.stat("cache_written_bytes_total") for m in members) < self.total(parts):
            time.sleep(0.02)

    def row(self, name, value, unit=""):
        self.rows.append({"row": name, "value": round(value, 3), "unit": unit})
        benchlib.log(f"  {name}: {value:.3f} {unit}")


def with_members(b, count):
    """One round → what it found."""
    members, before = b.begin(count), b.store()
    try:
        cold, _ = b.read_group(count, THREADS * count)
        given = b.store() - before
        b.await_kept(members, count)
        served = [m.stat("group_sent_bytes_total") for m in members]
        warm, missed = b.read_group(count, THREADS * count)
        served = [m.stat("group_sent_bytes_total") - s for m, s in zip(members, served)]
        return {"cold": cold, "warm": warm, "missed": missed, "given": given / b.total(count),
                "kept": sum(m.kept() for m in members) / b.total(count),
                "busiest": max(served) * count / sum(served)}
    finally:
        for m in members:
            m.end()


def sizes(b):
    """The rates count what the members gave: a read of the store has no limit."""
    b.links.limit(True)
    one = None
    for count in b.args.members:
        runs = [with_members(b, count) for _ in range(b.args.rounds)]
        found = {name: benchlib.median([r[name] for r in runs]) for name in runs[0]}
        rate = benchlib.median([r["warm"] * (1 - r["missed"]) for r in runs])
        one = one or rate / count
        name = f"{count} members" if count > 1 else "1 member"
        b.row(f"{name}: cold", found["cold"] / 1e6, "MB/s")
        b.row(f"{name}: warm, of the members", rate / 1e6, "MB/s")
        b.row(f"{name}: warm / ({count} × one)", rate / one / count)
        b.row(f"{name}: warm / links", rate / (count * b.args.link * PAYLOAD))
        b.row(f"{name}: bytes of the busiest / mean", found["busiest"])
        b.row(f"{name}: bytes of the store / set, {READERS} readers, cold", found["given"])
        b.row(f"{name}: bytes of the store / read, warm", found["missed"])
        b.row(f"{name}: bytes kept / set", found["kept"])
    b.links.limit(False)


def latency(b):
    """A file at a time, without limits: of one member, and of a disk cache of the reader's own."""
    caches = [f"--cache-dir={b.work}/own-READER", "--cache-free=0"]
    for i in range(READERS):
        (b.work / f"own-{i}").mkdir()
    with b.mounts(*caches) as paths:
        for path in paths:
            b.ctl("fs", "warmup", path / "0")
    members = b.begin(1)
    try:
        b.read_group(1, THREADS)
        b.await_kept(members, 1)
        sides = {"a member": b.group_flags(), "an own disk cache": caches, "the cluster": []}
        runs = benchlib.interleave({name: lambda flags=flags: b.read(1, 1, *map(str, flags))[0]
                                    for name, flags in sides.items()}, b.args.rounds, warm_up=False)
    finally:
        for m in members:
            m.end()
    for name, results in runs.items():
        b.row(f"a file of 100 KiB, warm, of {name}",
              benchlib.median([1000 * r["seconds"] / r["count"] for r in results]), "ms")


def events(b):
    """With 4 members that have settled: each event, the store's part of the next read, and the bytes
    that members got from others and the store for it."""
    b.links.limit(True)
    members = b.begin(EVENTS)
    path, parts = f"/v1/cache-groups/{b.group}", min(EVENTS, max(b.args.members))

    def states():
        return b.c.get_json(path)["members"]

    def got():
        return sum(m.stat("group_pulled_bytes_total") + m.stat("group_fetched_bytes_total")
                   for m in members if m.process.poll() is None)

    def asked(name):
        before = got()
        rate, missed = b.read_group(parts, THREADS * EVENTS)
        moved = got() - before
        b.row(f"{name}: rate", rate / 1e6, "MB/s")
        b.row(f"{name}: hits", 100 * (1 - missed), "%")
        b.row(f"{name}: bytes moved / set", moved / b.total(parts))

    def await_that(condition):
        while not condition():
            time.sleep(0.05)

    def await_present(count):
        await_that(lambda: sum(m["state"] == "present" for m in states()) == count)

    try:
        b.read_group(parts, THREADS * EVENTS)
        b.await_kept(members, parts)
        await_that(lambda: min(m["present_ms"] for m in states()) > 10000)
        asked("4 members")
        members[0].end(kill=True)
        members[0].start()
        await_present(EVENTS)
        asked("kill and restart of one (a flap)")
        members.append(b.member(EVENTS))
        await_present(EVENTS + 1)
        asked("join of a fifth")
        asked("the same, again")
        b.ctl("fs", "cache", "drain", b.group, members[1].name, f"--group-key-file={b.key}")
        await_that(lambda: any(m["weight"] == 0 for m in states()))
        asked("drain of one")
        members[1].end()
        await_present(EVENTS)
        asked("after the drained one has left")
        members[2].end(kill=True)
        await_present(EVENTS - 1)
        asked("kill of one, which is away")
    finally:
        for m in members:
            m.end()
        b.links.limit(False)


def main():
    p = benchlib.arguments(__doc__)
    p.add_argument("--members", type=int, nargs="+", default=SIZES, metavar="N")
    p.add_argument("--files", type=int, default=500, help="files of 100 KiB for each member")
    p.add_argument("--link", type=int, default=LINK, help="bytes/s of each member's link, each way")
    args = p.parse_args()
    if args.quick:
        args.members, args.files, args.rounds = (1, 2), 20, 1
    missing = lacks(args.build)
    if missing or not (args.build / "dfc-cached").exists():
        benchlib.log(missing or "there is no dfc-cached")
        return 77
    enter("--net")
    document = benchlib.begin(args)
    hosts = Hosts(max(*args.members, EVENTS + 1) + 1)
    with benchlib.WorkDir(args.dir) as work, Cluster(
            hosts, args.build, {"p1": hosts.names[-1], "t1": hosts.names[-1]}) as cluster:
        b = Bench(args, work, hosts, cluster)
        b.fill()
        for part in (sizes, latency, events):
            if args.only in part.__name__:
                part(b)
    benchlib.finish(args, "group", {"machine": document, "rows": b.rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
