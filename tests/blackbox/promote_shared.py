#!/usr/bin/env python3
"""Where a mountpath and the files to promote are on one file system that shares bytes (XFS, btrfs),
objects get the files' bytes without a copy of them: so it is with copies and renames of objects.

Skipped (77) without root, loop devices or the programs that make the file systems."""

import os
import random
import shutil
import subprocess
import tempfile

from disks import enter, run, unmount
from lib import Cluster, Failed, check, end_on_signals, equal, run_one, skip
from object_jobs import run as run_job

MAKE = {"xfs": ["mkfs.xfs", "-q", "-f"], "btrfs": ["mkfs.btrfs", "-q", "-f"]}
IMAGE_BYTES = 400 << 20
SIZE = (40 << 20) + 123  # ends within a block
SLACK = 8 << 20  # what a file system takes for itself


class OnOneDisk(Cluster):
    """A target whose whole directory is a file system; `data` in it has files to promote."""

    def __init__(self, kind):
        self.image = tempfile.NamedTemporaryFile(prefix="dfc-shared-", dir="/dev/shm")
        self.image.truncate(IMAGE_BYTES)
        run(*MAKE[kind], self.image.name)
        self.disk = None
        super().__init__(targets=1, mountpaths=1)

    def run(self, command, *args, ok=True):
        if command == "up":
            self.disk = os.path.join(self.dir, "t1")
            os.makedirs(self.disk)
            run("mount", "-o", "loop", self.image.name, self.disk)
            os.makedirs(self.data)
        return super().run(command, *args, ok=ok)

    @property
    def data(self):
        return os.path.join(self.disk, "data")

    def used(self):
        """Bytes, once everything is on the disk."""
        subprocess.run(["sync", "-f", self.disk], check=True)
        s = os.statvfs(self.disk)
        return (s.f_blocks - s.f_bfree) * s.f_frsize

    def remove(self):
        super().remove()
        if self.disk is not None and os.path.ismount(self.disk):
            unmount(self.disk)
        self.image.close()

    def again(self, *args):
        self.restart("t1", f"--arg=--promote-root={self.data}", *args)


def write(c, name, seed):
    data = random.Random(seed).randbytes(SIZE)
    with open(os.path.join(c.data, name), "wb") as f:
        f.write(data)
    return data


def grows(c, least, most, what, done):
    before = c.used()
    done()
    grown = c.used() - before
    check(least <= grown <= most, f"{what}: {grown} bytes more are used")


def promote(c, name, **more):
    got = run_job(c, "b", "promote", {"path": os.path.join(c.data, name), "prepend": "o/", **more})
    equal((got["done"], got["failed"]), (1, 0), "files")


def try_kind(c):
    c.again()
    c.create("b", durability="sync")
    first = write(c, "first", 1)
    grows(c, 0, SLACK, "a promotion", lambda: promote(c, "first"))
    check(c.get("b", "o/first").expect(200).body == first, "other bytes")
    with open(os.path.join(c.data, "first"), "r+b") as f:
        f.write(b"changed" * 100000)
    check(c.get("b", "o/first").expect(200).body == first, "the file's change is in the object")
    second = write(c, "second", 2)
    grows(c, 0, SLACK, "a promotion by move", lambda: promote(c, "second", move=True))
    check(not os.path.exists(os.path.join(c.data, "second")), "the file stays")
    check(c.get("b", "o/second").expect(200).body == second, "other bytes")
    c.create("to", durability="sync")
    grows(c, 0, SLACK, "a copy", lambda: run_job(c, "b", "copy", {"prefix": "o/", "to": "to"}))
    check(c.get("to", "o/second").expect(200).body == second, "other bytes of the copy")
    c.again("--arg=--faults=disk.copy=EOPNOTSUPP")
    third = write(c, "third", 3)
    grows(c, SIZE - SLACK, SIZE + SLACK, "a promotion that copies", lambda: promote(c, "third"))
    check(c.get("b", "o/third").expect(200).body == third, "other bytes")


def one(kind):
    cluster = OnOneDisk(kind)
    try:
        if not run_one(kind, try_kind, cluster):
            cluster.print_logs()
            raise Failed(f"on {kind}")
    finally:
        wrong = cluster.verdict()
    equal(wrong, [], "the cluster's verdict")


def is_known(kind):
    with open("/proc/filesystems", encoding="utf-8") as f:
        return shutil.which(MAKE[kind][0]) is not None and kind in f.read().split()


def main():
    end_on_signals()
    enter()
    kinds = [k for k in MAKE if is_known(k)]
    if not kinds:
        skip("neither XFS nor btrfs can be made and mounted here")
    for kind in kinds:
        one(kind)
    print(f"{len(kinds)} passed, 0 failed")


if __name__ == "__main__":
    main()
