#!/usr/bin/env python3
"""A cut of power loses nothing that a volume on SQLite has acknowledged.

The metadata database is on a disk that remembers, as in powercut.py, and the bucket is not.  A
program writes, appends, replaces and removes files in the mount.  For many cut points the disk is
built that a cut leaves, and the volume is mounted from it: what was acknowledged is there, or what
began later, each file is whole, and fsck finds nothing.

The test of the test: without SQLite's syncs, a cut must be found that breaks this.

DFC_CUTS is the number of cuts, and DFC_SEED repeats a run."""

import os
import random
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "blackbox"))

import powercut  # noqa: E402
from lib import Failed, check, equal, main, skip  # noqa: E402
from mount_bucket import read  # noqa: E402
from mount_lib import mounted, needs_fuse, said_by_sanitizers  # noqa: E402
from mount_write import write  # noqa: E402

FS = powercut.FILE_SYSTEMS["ext4"]
NAMES = ("a", "b", "c", "d/a", "d/b", "d/e/a", "log")
OPERATIONS = 150
CUTS = int(os.environ.get("DFC_CUTS", 25))
MUTANT_CUTS, MUTANT_RUNS = 60, 4
SEED = int(os.environ.get("DFC_SEED", 0)) or random.randrange(1, 1 << 31)
BUCKET = 1  # a name of the log is (bucket, name)


def bytes_of(number):
    return f"{number}\n".encode() * (1 + number * 3701 % 30000)


def put(path, name, number):
    write(path + "/new", bytes_of(number))
    os.rename(path + "/new", f"{path}/{name}")


def append(path, number):
    with open(path + "/log", "ab", buffering=0) as f:
        f.write(f"{number}\n".encode())
        os.fsync(f.fileno())


def work(path, marks, rng):
    there = set()
    for number in range(OPERATIONS):
        name = rng.choice(NAMES)
        removes = name in there and name != "log" and rng.random() < 0.3
        marks.write(f"B {number} {'delete' if removes else 'put'} {BUCKET} {name}".encode())
        if name == "log":
            append(path, number)
        elif removes:
            os.unlink(f"{path}/{name}")
            there.discard(name)
        else:
            put(path, name, number)
            there.add(name)
        marks.write(f"A {number} done".encode())


def number_of(path, name, log):
    """Of the operation that made the file; log: numbers of all appends."""
    try:
        data = read(f"{path}/{name}")
    except FileNotFoundError:
        return None
    numbers = [int(line) for line in data.split()]
    if name == "log":
        check(numbers == log[:len(numbers)], f"the log is {data[:200]}")
        return numbers[-1] if numbers else None
    check(numbers and data == bytes_of(numbers[0]), f"'{name}' has {len(data)} bytes: {data[:20]}")
    return numbers[0]


class Campaign:
    def __init__(self, c, name, seed):
        self.cluster, self.name, self.rng = c, name, random.Random(seed)
        self.top = tempfile.mkdtemp(prefix="dfc-powercut-")
        self.at = os.path.join(self.top, "mnt")
        self.url = f"sqlite3://{self.at}/v.db"

    def record(self, env):
        before, image, log = (os.path.join(self.top, n) for n in ("before.img", "disk.img", "log"))
        powercut.make_image(before, FS)
        with powercut.Loop(before, self.at):
            done = self.cluster.dfcctl("fs", "format", self.url, self.name, "--trash-days=0", "--bucket",
                                       "dfc://" + self.name)
            equal(done.returncode, 0, done.stderr)
            with mounted(self.cluster, self.url) as path:
                os.makedirs(path + "/d/e")
                write(path + "/log", b"")
        powercut.copy_sparse(before, image)
        with powercut.Recorder(self.top, image, log) as recorder, \
                powercut.Loop(recorder.path("disk"), self.at), \
                open(recorder.path("mark"), "wb", buffering=0) as marks:
            with mounted(self.cluster, self.url, env=env) as path:
                work(path, marks, self.rng)
            marks.write(b"Z 0")
        return before, powercut.Log(log)

    def fsck(self):
        done = self.cluster.dfcctl("fs", "fsck", self.url)
        return [] if done.returncode == 0 else [f"fsck: {done.stdout}{done.stderr}"]

    def look(self, begun, cut):
        """[what is wrong]"""
        wrong = []
        appends = sorted(number for number, _ in begun[(BUCKET, "log")])
        with mounted(self.cluster, self.url) as path:
            for name in NAMES:
                try:
                    found = number_of(path, name, appends)
                    wrong.append(powercut.judge_name((BUCKET, name), found, begun[(BUCKET, name)], cut))
                except (OSError, Failed) as e:
                    wrong.append(f"'{name}': {e}")
        return [w for w in wrong if w]

    def cut(self, log, disk, at):
        image = os.path.join(self.top, "cut.img")
        how = disk.build(at, self.rng, image)
        try:
            with powercut.Loop(image, self.at):
                wrong = self.look(log.begun_at(at), at) + self.fsck()
        except Failed as e:
            wrong = [str(e)]
        return [f"cut at {at} ({how}): {w}" for w in wrong]

    def run(self, cuts, env=None, until_wrong=False):
        began, wrong, count = time.monotonic(), [], 0
        try:
            before, log = self.record(env)
            disk = powercut.Disk(before, log, FS.sector)
            for at in log.cuts(self.rng, cuts):
                wrong += self.cut(log, disk, at)
                count += 1
                if wrong and until_wrong:
                    break
            disk.close()
            log.close()
        finally:
            shutil.rmtree(self.top)
        print(f"{self.name}: {len(log.operations)} operations, {len(log.records)} records, {count} cuts: "
              f"{len(wrong)} wrong ({time.monotonic() - began:.1f} s)", flush=True)
        return wrong


def test_a_cut_of_power_loses_nothing(c):
    print(f"DFC_SEED={SEED}")
    equal(Campaign(c, "power", SEED).run(CUTS), [], "after cuts of power")


def test_a_lost_sync_is_found(c):
    for number in range(MUTANT_RUNS):
        campaign = Campaign(c, f"power-mutant-{number}", SEED + number)
        wrong = campaign.run(MUTANT_CUTS, dict(os.environ, DFC_FAULTS="meta.sync=skip"), True)
        if wrong:
            return
    raise Failed(f"without syncs nothing was wrong, in {MUTANT_RUNS} runs")


def test_sanitizers_found_nothing(_):
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    try:
        if "ext4" not in powercut.file_systems():
            skip("the kernel has no ext4")
    except powercut.Skipped as reason:
        skip(str(reason))
    main(targets=1)
