#!/usr/bin/env python3
"""Locks of a volume's files between mounts: flock(2) and fcntl(2).

Processes on two mounts do random calls, and the same calls on a local file: each result must be
the same.  Then what waits: until a lock is released, the holder or its mount is killed, or a signal
arrives."""

import fcntl
import os
import random
import signal
import struct
import subprocess
import sys

import mount_redis
import mount_volume
from lib import check, equal, main, wait_for
from mount_lib import mounted, needs_fuse, said_by_sanitizers
from mount_write import write
from redis_lib import PROGRAM as REDIS_PROGRAM

WORKERS = 4
CALLS = 500
BYTES = 40

# A process that does what it is told, on two files, and says what came of it.
WORKER = r"""
import errno, fcntl, os, signal, struct, sys
RANGE = struct.Struct("hhqqi4x")
files = [os.open(path, os.O_RDWR) for path in sys.argv[1:]]
signal.signal(signal.SIGUSR1, lambda *_: None)
signal.siginterrupt(signal.SIGUSR1, True)
def outcome(fd, words):
    try:
        if words[0] == "flock":
            fcntl.flock(fd, int(words[1]))
        elif words[0] == "get":
            kind, _, start, size, _ = RANGE.unpack(fcntl.fcntl(
                fd, fcntl.F_GETLK, RANGE.pack(int(words[1]), 0, int(words[2]), int(words[3]), 0)))
            return f"{kind} {start} {size}" if kind != fcntl.F_UNLCK else "free"
        elif words[0] == "set":
            # Not by lockf(): that repeats a call that was interrupted.
            import ctypes
            libc = ctypes.CDLL(None, use_errno=True)
            data = RANGE.pack(int(words[1]), 0, int(words[2]), int(words[3]), 0)
            if libc.fcntl(fd, int(words[4]), data) != 0:
                return errno.errorcode[ctypes.get_errno()]
        elif words[0] == "reopen":
            os.close(os.dup(fd))
        elif words[0] == "read":
            return os.pread(fd, 100, 0).decode()
        elif words[0] == "write":
            os.pwrite(fd, words[1].encode(), 0)
    except OSError as e:
        return errno.errorcode[e.errno]
    return "ok"
print("ready", flush=True)
for line in sys.stdin:
    words = line.split()
    print("\t".join(outcome(fd, words) for fd in files), flush=True)
"""


class Worker:
    def __init__(self, *paths):
        self.process = subprocess.Popen([sys.executable, "-c", WORKER, *paths], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        equal(self.answer(), ["ready"], "worker")

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self):
        return self.process.stdout.readline().rstrip("\n").split("\t")

    def ask(self, *words):
        self.tell(*words)
        return self.answer()

    def waits_in(self, *calls):
        """Until it waits in one of these system calls."""
        def waits():
            with open(f"/proc/{self.process.pid}/syscall", encoding="ascii") as f:
                return f.read().split()[0] in map(str, calls)

        wait_for(waits, "the worker waits")

    def end(self, kill=False):
        if kill:
            self.process.kill()
        self.process.communicate()


F_OFD_SETLK = 37
RANGE = struct.Struct("hhqqi4x")
SYS_FLOCK, SYS_FCNTL = 73, 72  # x86_64
WHOLE = (fcntl.F_WRLCK, 0, 0)


def urls(c, name):
    """Of a volume on each engine that this machine has."""
    mount_volume.url_of = mount_redis.sqlite_url_of
    yield mount_volume.made(c, name)
    if REDIS_PROGRAM is not None:
        mount_volume.url_of = mount_redis.url_of
        yield mount_volume.made(c, name + "-redis")


def random_call(rng):
    """EAGAIN and EACCES aside, the kernel never blocks these."""
    start = rng.randrange(BYTES)
    size = rng.choice((0, rng.randrange(1, BYTES)))
    kind = rng.choice((fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK))
    return rng.choice((
        ("set", kind, start, size, fcntl.F_SETLK), ("set", kind, start, size, fcntl.F_SETLK),
        ("get", rng.choice((fcntl.F_RDLCK, fcntl.F_WRLCK)), start, size),
        ("flock", rng.choice((fcntl.LOCK_SH, fcntl.LOCK_EX, fcntl.LOCK_UN)) | fcntl.LOCK_NB)))


def test_random_calls_as_on_a_local_file(c):
    local = os.path.join(c.dir, "local-locks")
    write(local, b"")
    for url in urls(c, "oracle"):
        with mounted(c, url) as one, mounted(c, url, name="two") as two:
            write(one + "/f", b"")
            workers = [Worker(f"{(one, two)[i % 2]}/f", local) for i in range(WORKERS)]
            rng, results = random.Random(5), []
            for number in range(CALLS):
                at = rng.randrange(WORKERS)
                if rng.randrange(25) == 0:
                    words = ("reopen",)
                elif rng.randrange(60) == 0:
                    workers[at].end(kill=rng.randrange(2) == 0)
                    workers[at] = Worker(f"{(one, two)[at % 2]}/f", local)
                    continue
                else:
                    words = random_call(rng)
                ours, theirs = workers[at].ask(*words)
                if words[0] == "get":  # which of several locks is named is left open
                    ours, theirs = ours == "free", theirs == "free"
                check(ours == theirs, f"{url}: call {number} of {at}, {words}: {ours}, and {theirs}")
                results.append(ours)
            check(results.count("ok") > 50 and results.count("EAGAIN") > 50, "results")
            for w in workers:
                w.end()


def pair(c, name):
    """Workers on two mounts, for each engine."""
    for url in urls(c, name):
        with mounted(c, url) as one, mounted(c, url, name="two") as two:
            write(one + "/f", b"first")
            a, b = Worker(one + "/f"), Worker(two + "/f")
            yield a, b
            a.end()
            b.end()


def test_who_waits_gets_the_lock_and_the_bytes(c):
    for a, b in pair(c, "waits"):
        for number in range(5):
            equal(a.ask("set", *WHOLE, fcntl.F_SETLKW), ["ok"], "a lock")
            b.tell("set", *WHOLE, fcntl.F_SETLKW)
            b.waits_in(SYS_FCNTL)
            a.ask("write", f"bytes{number}")
            a.ask("set", fcntl.F_UNLCK, 0, 0, fcntl.F_SETLK)
            equal(b.answer(), ["ok"], "the lock that was waited for")
            equal(b.ask("read"), [f"bytes{number}"], "bytes that were written under the lock")
            b.ask("set", fcntl.F_UNLCK, 0, 0, fcntl.F_SETLK)
        equal(a.ask("flock", fcntl.LOCK_EX), ["ok"], "a lock")
        b.tell("flock", fcntl.LOCK_EX)
        b.waits_in(SYS_FLOCK)
        a.end(kill=True)
        equal(b.answer(), ["ok"], "the lock of a killed process")


def test_a_signal_ends_the_wait(c):
    for a, b in pair(c, "signal"):
        equal(a.ask("set", *WHOLE, fcntl.F_SETLKW), ["ok"], "a lock")
        b.tell("set", *WHOLE, fcntl.F_SETLKW)
        b.waits_in(SYS_FCNTL)
        b.process.send_signal(signal.SIGUSR1)
        equal(b.answer(), ["EINTR"], "a call that was interrupted")
        a.ask("set", fcntl.F_UNLCK, 0, 0, fcntl.F_SETLK)
        equal(b.ask("set", *WHOLE, fcntl.F_SETLK), ["ok"], "the lock")


def test_many_wait_and_others_work(c):
    """More than the mount has threads."""
    for url in urls(c, "many"):
        with mounted(c, url) as one, mounted(c, url, name="two") as two:
            write(one + "/f", b"")
            holder = Worker(one + "/f")
            equal(holder.ask("flock", fcntl.LOCK_EX), ["ok"], "a lock")
            waiting = [subprocess.Popen(["flock", two + "/f", "true"]) for _ in range(80)]
            write(two + "/other", b"works")
            holder.end()
            equal([w.wait(timeout=120) for w in waiting], [0] * 80, "exit codes")


def set_of_open_file(fd, kind=fcntl.F_WRLCK):
    return mount_volume.outcome(lambda: fcntl.fcntl(fd, F_OFD_SETLK, RANGE.pack(kind, 0, 0, 0, 0)) and None)


def test_a_lock_of_an_open_file_ends_with_its_last_close(c):
    for url in urls(c, "open-file"):
        with mounted(c, url) as one, mounted(c, url, name="two") as two:
            write(one + "/f", b"")
            other = os.open(two + "/f", os.O_RDWR)
            for _ in range(5):
                fd = os.open(one + "/f", os.O_RDWR)
                equal(set_of_open_file(fd), None, "a lock")
                second = os.dup(fd)
                os.close(fd)
                equal(set_of_open_file(other), "EAGAIN", "the lock of another mount")
                os.close(second)
                wait_for(lambda: set_of_open_file(other) is None, "the lock")
                equal(set_of_open_file(other, fcntl.F_UNLCK), None, "an unlock")
            os.close(other)


def test_a_close_of_another_open_file_takes_no_later_lock(c):
    """The kernel tells the end of an open file a little later than its close."""
    for url in urls(c, "later"):
        with mounted(c, url) as one, mounted(c, url, name="two") as two:
            write(one + "/f", b"")
            other, kept = os.open(two + "/f", os.O_RDWR), os.open(one + "/f", os.O_RDWR)
            for _ in range(20):
                fd = os.open(one + "/f", os.O_RDWR)
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.close(fd)
                fcntl.lockf(kept, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.stat(one + "/f")
                equal(set_of_open_file(other), "EAGAIN", "the lock of another mount")
            os.close(kept)
            wait_for(lambda: set_of_open_file(other) is None, "the lock")
            os.close(other)


def test_no_sanitizer_found_anything(_):
    found = said_by_sanitizers()
    check(not found, "\n".join(found)[:4000])


if __name__ == "__main__":
    needs_fuse()
    main(targets=2)
