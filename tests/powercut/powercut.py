#!/usr/bin/env python3
"""A cut of power loses nothing that was acknowledged, and leaves nothing torn.

    powercut.py [--fs=ext4] [--cuts=N] [--operations=N] [--seed=N] [--skip=POINT] [--keep]

A file system on a disk that remembers (recorder.c) keeps a mountpath, on which the storage engine
runs a workload that says what it begins and what was acknowledged (store.c).  Then, for many cut
points, the disk is built that a cut of power would have left: all that was written before the last
flush, and of what came after it a random part: whole writes, or single sectors of them.  The file
system is mounted (it replays its journal), the store is opened (it rebuilds its index), and every
name is looked at:

    durability sync, documents,
    samples of a ring            what was acknowledged is there, or what was begun later
    durability async             the same of what a flush of the file system has covered;
                                 of the rest anything that was ever begun, but whole
    all                          lists name what can be read; tmp/ is empty

The test of the test: with any single sync of the write path left out (MUTATIONS), cuts must be
found that break this.  Without arguments all of this runs; the seed that is printed repeats it.

Skipped (77) without root, FUSE or loop devices, or where the kernel lacks the file systems.
"""

import argparse
import collections
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
BUILD = os.path.abspath(os.environ.get("DFC_BUILD") or os.path.join(ROOT, "build"))
RECORDER = os.path.join(BUILD, "tests", "powercut", "powercut-recorder")
STORE = os.path.join(BUILD, "tests", "powercut", "powercut-store")
sys.path.insert(0, os.path.join(ROOT, "tests", "blackbox"))
import namespaces  # noqa: E402

HEADER = struct.Struct("<IIQ")
MIB = 1 << 20
NEVER = float("inf")

# How each is made, how large, and the size of what it takes for granted to be written as one.  ext4
# has one checksum over the 1024 bytes of its superblock: it does not mount with half of a new one.
FileSystem = collections.namedtuple("FileSystem", "make mib sector")
FILE_SYSTEMS = {
    "ext4": FileSystem(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0",
                        "-J", "size=8"], 128, 1024),
    "xfs": FileSystem(["mkfs.xfs", "-q", "-f"], 320, 512),
    "btrfs": FileSystem(["mkfs.btrfs", "-q", "-f"], 256, 4096),
}

# Each sync of the write path (the points sync.* of common/fault.def), and the file systems on which
# its absence must show.  Of the last three it does not: these file systems keep the order of what
# they write in their journals or trees, so that the sync of the directory, which comes after each
# of
# them, brings along what they are for.  POSIX promises no such order; that the three are made, and
# that their errors count, object_fault_test.c and mountpath_test.c see.
MUTATIONS = [
    ("sync.object", ("ext4", "xfs", "btrfs")),
    ("sync.name", ("ext4", "xfs", "btrfs")),
    ("sync.bytes", ("xfs",)),
    ("sync.file", ("ext4", "xfs", "btrfs")),
    ("sync.directory", ("ext4", "xfs", "btrfs")),
    ("sync.ring", ("ext4", "xfs", "btrfs")),
    ("sync.restamp", ()),
    ("sync.bucket", ()),
    ("sync.buckets", ()),
]
MUTATION_CUTS = 200  # at most, in each of
MUTATION_RUNS = 4    # runs, at most: the first cut that shows is enough, and some are rare


class Skipped(Exception):
    """This machine cannot run the test."""


def run(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


# --- recording -----------------------------------------------------------------------------------

def wait_until(condition, what, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {seconds} s")
        time.sleep(0.01)


class Recorder:
    """The remembering disk, mounted below `top` as long as the block runs."""

    def __init__(self, top, image, log):
        self.mount = os.path.join(top, "recorder")
        os.makedirs(self.mount, exist_ok=True)
        self.argv = [RECORDER, image, log, self.mount]

    def __enter__(self):
        self.process = subprocess.Popen(self.argv)
        wait_until(lambda: self.process.poll() is not None or os.path.ismount(self.mount),
                   "the recorder's mount")
        if self.process.poll() is not None:
            raise Skipped("FUSE does not mount here")
        return self

    def __exit__(self, *_):
        run("umount", self.mount)
        self.process.wait(20)

    def path(self, name):
        return os.path.join(self.mount, name)


class Loop:
    """A file's file system mounted at `at` by a loop device, as long as the block runs."""

    def __init__(self, path, at):
        self.path, self.at = path, at
        os.makedirs(at, exist_ok=True)

    def __enter__(self):
        run("mount", "-o", "loop", self.path, self.at)
        return self

    def __exit__(self, *_):
        run("umount", self.at)


def make_image(path, fs):
    with open(path, "wb") as f:
        f.truncate(fs.mib * MIB)
    run(*fs.make, path)


def record(top, fs, seed, operations, faults):
    """Runs the workload; the paths of the disk as it was before and of the log."""
    before, image, log = (os.path.join(top, name) for name in ("before.img", "disk.img", "log"))
    make_image(before, fs)
    copy_sparse(before, image)
    with Recorder(top, image, log) as recorder, \
            Loop(recorder.path("disk"), os.path.join(top, "mnt")) as loop:
        run(STORE, "work", os.path.join(loop.at, "mp"), recorder.path("mark"), str(seed),
            str(operations), *([faults] if faults else []))
        with open(recorder.path("mark"), "wb", buffering=0) as marks:
            marks.write(b"Z 0")
    os.unlink(image)
    return before, log


# --- the log -------------------------------------------------------------------------------------

class Operation:
    """One operation of the workload; `begun` and `acknowledged` are positions in the log."""

    def __init__(self, kind, key, begun):
        self.kind, self.key, self.begun = kind, key, begun
        self.acknowledged = NEVER
        self.covered = NEVER  # the position from which it must be there


class Log:
    """Records are named by their number; a cut at n leaves the records before n."""

    def __init__(self, path):
        self.file = open(path, "rb")
        self.records = []  # (kind, disk offset, length, offset in the log)
        self.operations = {}
        self.flushes = []  # of the file system: [begun, ended]
        self.end = 0
        self.read_all()
        for operation in self.operations.values():
            self.cover(operation)

    def close(self):
        self.file.close()

    def data(self, record):
        return os.pread(self.file.fileno(), record[2], record[3])

    def read_all(self):
        at = 0
        while header := os.pread(self.file.fileno(), HEADER.size, at):
            kind, length, offset = HEADER.unpack(header)
            at += HEADER.size
            record = (chr(kind), offset, length, at)
            if record[0] == "M":
                self.take_mark(self.data(record).decode().split(), len(self.records))
            self.records.append(record)
            at += length

    def take_mark(self, words, position):
        what, number = words[0], int(words[1])
        if what == "B":
            self.operations[number] = Operation(words[2], (int(words[3]), words[4]), position)
        elif what == "A" and words[2] == "missing":
            del self.operations[number]  # there was nothing to delete: nothing was done
        elif what == "A":
            self.operations[number].acknowledged = position
        elif what == "S":
            self.flushes.append([position, NEVER])
        elif what == "E":
            self.flushes[-1][1] = position
        elif what == "Z":
            self.end = position

    def cover(self, operation):
        operation.covered = operation.acknowledged
        if operation.key[0] == 8:  # the bucket with durability async, see store.c
            operation.covered = min((ended for begun, ended in self.flushes
                                     if begun > operation.acknowledged), default=NEVER)

    def begun_at(self, cut):
        """{(bucket, name): [(number, operation)]} of what had begun."""
        found = collections.defaultdict(list)
        for number, operation in self.operations.items():
            if operation.begun < cut:
                found[operation.key].append((number, operation))
        return found

    def cuts(self, rng, count):
        """Positions: right behind acknowledgements and flushes, and anywhere."""
        behind = [i + 1 for i, r in enumerate(self.records[:self.end])
                  if r[0] == "F" or (r[0] == "M" and self.data(r)[:1] in b"AE")]
        chosen = rng.sample(behind, min(len(behind), count * 2 // 3))
        return sorted(chosen + [rng.randrange(self.end) for _ in range(count - len(chosen))])


# --- the disk after the cut ----------------------------------------------------------------------

def copy_sparse(source, to):
    with open(source, "rb") as a, open(to, "wb") as b:
        size = os.fstat(a.fileno()).st_size
        b.truncate(size)
        at = 0
        while at < size:
            try:
                at = os.lseek(a.fileno(), at, os.SEEK_DATA)
            except OSError:  # no data behind here
                break
            hole = os.lseek(a.fileno(), at, os.SEEK_HOLE)
            while at < hole:
                at += os.pwrite(b.fileno(), os.pread(a.fileno(), min(hole - at, MIB), at), at)


def parts_kept(rng, how, length, sector):
    """The (from, to) of one unflushed write that reach the disk."""
    if how == "all" or (how == "some" and rng.random() < 0.5):
        return [(0, length)]
    if how != "torn":
        return []
    return [(at, min(at + sector, length)) for at in range(0, length, sector)
            if rng.random() < 0.5]


class Disk:
    """The disk's content as cuts go on through the log."""

    def __init__(self, before, log, sector):
        self.log, self.sector = log, sector
        self.path = before + ".durable"
        copy_sparse(before, self.path)
        self.fd = os.open(self.path, os.O_RDWR)
        self.done = 0  # records before this one are in it

    def close(self):
        os.close(self.fd)

    def write(self, fd, record, parts):
        data = self.log.data(record)
        for begin, end in parts:
            os.pwrite(fd, data[begin:end], record[1] + begin)

    def build(self, cut, rng, to):
        """Writes the disk that a cut leaves; cuts come in order.  Returns how, for the report."""
        flushed = max((i for i in range(self.done, cut) if self.log.records[i][0] == "F"),
                      default=self.done)
        for record in self.log.records[self.done:flushed]:
            if record[0] == "W":
                self.write(self.fd, record, [(0, record[2])])
        self.done = max(self.done, flushed)
        copy_sparse(self.path, to)
        how = rng.choice(["none", "all", "some", "some", "torn", "torn"])
        fd = os.open(to, os.O_RDWR)
        loose = [r for r in self.log.records[self.done:cut] if r[0] == "W"]
        for record in loose:
            self.write(fd, record, parts_kept(rng, how, record[2], self.sector))
        os.close(fd)
        return f"{how} of {len(loose)} unflushed writes"


# --- judging -------------------------------------------------------------------------------------

def superseded(candidate, operations, cut):
    """Was something acknowledged, and must be there, that began after `candidate` had ended?"""
    ended = -1 if candidate is None else candidate.acknowledged
    return any(o is not candidate and o.covered < cut and o.begun > ended
               for _, o in operations)


def judge_name(key, found, operations, cut):
    """None, or what is wrong with what the name has.  `found`: a number, or None for nothing."""
    if found is None:
        candidates = [None] + [o for _, o in operations if o.kind == "delete"]
    else:
        candidates = [o for number, o in operations if number == found and o.kind == "put"]
        if not candidates:
            return f"{key} has operation {found}, which had not begun"
    if any(not superseded(c, operations, cut) for c in candidates):
        return None
    late = [number for number, o in operations if o.covered < cut]
    what = "nothing" if found is None else f"operation {found}"
    return f"{key} has {what}, though {late} were acknowledged, the last at {cut} or before"


def judge(answer, begun, cut):
    """Everything that is wrong with what the store says after the cut."""
    wrong, there, listed, seen = [], set(), set(), set()
    for line in answer.splitlines():
        kind, rest = line[0], line[2:].split(" ", 2)
        key = (int(rest[0]), rest[1]) if len(rest) > 1 else None
        if kind == "T" and rest != ["0"]:
            wrong.append(f"{rest[0]} files are left in tmp/")
        elif kind == "L":
            listed.add(key)
        elif kind == "!":
            wrong.append(f"{key}: {rest[2]}")
        elif kind in "=-":
            seen.add(key)
            if kind == "=" and key[0] != 0:
                there.add(key)
            bad = judge_name(key, int(rest[2]) if kind == "=" else None, begun[key], cut)
            wrong += [bad] if bad else []
    if not wrong and listed != there:
        wrong.append(f"listed, not there: {listed - there}; there, not listed: {there - listed}")
    if not wrong and seen != set(begun):
        wrong.append("not every name was looked at")
    return wrong


def look(top, image, names):
    """What the store says of the names, on this disk."""
    with Loop(image, os.path.join(top, "mnt")) as loop:
        text = "".join(f"{bucket} {name}\n" for bucket, name in sorted(names))
        return run(STORE, "check", os.path.join(loop.at, "mp"), input=text)


# --- running -------------------------------------------------------------------------------------

def cut_power(top, log, disk, cut, rng):
    """[what is wrong after a cut here]"""
    image = os.path.join(top, "cut.img")
    how = disk.build(cut, rng, image)
    begun = log.begun_at(cut)
    try:
        answer = look(top, image, begun)
    except RuntimeError as e:
        return [f"cut at {cut} ({how}): {e}"]
    return [f"cut at {cut} ({how}): {w}" for w in judge(answer, begun, cut)]


def campaign(fs_name, options, seed, skip=None):
    """[what is wrong], over all cuts; with `skip` until something is."""
    fs, rng, cuts = FILE_SYSTEMS[fs_name], random.Random(seed), options.cuts
    if skip:
        cuts = max(cuts, MUTATION_CUTS)
    top = tempfile.mkdtemp(prefix="dfc-powercut-", dir=options.dir)
    began, wrong, count = time.monotonic(), [], 0
    try:
        before, log_path = record(top, fs, seed, options.operations,
                                  f"{skip}=skip" if skip else None)
        log = Log(log_path)
        disk = Disk(before, log, fs.sector)
        for cut in log.cuts(rng, cuts):
            wrong += cut_power(top, log, disk, cut, rng)
            count += 1
            if wrong and (skip or len(wrong) > 20):
                break
        disk.close()
        log.close()
        print(f"{fs_name}, seed {seed}{', without ' + skip if skip else ''}: "
              f"{len(log.operations)} operations, {len(log.records)} records, {count} cuts: "
              f"{len(wrong)} wrong ({time.monotonic() - began:.1f} s)", flush=True)
        return wrong
    finally:
        if options.keep:
            print(f"kept: {top}")
        else:
            shutil.rmtree(top)


def kernel_has(fs_name):
    with open("/proc/filesystems", encoding="ascii") as f:
        return fs_name in f.read().split()


def file_systems():
    if os.geteuid() != 0:
        raise Skipped("only root mounts")
    if not os.path.exists("/dev/fuse") or not os.path.exists("/dev/loop-control"):
        raise Skipped("there is no FUSE, or no loop device")
    if subprocess.run(["losetup", "--find"], capture_output=True, check=False).returncode != 0:
        raise Skipped("no loop device is to be had")
    if not os.path.exists(RECORDER):
        raise Skipped("it was built without libfuse3")
    found = [name for name, fs in FILE_SYSTEMS.items()
             if kernel_has(name) and shutil.which(fs.make[0])]
    if not found:
        raise Skipped("the kernel has none of " + ", ".join(FILE_SYSTEMS))
    return found


def table_is_whole():
    """[points of common/fault.def that MUTATIONS does not have]"""
    with open(os.path.join(ROOT, "common", "fault.def"), encoding="utf-8") as f:
        points = set(re.findall(r'POINT\("(sync\.\w+)"', f.read()))
    return [f"MUTATIONS lacks {point}" for point in points - {point for point, _ in MUTATIONS}]


def shows(fs_name, options, point):
    """Is a sync that is left out found to be missing?"""
    return any(campaign(fs_name, options, options.seed + run, point)
               for run in range(MUTATION_RUNS))


def everything(options):
    """All file systems plainly, then each with one sync after the other left out."""
    available = file_systems()
    failed = table_is_whole()
    for fs_name in available:
        failed += campaign(fs_name, options, options.seed)
    for point, where in MUTATIONS:
        for fs_name in where:
            if fs_name in available and not shows(fs_name, options, point):
                failed.append(f"{fs_name} without {point}: nothing was found to be wrong")
    return failed


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fs", choices=FILE_SYSTEMS)
    p.add_argument("--cuts", type=int, default=int(os.environ.get("DFC_CUTS", 25)))
    p.add_argument("--operations", type=int, default=400)
    p.add_argument("--seed", type=int, default=int(os.environ.get("DFC_SEED", 0)) or
                   random.randrange(1, 1 << 31))
    p.add_argument("--skip", metavar="POINT")
    p.add_argument("--keep", action="store_true")
    p.add_argument("--dir", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    options = p.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda n, _: sys.exit(128 + n))
    try:
        available = file_systems()
        if options.fs and options.fs not in available:
            raise Skipped(
                f"the kernel has no {options.fs}, or there is no {FILE_SYSTEMS[options.fs].make[0]}"
            )
        namespaces.enter()
        if not options.keep:  # what is in memory ends with the test, too
            run("mount", "-t", "tmpfs", "tmpfs", "/dev/shm")
        if options.fs:
            failed = campaign(options.fs, options, options.seed, options.skip)
        else:
            failed = everything(options)
    except Skipped as e:
        print(f"skipped: {e}")
        return 77
    for sentence in failed:
        print(f"not ok  {sentence}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
