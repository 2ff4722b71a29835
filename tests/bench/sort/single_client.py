#!/usr/bin/env python3
"""A sort by one client of the cluster, as the paper's experiment has it: every shard is fetched,
its records are kept
in memory and, when that is full, in a work file; then they are sorted, and new shards are written
to the client's own disk.

    single_client.py URL OUT RECORDS_PER_SHARD MEMORY < names of the shards      (URL: that of the
    bucket's objects)
    single_client.py --fetch URL OUT < names                                     fetches them, and
    nothing else

What is in the work file is not in memory as well: it is written out and dropped, as a dataset of
several times the memory
would be."""

import concurrent.futures
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import threading
import urllib.request

THREADS = 4
FORGET_BYTES = 4 << 20


class Records:
    def __init__(self, path, memory):
        self.fd, self.left = os.open(path, os.O_RDWR | os.O_CREAT), memory
        self.lock = threading.Lock()
        self.end = self.forgotten = 0  # of the work file
        self.where = {}  # name: (the member's header, its bytes or its offset in the work file)

    def take(self, info, data):
        with self.lock:
            if self.left >= len(data):
                self.left -= len(data)
                self.where[info.name] = (info, data)
                return
            at = self.end
            self.end += len(data)
            self.where[info.name] = (info, at)
        os.pwrite(self.fd, data, at)
        if at - self.forgotten > FORGET_BYTES:
            self.forgotten = at
            self.forget()

    def forget(self):
        os.fdatasync(self.fd)
        os.posix_fadvise(self.fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def give(self, name):
        info, where = self.where[name]
        return info, os.pread(self.fd, info.size, where) if isinstance(where, int) else where


def fetch(url, name):
    with urllib.request.urlopen(f"{url}/{name}") as answer:
        return answer.read()


def extract(url, name, records):
    with tarfile.open(fileobj=io.BytesIO(fetch(url, name))) as shard:
        for info in shard:
            records.take(info, shard.extractfile(info).read())


def create(path, names, records):
    with tarfile.open(path, "w") as shard:
        for name in names:
            info, data = records.give(name)
            shard.addfile(info, io.BytesIO(data))


def in_parallel(function, items):
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(function, items))


def main():
    only_fetch = sys.argv[1] == "--fetch"
    arguments = sys.argv[2:] if only_fetch else sys.argv[1:]
    url, out = arguments[0], pathlib.Path(arguments[1])
    shards = sys.stdin.read().split()
    if only_fetch:
        in_parallel(lambda name: (out / name).write_bytes(fetch(url, name)), shards)
        return
    per_shard, memory = int(arguments[2]), int(arguments[3])
    records = Records(out / "work", memory)
    in_parallel(lambda name: extract(url, name, records), shards)
    records.forget()
    names = sorted(records.where)
    groups = [names[i:i + per_shard] for i in range(0, len(names), per_shard)]
    in_parallel(lambda n: create(out / f"out-{n:06d}.tar", groups[n], records), range(len(groups)))
    subprocess.run(["sync", "-f", str(out)], check=True)


if __name__ == "__main__":
    main()
