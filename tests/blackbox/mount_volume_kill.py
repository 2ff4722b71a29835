#!/usr/bin/env python3
"""kill -9 of the process that serves a volume, on each engine: another one goes on with its
session.  Open files, directories, locks and files without a name stay; changes are made once; what
was not stored is an error once; a session that was given up meanwhile is not taken over."""

import contextlib
import errno
import fcntl
import itertools
import mmap
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import mount_locks
import mount_redis
import mount_volume
from lib import check, equal, main, wait_for
from mount_bucket import fails, read
from mount_kill import KILLS, READER, kill_server
from mount_lib import (directory_of, has_ended, mount, mounted, mounts, needs_fuse,
                       said_by_sanitizers, server, supervisor)
from mount_locks import WHOLE, Worker, urls
from mount_volume import FRESH, end_sessions, fsck, outcome, steps
from mount_write import write

KIB, MIB = 1 << 10, 1 << 20
MANY = "--restarts=1000"
LARGE = random.Random(7).randbytes(9 * MIB + 77)


def test_readers_do_not_see_kills(c):
    local = os.path.join(c.dir, "local-large")
    write(local, LARGE)
    for url in urls(c, "read"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(local + ".end")
        with mounted(c, url, MANY, "--buffer-size=8MiB", "--attr-ttl=100ms") as path:
            write(path + "/large", LARGE)
            os.mkdir(path + "/d")
            for i in range(60):
                write(f"{path}/d/{i:03}", random.Random(i).randbytes(i * 97))
            readers = [subprocess.Popen([sys.executable, "-c", READER, path, local, str(i)],
                                        stdout=subprocess.PIPE) for i in range(3)]
            chance = random.Random(1)
            for _ in range(KILLS):
                time.sleep(chance.random() * 0.2)  # anywhere in the readers' work
                kill_server(path)
            write(local + ".end", b"")
            rounds = [int(r.communicate(timeout=60)[0] or 0) for r in readers]
            equal([r.returncode for r in readers], [0] * 3, "readers")
            check(min(rounds) > 0, f"rounds: {rounds}")


def test_handles_go_on(c):
    for url in urls(c, "handles"):
        with mounted(c, url, MANY) as path:
            write(path + "/large", LARGE)
            os.makedirs(path + "/d/e")
            for i in range(700):  # more than a page
                write(f"{path}/d/{i:03}", b"x")
            saved = os.open(path + "/saved", os.O_CREAT | os.O_RDWR)
            os.write(saved, b"saved")
            os.fsync(saved)
            appends = os.open(path + "/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            os.write(appends, b"one ")
            os.fsync(appends)
            reads = os.open(path + "/large", os.O_RDONLY)
            gone = os.open(path + "/gone", os.O_CREAT | os.O_RDWR)
            os.write(gone, b"gone")
            os.fsync(gone)
            os.unlink(path + "/gone")
            os.chdir(path + "/d")
            try:
                with os.scandir(".") as entries:
                    names = [next(entries).name]
                    kill_server(path)
                    names += [e.name for e in entries]
                equal(sorted(names), [f"{i:03}" for i in range(700)] + ["e"], "a list that was begun before")
                equal(read("e/../001"), b"x", "below the working directory")
                equal(os.pread(reads, 4096, 5 * MIB), LARGE[5 * MIB:5 * MIB + 4096], "an open file")
                os.pwrite(saved, b"more", 5)
                os.write(appends, b"two")
                for fd in (saved, appends):
                    os.fsync(fd)
                kill_server(path)
                equal(os.pread(gone, 9, 0), b"gone", "a file without a name")
                os.pwrite(gone, b"!", 4)
                os.fsync(gone)
                equal((os.pread(gone, 9, 0), os.fstat(gone).st_nlink), (b"gone!", 0), "the same")
            finally:
                os.chdir("/")
                for fd in (saved, appends, reads, gone):
                    os.close(fd)
            equal((read(path + "/saved"), read(path + "/log")), (b"savedmore", b"one two"), "bytes")


def test_a_list_goes_on_by_name(c):
    """Names that were listed are removed before the kill, so that numbers of entries are others."""
    names = [f"{i:03}" + "x" * 200 for i in range(800)]
    for url in urls(c, "lists"):
        with mounted(c, url, MANY) as path:
            for name in names:
                os.mkdir(f"{path}/{name}")
            with os.scandir(path) as entries:
                seen = []
                for e in entries:
                    seen.append(e.name)
                    os.rmdir(f"{path}/{e.name}")
                    if len(seen) % 97 == 0:
                        kill_server(path)
            equal(sorted(seen), names, "what was listed")
            equal(os.listdir(path), [], "what is left")


def test_what_was_not_stored_is_an_error_once(c):
    for url in urls(c, "unsaved"):
        with mounted(c, url, MANY) as path:
            write(path + "/f", b"before")
            lost, same = os.open(path + "/f", os.O_RDWR), os.open(path + "/f", os.O_RDWR)
            log = os.open(path + "/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            other = os.open(path + "/other", os.O_CREAT | os.O_RDWR)
            os.pwrite(other, b"other", 0)
            os.fsync(other)
            os.pwrite(lost, b"LOST!!+++", 0)
            os.write(log, b"lost")
            kill_server(path)
            equal(os.pread(same, 100, 0), b"before", "bytes that are stored, not those of the kernel")
            equal(os.fstat(same).st_size, 6, "size")
            fails(errno.EIO, os.fsync, lost)
            os.fsync(lost)  # once
            os.pwrite(lost, b"a", 0)
            os.fsync(lost)
            fails(errno.EIO, os.write, log, b"x")
            os.write(log, b"later")
            os.pwrite(same, b"z", 5)  # had lost nothing
            os.fsync(same)
            os.pwrite(other, b"O", 0)
            os.pwrite(lost, b"lost again", 0)
            kill_server(path)
            kill_server(path)  # the one between has told no program
            fails(errno.EIO, os.close, lost)
            fails(errno.EIO, os.fsync, other)
            fails(errno.EIO, os.close, log)
            os.close(same)
            os.close(other)
            equal({n: read(f"{path}/{n}") for n in os.listdir(path)},
                  {"f": b"aeforz", "log": b"", "other": b"other"}, "what is stored")


SPLIT = """
import errno, mmap, os, sys
target, source = sys.argv[1:]
fd = os.open(target, os.O_WRONLY)
with open(source, "rb") as f:
    behind = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
print("ready", flush=True)
sys.stdin.readline()
print(os.pwritev(fd, [b"x" * 100, behind], mmap.PAGESIZE - 100))
try:
    os.close(fd)
    print("closed")
except OSError as e:
    print(errno.errorcode[e.errno])
"""


def is_stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[0] == "T"


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: is_stopped(pid), "the process to stop")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_write_of_which_a_part_is_lost(c):
    """The kernel sends a write(2) in parts.  The process dies between the first and the second; of
    the second's EIO the kernel tells nothing, for it counts the first.  So the close must tell it.
    Between the parts the kernel waits for bytes of another mount, whose process is stopped."""
    for url in urls(c, "split"):
        with mounted(c, url, MANY, *FRESH) as one, mounted(c, url, name="two") as two:
            behind = b"y" * mmap.PAGESIZE
            write(one + "/source", behind)
            write(one + "/f", b"")
            with subprocess.Popen([sys.executable, "-c", SPLIT, one + "/f", two + "/source"], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
                equal(writer.stdout.readline(), "ready\n", "the writer")
                with stopped(server(two)):
                    writer.stdin.write("go\n")
                    writer.stdin.flush()
                    wait_for(lambda path=one: os.stat(path + "/f").st_size == mmap.PAGESIZE, "the first part")
                    kill_server(one)
                said = writer.communicate(timeout=60)[0].split()
            whole = bytes(mmap.PAGESIZE - 100) + b"x" * 100 + behind
            if read(one + "/f") == whole:  # stored before the kill, on a slow machine
                equal(said, [str(100 + len(behind)), "closed"], "a write that was stored")
            else:
                equal((said, read(one + "/f")), (["100", "EIO"], b""), "a write of which a part is lost")


def test_a_loss_is_told_until_an_fsync_has(c):
    """A write's error does not end it, nor a later kill, nor a close of a copy of the descriptor."""
    for url in urls(c, "told"):
        with mounted(c, url, MANY) as path:
            write(path + "/f", b"")
            fd, other = os.open(path + "/f", os.O_RDWR), os.open(path + "/f", os.O_RDWR)
            os.pwrite(fd, b"lost", 0)
            kill_server(path)
            fails(errno.EIO, os.pwrite, fd, b"x", 0)
            os.pwrite(fd, b"later", 1)
            os.fsync(other)
            kill_server(path)
            fails(errno.EIO, os.close, os.dup(fd))
            fails(errno.EIO, os.fsync, fd)
            os.fsync(fd)
            for each in (fd, other):
                os.close(each)
            equal(read(path + "/f"), b"\0later", "bytes")


def churn(path, number, wrong, end):
    """Each call would fail, or change too much, if it was made twice or not at all."""
    i = 0
    while not end.is_set():
        i += 1
        one, two = f"{path}/{number}-{i}", f"{path}/{number}-{i}b"
        try:
            os.mkdir(one)
            os.setxattr(one, "user.a", b"1", os.XATTR_CREATE)
            os.removexattr(one, "user.a")
            os.rename(one, two)
            os.rmdir(two)
            os.symlink("x", one)
            os.unlink(one)
            os.close(os.open(one, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.link(one, two)
            equal(os.stat(one).st_nlink, 2, "links")
            os.rename(one, f"{path}/{number}")
            os.truncate(two, 10)
            os.unlink(two)
        except BaseException as e:  # pylint: disable=broad-except
            wrong.append(f"{number}, round {i}: {e!r}")
            end.set()
    return i


def test_changes_are_made_once(c):
    for url in urls(c, "once"):
        with mounted(c, url, MANY, *FRESH) as path:
            wrong, end = [], threading.Event()
            threads = [threading.Thread(target=churn, args=(path, n, wrong, end)) for n in range(4)]
            for t in threads:
                t.start()
            chance = random.Random(2)
            for _ in range(KILLS):
                time.sleep(chance.random() * 0.15)
                kill_server(path)
            end.set()
            for t in threads:
                t.join()
            equal(wrong, [], "errors")
            check(len(os.listdir(path)) <= 4, f"names: {os.listdir(path)}")
        if url.startswith("sqlite3"):
            equal(len(fsck(c, "once", 0)), 1, "findings")


def told(outcome):
    """Of bytes the runs: so many of which byte."""
    if isinstance(outcome, bytes):
        return str([(len(list(run)), byte) for byte, run in itertools.groupby(outcome)])[:400]
    return str(outcome)[:400]


def test_random_calls_as_on_another_file_system(c):
    """As in mount_volume; a call that meets EIO, for its bytes were lost, is made again."""
    for url in urls(c, "random"):
        beside = directory_of(c, "oracle-" + url.split(":")[0])
        with mounted(c, url, MANY) as path:
            root, end = path + "/root", threading.Event()
            os.mkdir(root)

            def kill(path=path, end=end):
                chance = random.Random(3)
                while not end.wait(chance.random() * 0.3):
                    kill_server(path)

            killer = threading.Thread(target=kill)
            killer.start()
            try:
                ours, theirs = random.Random(1), random.Random(1)
                for number in range(400):
                    call, got = steps(ours, root), "EIO"
                    while got == "EIO":
                        got = outcome(call)
                    want = outcome(steps(theirs, beside))
                    check(got == want, f"call {number}: {told(got)}, and {told(want)}")
            finally:
                end.set()
                killer.join()


def test_locks_stay(c):
    for url in urls(c, "locks"):
        with mounted(c, url, MANY) as one, mounted(c, url, name="two") as two:
            write(one + "/f", b"")
            write(one + "/g", b"")
            a, b = Worker(one + "/f"), Worker(two + "/f")
            a2, b2 = Worker(one + "/g"), Worker(two + "/g")
            equal(a.ask("set", *WHOLE, fcntl.F_SETLK), ["ok"], "a lock")
            equal(a2.ask("flock", fcntl.LOCK_EX), ["ok"], "a lock")
            kill_server(one)
            equal(b.ask("set", *WHOLE, fcntl.F_SETLK), ["EAGAIN"], "the lock of the other mount")
            b2.tell("flock", fcntl.LOCK_EX)
            b2.waits_in(mount_locks.SYS_FLOCK)
            kill_server(one)
            equal(a.ask("write", "under-the-lock"), ["ok"], "a write")
            equal(a.ask("set", fcntl.F_UNLCK, 0, 0, fcntl.F_SETLK), ["ok"], "the lock is given back")
            equal(b.ask("set", *WHOLE, fcntl.F_SETLK), ["ok"], "the lock that was given back")
            equal(b.ask("read"), ["under-the-lock"], "bytes")
            a2.end(kill=True)  # its close gives the lock back, though another process took it
            equal(b2.answer(), ["ok"], "the lock that was waited for")
            a.tell("set", *WHOLE, fcntl.F_SETLKW)
            a.waits_in(mount_locks.SYS_FCNTL)
            kill_server(one)  # who waits goes on waiting
            equal(b.ask("set", fcntl.F_UNLCK, 0, 0, fcntl.F_SETLK), ["ok"], "the lock is given back")
            equal(a.answer(), ["ok"], "the lock after the kill")
            for w in (a, b, b2):
                w.end()


def test_a_session_that_was_given_up(c):
    """The locks went to others meanwhile, so no handle of before may change anything."""
    mount_volume.url_of = mount_redis.sqlite_url_of
    url = mount_volume.made(c, "fenced")
    log = os.path.join(c.dir, "fenced.log")
    with mounted(c, url, MANY, f"--log-file={log}") as path:
        write(path + "/f", b"bytes")
        fd = os.open(path + "/f", os.O_RDWR)
        fcntl.flock(fd, fcntl.LOCK_EX)
        parent, child = supervisor(path), server(path)
        os.kill(parent, signal.SIGSTOP)
        os.kill(child, signal.SIGKILL)
        wait_for(lambda: has_ended(child), "the process to end")
        end_sessions(c, "fenced")
        os.kill(parent, signal.SIGCONT)
        equal(os.pread(fd, 9, 0), b"bytes", "reads go on")
        fails(errno.EIO, os.pwrite, fd, b"x", 0)
        fails(errno.EIO, os.fsync, fd)
        fails(errno.EIO, os.close, fd)
        write(path + "/g", b"new")
        equal((read(path + "/f"), read(path + "/g")), (b"bytes", b"new"), "bytes")
    check(b"session over" in read(log), "the log")


def test_metadata_that_are_away(c):
    """The process that takes over waits for them, and is no death more."""
    if mount_locks.REDIS_PROGRAM is None:
        return  # as urls()
    mount_volume.url_of = mount_redis.url_of
    url, log = mount_volume.made(c, "away"), os.path.join(c.dir, "away.log")
    with mounted(c, url, "--restarts=1", f"--log-file={log}") as path:
        write(path + "/f", b"bytes")
        fd = os.open(path + "/f", os.O_RDONLY)
        child = server(path)
        mount_redis.redis().kill()
        os.kill(child, signal.SIGKILL)
        wait_for(lambda: read(log).count(b"metadata are away") > 2, "the process that takes over")
        mount_redis.redis().start()
        equal(os.pread(fd, 9, 0), b"bytes", "bytes")
        write(path + "/g", b"new")
        os.close(fd)
        equal(read(path + "/g"), b"new", "bytes after the outage")


def test_too_many_deaths_end_the_mount(c):
    mount_volume.url_of = mount_redis.sqlite_url_of
    url, log = mount_volume.made(c, "deaths"), os.path.join(c.dir, "deaths.log")
    path = mount(c, url, "--restarts=2", f"--log-file={log}")
    first = supervisor(path)
    kill_server(path)
    kill_server(path)
    os.kill(server(path), signal.SIGKILL)
    wait_for(lambda: has_ended(first), "the supervisor to end")
    fails(errno.ENOTCONN, os.listdir, path)
    equal(c.dfcctl("fs", "umount", path).returncode, 0, "umount")
    equal(mounts(path), [], "what is mounted")
    check(b"died too often" in read(log), "the log")
    with mounted(c, url) as path:
        write(path + "/f", b"after")


def test_a_killed_supervisor_ends_nothing(c):
    mount_volume.url_of = mount_redis.sqlite_url_of
    path = mount(c, mount_volume.made(c, "supervisor"))
    write(path + "/f", b"1")
    pid = supervisor(path)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: has_ended(pid), "the supervisor to end")
    equal(read(path + "/f"), b"1", "a file")
    fails(errno.ENODATA, os.getxattr, path, "user.dfc.supervisor")
    pid = server(path)
    equal(c.dfcctl("fs", "umount", path).returncode, 0, "umount")
    equal((mounts(path), has_ended(pid)), ([], True), "what is left")


def test_a_database_goes_on(c):
    """SQLite in the mount: a transaction is whole or an error, and the file is never damaged."""
    for url in urls(c, "database"):
        with mounted(c, url, MANY) as path:
            rows = 0
            with contextlib.closing(sqlite3.connect(path + "/t.db", timeout=30)) as d:
                d.execute("create table t(a)")
                chance, end = random.Random(4), threading.Event()

                def kill(path=path, chance=chance, end=end):
                    while not end.wait(chance.random() * 0.5):
                        kill_server(path)

                killer = threading.Thread(target=kill)
                killer.start()
                try:
                    for i in range(60):
                        try:
                            with d:
                                d.execute("insert into t values(?)", (i,))
                            rows += 1
                        except sqlite3.OperationalError:
                            pass
                finally:
                    end.set()
                    killer.join()
            with contextlib.closing(sqlite3.connect(path + "/t.db", timeout=30)) as d:
                equal(d.execute("pragma integrity_check").fetchone(), ("ok",), "the database")
                check(d.execute("select count(*) from t").fetchone()[0] >= rows > 0, f"{rows} rows")


def test_sanitizers_found_nothing(c):
    del c
    equal(said_by_sanitizers(), [], "reports of sanitizers")


if __name__ == "__main__":
    needs_fuse()
    main(targets=2)
