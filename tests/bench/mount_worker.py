"""Reads and writes files of one directory, in a process of its own:

    mount_worker.py KIND DIRECTORY THREADS AMOUNT

prints {"count": …, "bytes": …, "seconds": …}.  AMOUNT is a number of files, pages, bytes or
names, or a seed: each kind says which."""

import json
import mmap
import os
import random
import sys
import threading
import time

MIB = 1 << 20
PAGE = 4096
SHARE = 64 << 10  # what one look at a mapped file takes


def files_below(directories):
    """Of one or several, which colons separate."""
    found = []
    for directory in directories.split(":"):
        for at, _, files in os.walk(directory):
            found += [os.path.join(at, f) for f in files]
    return sorted(found)


def read(names, buffer):
    """Whole files, from first to last."""
    total = 0
    for name in names:
        fd = os.open(name, os.O_RDONLY)
        try:
            while got := os.readv(fd, [buffer]):
                total += got
        finally:
            os.close(fd)
    return total


def sequential(directory, threads, most):
    """The first `most` files of the directory (0: all), shared out to the threads."""
    names = files_below(directory)[:most or None]
    return len(names), [lambda i=i: read(names[i::threads], bytearray(MIB)) for i in range(threads)]


def epoch(directory, threads, seed):
    """As sequential(), in an order that the seed decides."""
    names = files_below(directory)
    random.Random(seed).shuffle(names)
    return len(names), [lambda i=i: read(names[i::threads], bytearray(MIB)) for i in range(threads)]


def scatter(directory, threads, count):
    """Pages of all files, each page at most once: `count` of them, shared out to the threads."""
    names = files_below(directory)
    pages = [(i, PAGE * n) for i, name in enumerate(names)
             for n in range(os.path.getsize(name) // PAGE)]
    wanted = random.Random(1).sample(pages, count)
    files = [os.open(name, os.O_RDONLY) for name in names]
    for fd in files:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)

    def run(mine):
        buffer = bytearray(PAGE)
        return sum(os.preadv(files[i], [buffer], at) for i, at in mine)

    return count, [lambda i=i: run(wanted[i::threads]) for i in range(threads)]


def mapped(directory, threads, _):
    """The files, through mappings."""
    names = files_below(directory)

    def run(mine):
        total = 0
        for name in mine:
            with open(name, "rb") as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
                total += sum(len(m[at:at + SHARE]) for at in range(0, len(m), SHARE))
        return total

    return len(names), [lambda i=i: run(names[i::threads]) for i in range(threads)]


def written(directory, number):
    return os.path.join(directory, f"written-{os.getpid()}-{number}")


def write(directory, threads, size):
    """Each thread a new file of `size` bytes, which is durable when it is closed."""
    piece = random.Random(1).randbytes(MIB)

    def run(i):
        fd = os.open(written(directory, i), os.O_CREAT | os.O_WRONLY)
        try:
            for _ in range(size // MIB):
                if os.write(fd, piece) != MIB:
                    raise OSError("a short write")
            os.fsync(fd)
        finally:
            os.close(fd)
        return size // MIB * MIB

    return threads, [lambda i=i: run(i) for i in range(threads)]


def names_of(directory, _, count):
    """Lists the directory and those below, and asks for the attributes of each of `count` names."""

    def run():
        found = files_below(directory)
        for name in found:
            os.stat(name)
        if len(found) != count:
            raise OSError(f"{directory}: {len(found)} names, not {count}")
        return 0

    return count, [run]


ACTS = {"read": sequential, "epoch": epoch, "random": scatter, "mmap": mapped, "write": write,
        "names": names_of}


def run_all(runs):
    """→ bytes, seconds."""
    results, failed = [], []

    def note(run):
        try:
            results.append(run())
        except OSError as e:
            failed.append(e)

    threads = [threading.Thread(target=note, args=(run,)) for run in runs]
    begun = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    seconds = time.monotonic() - begun
    if failed:
        raise failed[0]
    return sum(results), seconds


def main():
    kind, directory, threads, amount = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    count, runs = ACTS[kind](directory, threads, amount)
    total, seconds = run_all(runs)
    if kind == "write":
        for number in range(threads):
            os.unlink(written(directory, number))
    print(json.dumps({"count": count, "bytes": total, "seconds": seconds}))


if __name__ == "__main__":
    main()
